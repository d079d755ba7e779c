"""Which claims a pod could have made again, and how many of them are looked at."""

import pytest
from msgspec.structs import replace

from berth.explain.claim_edits import MAX_CLAIMS, MAX_CLASSES, OtherClasses
from berth.framework.mirrors.listers import Listers
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.testing.builders import make_pod
from berth.testing.storage import claim_volume, make_claim, make_class
from tests.unit.plugins.dynamic_resources.kit import allocated
from tests.unit.plugins.dynamic_resources.kit import make_claim as device_claim
from tests.unit.plugins.dynamic_resources.kit import make_class as device_class


def listers(**objects):
    """Listers with these objects, by store."""
    found = Listers()
    for store, several in objects.items():
        for each in several:
            getattr(found, store).put(each)
    return found


def storage(pod, claims, classes):
    """The claims of volumes and their classes then."""
    known = listers(persistent_volume_claims=claims, storage_classes=classes)
    edits = OtherClasses(known).of_storage(pod)
    return [(edit.target.name, edit.patch[0]["value"]) for edit in edits]


def devices(pod, claims, classes):
    """The claims of devices and their classes then."""
    known = listers(resource_claims=claims, device_classes=classes)
    edits = OtherClasses(known).of_devices(pod)
    return [(edit.target.name, edit.patch[0]["value"]) for edit in edits]


def using(*claims):
    return make_pod("p", volumes=tuple(map(claim_volume, claims)))


def allotted(*claims):
    entries = tuple(PodResourceClaim(name, resource_claim_name=name) for name in claims)
    return make_pod("p", resource_claims=entries)


CLASSES = [make_class(), make_class("b"), make_class("a"), make_class("at-once", mode="Immediate")]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param([make_claim("c")], [("c", "a"), ("c", "b")], id="each class that waits"),
        pytest.param([make_claim("c", volume_name="v")], [], id="bound already"),
        pytest.param([], [], id="not there"),
    ],
)
def test_claims_of_volumes(claims, expected):
    assert expected == storage(using("c"), claims, CLASSES)


def test_a_claim_that_is_made_for_the_pod_is_changed_in_the_pod():
    """Its class is written in the pod's volume: the pod is made again."""
    pod = make_pod("p", volumes=({"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},))
    known = listers(persistent_volume_claims=[make_claim("p-v")], storage_classes=CLASSES)
    edit = next(OtherClasses(known).of_storage(pod))

    assert (
        "make the pod again, the claim of its volume v with storageClassName: a (now wait)" == edit.sentence
    )
    assert ("Pod", "p", "/spec/volumes/0/ephemeral/volumeClaimTemplate/spec/storageClassName") == (
        edit.target.kind,
        edit.target.name,
        edit.patch[0]["path"],
    )


def test_a_claim_of_devices_that_was_made_from_a_template_is_changed_there():
    """The pod's status says which claim it is; without that there is nothing to change yet."""
    entry = PodResourceClaim("d", resource_claim_template_name="t")
    classes = [device_class("gpu"), device_class("small")]
    pod = make_pod("p", resource_claims=(entry,))
    status = replace(pod.status, resource_claim_statuses=({"name": "d", "resourceClaimName": "p-d-x"},))
    known = OtherClasses(listers(resource_claims=[device_claim("p-d-x")], device_classes=classes))
    edit = next(known.of_devices(replace(pod, status=status)))

    assert [] == list(known.of_devices(pod))
    assert (
        "make the pod again, the template t of its claim with deviceClassName: small (now gpu)"
        == edit.sentence
    )
    assert ("ResourceClaimTemplate", "t", "/spec/spec/devices/requests/0/exactly/deviceClassName") == (
        edit.target.kind,
        edit.target.name,
        edit.patch[0]["path"],
    )


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param([device_claim("d")], [("d", "small")], id="the other class"),
        pytest.param([allocated("d", ("pool", "d0"))], [], id="has its devices"),
        pytest.param([], [], id="not there"),
    ],
)
def test_claims_of_devices(claims, expected):
    assert expected == devices(allotted("d"), claims, [device_class(), device_class("small")])


def test_however_many_there_are():
    """As many claims and classes are looked at as a reader may want to try."""
    names = [f"c{i}" for i in range(30)]
    many = [make_class(f"k{i}") for i in range(100)]
    most = MAX_CLAIMS * MAX_CLASSES

    assert most == len(storage(using(*names), map(make_claim, names), many))
    assert most == len(
        devices(allotted(*names), map(device_claim, names), [device_class(f"k{i}") for i in range(100)])
    )


def test_the_pod_keeps_all_else():
    """Its other claims, and all that it does not have to be given again."""
    known = listers(persistent_volume_claims=[make_claim("c"), make_claim("d")], storage_classes=CLASSES)
    pod = using("c", "d")

    first = next(OtherClasses(known).of_storage(pod))

    assert first.supposed.name == first.pod.spec.volumes[0]["persistentVolumeClaim"]["claimName"]
    assert pod.spec.volumes[1] == first.pod.spec.volumes[1]
    assert "make the claim c again with storageClassName: a (now wait)" == first.sentence
