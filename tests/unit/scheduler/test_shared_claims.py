"""Pods that share one resource claim which has no devices yet, on a real sandbox over HTTP."""

import pytest

from tests.unit.scheduler.test_newer_servers import member, nodes_of
from tests.unit.scheduler_at_work import eventually, node, scheduling

DEVICES = {"apiVersion": "resource.k8s.io/v1"}
GATES = {"GenericWorkload": True, "GangScheduling": True}
BY_DRIVER = {"cel": {"expression": "device.driver == 'net.test'"}}


def named(kind, name, spec, **metadata):
    return DEVICES | {"kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def one_device():
    """A class, a device that every node reaches, and a claim for it."""
    exactly = {"deviceClassName": "net", "allocationMode": "ExactCount", "count": 1}
    pool = {"name": "f", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "net.test", "allNodes": True, "pool": pool, "devices": [{"name": "d0"}]}
    return (
        named("DeviceClass", "net", {"selectors": [BY_DRIVER]}),
        named("ResourceSlice", "f", spec),
        named(
            "ResourceClaim",
            "shared",
            {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            namespace="default",
        ),
    )


def sharing(name, of=""):
    """A pod of the group, or alone, that uses the claim."""
    return member(name, of, cpu="1", resourceClaims=[{"name": "c", "resourceClaimName": "shared"}])


def gang(name, size):
    """A gang of v1alpha2."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


@pytest.mark.parametrize("group", ["", "g"])
async def test_pods_that_share_a_claim_are_all_bound(tmp_path, group):
    """kubernetes/kubernetes#137617: a gang's members count on the devices that the first is about to get."""
    names = ("a", "b", "c")
    pods = [sharing(name, group) for name in names]
    documents = (node("n1"), node("n2"), *one_device(), gang("g", 3), *pods)
    async with scheduling(tmp_path / "k", *documents, gates=GATES) as (sandbox, _):
        await eventually(lambda: set(nodes_of(sandbox)) == set(names))
        claim = sandbox.store.collection("resourceclaims.resource.k8s.io").get("default/shared").decode()

        assert set(names) == {consumer["name"] for consumer in claim["status"]["reservedFor"]}
        assert ["d0"] == [one["device"] for one in claim["status"]["allocation"]["devices"]["results"]]
