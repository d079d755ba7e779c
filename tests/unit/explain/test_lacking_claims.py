"""What is said of the claims of a pod that waits."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from berth.explain.lacking_claims import MAX_CLAIMS, lacking
from berth.framework.listers import Listers
from berth.objects.pod_spec import PodResourceClaim
from berth.testing.builders import make_pod
from berth.testing.storage import claim_volume, make_claim, make_class
from tests.unit.plugins.dynamic_resources.kit import make_claim as device_claim

GONE_SOON = datetime(2026, 11, 28, tzinfo=UTC)


def terminating(obj):
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=GONE_SOON))


@pytest.mark.parametrize(
    ("volume_claim", "causes"),
    [
        (None, [""]),
        (terminating(make_claim("c", volume_name="v")), ["PersistentVolumeClaim c is being deleted"]),
        (make_claim("c", volume_name="v"), []),
    ],
)
def test_claims_of_volumes(volume_claim, causes):
    """One that is not there is named by kube-scheduler's own message; one that is bound lacks nothing."""
    listers = Listers()
    if volume_claim is not None:
        listers.persistent_volume_claims.put(volume_claim)

    found = lacking(make_pod(volumes=(claim_volume("c"),)), listers)

    assert causes == [each.cause for each in found]
    assert all(each.remedy for each in found)


def test_claims_of_devices():
    """A claim that was not made of its template yet is told from one that is being deleted."""
    listers = Listers()
    listers.resource_claims.put(terminating(device_claim("d")))
    entries = (
        PodResourceClaim("made", resource_claim_template_name="template"),
        PodResourceClaim("named", resource_claim_name="d"),
    )

    found = lacking(make_pod(resource_claims=entries), listers)

    assert [
        "the claim made has not been made of ResourceClaimTemplate template yet",
        "ResourceClaim d is being deleted",
    ] == [each.cause for each in found]
    assert "kubectl get resourceclaimtemplates,events -n default" in found[0].remedy


def test_a_provisioner_is_named():
    """A class that binds at once says who is to make the volume."""
    listers = Listers()
    listers.storage_classes.put(make_class("fast", provisioner="csi.example.com", mode="Immediate"))
    listers.persistent_volume_claims.put(make_claim("c", storage_class="fast"))

    (found,) = lacking(make_pod(volumes=(claim_volume("c"),)), listers)

    assert found.cause.endswith("has no volume yet, which csi.example.com makes for StorageClass fast")
    assert "kubectl describe pvc c -n default" in found.remedy


def test_no_more_claims_are_looked_at_than_a_page_has():
    pod = make_pod(volumes=tuple(claim_volume(f"c{i}") for i in range(2 * MAX_CLAIMS)))

    assert MAX_CLAIMS == len(lacking(pod, Listers()))
