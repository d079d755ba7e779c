"""What is said of the claims of a pod that waits."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from berth.explain.lacking_claims import MAX_CLAIMS, lacking
from berth.framework.mirrors.listers import Listers
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.testing.builders import make_pod
from berth.testing.storage import (
    claim_volume,
    listers_with,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)
from tests.unit.plugins.dynamic_resources.kit import make_claim as device_claim

NOT_BOUND = "PersistentVolumeClaim c is not bound to its PersistentVolume"
GONE_SOON = datetime(2026, 11, 28, tzinfo=UTC)


def terminating(obj):
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=GONE_SOON))


@pytest.mark.parametrize(
    ("volume_claim", "causes"),
    [
        (None, [""]),
        (terminating(make_claim("c", volume_name="v")), ["PersistentVolumeClaim c is being deleted"]),
        (make_claim("c", volume_name="v"), []),
        (
            make_claim("c", volume_name="gone"),
            ["PersistentVolume gone of PersistentVolumeClaim c does not exist"],
        ),
        (
            make_claim("c", volume_name="v", bound=False),
            [f"{NOT_BOUND} v yet"],
        ),
        (
            make_claim("c", volume_name="taken", bound=False),
            [f"{NOT_BOUND} taken yet, which is of claim default/other"],
        ),
    ],
)
def test_claims_of_volumes(volume_claim, causes):
    """One that is not there is named by kube-scheduler's own message; one that is bound lacks nothing."""
    other = make_claim("other")
    listers = listers_with(make_volume("v"), make_volume("taken", kept_for=other))
    if volume_claim is not None:
        listers.persistent_volume_claims.put(volume_claim)

    found = lacking(make_pod(volumes=(claim_volume("c"),)), listers)

    assert causes == [each.cause for each in found]
    assert all(each.remedy for each in found)


DRIVER = "csi.example.com"


@pytest.mark.parametrize(
    ("claim", "there", "cause"),
    [
        pytest.param(
            make_claim("c", volume_name="v"),
            (),
            f"no node's CSINode has the driver {DRIVER} of PersistentVolumeClaim c, "
            f"and there is no CSIDriver {DRIVER}",
            id="a volume, no driver",
        ),
        pytest.param(
            make_claim("c", volume_name="v"),
            (make_csi_driver(DRIVER), make_csi_node("n0", {"csi.other.com": 1})),
            f"no node's CSINode has the driver {DRIVER} of PersistentVolumeClaim c",
            id="a volume, on no node",
        ),
        pytest.param(
            make_claim("c", storage_class="late"),
            (),
            f"the volume of PersistentVolumeClaim c is to be made by {DRIVER}, which no node's CSINode has, "
            f"and there is no CSIDriver {DRIVER}",
            id="no volume yet",
        ),
        pytest.param(
            make_claim("c", volume_name="v"), (make_csi_node("n0", {DRIVER: None}),), None, id="on a node"
        ),
        pytest.param(make_claim("c", volume_name="v0"), (make_volume(),), None, id="of no driver"),
        pytest.param(
            make_claim("c", storage_class="wait"),
            (make_class(),),
            "PersistentVolumeClaim c waits for a volume of StorageClass wait, which has no provisioner",
            id="no provisioner",
        ),
    ],
)
def test_a_driver_that_no_node_has(claim, there, cause):
    """The driver of a volume, or the one that is to make it, is named where no CSINode has it."""
    late, volume = make_class("late", provisioner=DRIVER), make_volume("v", driver=DRIVER)

    found = lacking(make_pod(volumes=(claim_volume("c"),)), listers_with(claim, volume, late, *there))

    assert ([] if cause is None else [cause]) == [each.cause for each in found]
    assert all(DRIVER not in each.cause or "kubectl get csidrivers" in each.remedy for each in found)


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

    found, driver = lacking(make_pod(volumes=(claim_volume("c"),)), listers)

    assert found.cause.endswith("has no volume yet, which csi.example.com makes for StorageClass fast")
    assert "kubectl describe pvc c -n default" in found.remedy
    assert driver.cause.endswith("and there is no CSIDriver csi.example.com")


def test_no_more_claims_are_looked_at_than_a_page_has():
    pod = make_pod(volumes=tuple(claim_volume(f"c{i}") for i in range(2 * MAX_CLAIMS)))

    assert MAX_CLAIMS == len(lacking(pod, Listers()))
