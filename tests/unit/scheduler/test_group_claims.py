"""Claims that a pod group shares (KEP-5729), on a real sandbox over HTTP, as each release has them.

After kubernetes/kubernetes test/e2e/dra/dra.go and test/integration/dra (v1.36): claims of a PodGroup.
What kube-controller-manager does, making claims from templates and evicting pods from tainted devices, is
played by hand here, and done by itself in tests/e2e/test_group_claims.py.
"""

import pytest

from tests.unit.scheduler.test_newer_servers import member, nodes_of
from tests.unit.scheduler_at_work import eventually, node, scheduling

RELEASES = [(1, 36), (1, 37), (1, 38)]
SCHEDULING = {(1, 36): "v1alpha2", (1, 37): "v1beta1", (1, 38): "v1beta1"}
DEVICES = {"apiVersion": "resource.k8s.io/v1"}
TAINT = {"key": "example.com/taint", "value": "tainted", "effect": "NoSchedule"}
ANY_TAINT = {"operator": "Exists", "effect": "NoSchedule"}
ENTRY = {"name": "shared", "resourceClaimName": "c"}
FROM_TEMPLATE = {"name": "shared", "resourceClaimTemplateName": "t"}


def gates(release):
    """Those of workloads and their claims."""
    gang = {"GangScheduling": True} if release == (1, 36) else {}
    return {"GenericWorkload": True, "DRAWorkloadResourceClaims": True, "DRADeviceTaintRules": True, **gang}


def group(release, *entries, size=1):
    """A gang that shares these claims."""
    return {
        "apiVersion": f"scheduling.k8s.io/{SCHEDULING[release]}",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}, "resourceClaims": list(entries)},
    }


def one_device(**device):
    """A class, and a device that every node reaches."""
    pool = {"name": "f", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "net.test", "allNodes": True, "pool": pool, "devices": [{"name": "d0", **device}]}
    return (
        {**DEVICES, "kind": "DeviceClass", "metadata": {"name": "net"}, "spec": {}},
        {**DEVICES, "kind": "ResourceSlice", "metadata": {"name": "f"}, "spec": spec},
    )


def claim(name="c", owner=None, class_name="net", **exactly):
    """A claim for one device, made for that owner."""
    request = {"name": "r", "exactly": {"deviceClassName": class_name, **exactly}}
    owners = {"ownerReferences": [owner]} if owner else {}
    return {
        **DEVICES,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", **owners},
        "spec": {"devices": {"requests": [request]}},
    }


def user(name, *entries, made="", **spec):
    """A pod of the group with these claims; `made` is the claim of its first one, by the pod's status."""
    pod = member(name, "g", cpu="10m", resourceClaims=list(entries), **spec)
    if made:
        pod["status"] = {"resourceClaimStatuses": [{"name": entries[0]["name"], "resourceClaimName": made}]}
    return pod


def stored(sandbox, plural, name):
    """The object as the API server has it."""
    return sandbox.store.collection(plural).get(f"default/{name}").decode()


def consumers(sandbox, name="c"):
    """What the claim is reserved for."""
    status = stored(sandbox, "resourceclaims.resource.k8s.io", name).get("status", {})
    return [(each["resource"], each["name"]) for each in status.get("reservedFor", ())]


def devices_of(sandbox, name="c"):
    """The devices of the claim."""
    allocation = stored(sandbox, "resourceclaims.resource.k8s.io", name)["status"]["allocation"]
    return [each["device"] for each in allocation["devices"]["results"]]


def condition(sandbox, name="a"):
    """(reason, message) of the pod's PodScheduled, None where it has none."""
    found = stored(sandbox, "pods", name)["status"].get("conditions", ())
    return next(((c.get("reason"), c.get("message")) for c in found if c["type"] == "PodScheduled"), None)


def made_for(sandbox, release):
    """The owner reference of the group in what its claim controller makes."""
    uid = stored(sandbox, "podgroups.scheduling.k8s.io", "g")["metadata"]["uid"]
    version = f"scheduling.k8s.io/{SCHEDULING[release]}"
    return {"apiVersion": version, "kind": "PodGroup", "name": "g", "uid": uid, "controller": True}


@pytest.mark.parametrize("release", RELEASES)
async def test_allocates_devices_for_pod_groups(tmp_path, release):
    """The claim that both name is allocated, and reserved for the group alone."""
    documents = (node("n1"), *one_device(), claim(), group(release, ENTRY), user("a", ENTRY))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (sandbox, _):
        await eventually(lambda: nodes_of(sandbox))

        assert (["d0"], [("podgroups", "g")]) == (devices_of(sandbox), consumers(sandbox))


@pytest.mark.parametrize("release", RELEASES)
async def test_generates_claims_from_templates_for_pod_groups(tmp_path, release):
    """The pod waits for the claim of its group, and uses it though it is not the owner."""
    documents = (
        node("n1"),
        *one_device(),
        group(release, FROM_TEMPLATE),
        user("a", FROM_TEMPLATE, made="g-shared-x"),
    )
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (
        sandbox,
        core,
    ):
        await eventually(lambda: core.queue.sizes().gated)
        sandbox.load([claim("g-shared-x", made_for(sandbox, release))])
        await eventually(lambda: nodes_of(sandbox))

        assert [("podgroups", "g")] == consumers(sandbox, "g-shared-x")


@pytest.mark.parametrize("release", RELEASES)
async def test_no_schedule_keeps_a_pod_with_a_claim_of_its_group_pending(tmp_path, release):
    """It has a condition that says so."""
    tainted = one_device(taints=[TAINT])
    documents = (node("n1"), *tainted, claim(), group(release, ENTRY), user("a", ENTRY))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (sandbox, _):
        await eventually(lambda: condition(sandbox))
        reason, message = condition(sandbox)

        assert "Unschedulable" == reason
        assert "0/1 nodes are available: 1 cannot allocate all claims." in message


@pytest.mark.parametrize("release", RELEASES)
async def test_no_schedule_can_be_tolerated_for_claims_of_a_group(tmp_path, release):
    """By the toleration of the claim's request."""
    documents = (
        node("n1"),
        *one_device(taints=[TAINT]),
        claim(tolerations=[ANY_TAINT]),
        group(release, ENTRY),
        user("a", ENTRY),
    )
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (sandbox, _):
        await eventually(lambda: nodes_of(sandbox))

        assert ["d0"] == devices_of(sandbox)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_device_taint_rule_keeps_devices_from_claims_of_a_group(tmp_path, release):
    """What is allocated stays so until its pods are evicted; a claim that comes later gets nothing."""
    version = "v1beta2" if release == (1, 36) else "v1"
    rule = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": "net.test"}, "taint": {"key": "k", "effect": "NoExecute"}},
    }
    later = {"name": "later", "resourceClaimName": "c2"}
    slices = one_device()
    slices[1]["spec"]["devices"] = [{"name": "d0"}, {"name": "d1"}]
    documents = (node("n1"), *slices, claim(), claim("c2"), group(release, ENTRY, later), user("a", ENTRY))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (
        sandbox,
        core,
    ):
        await eventually(lambda: nodes_of(sandbox))
        sandbox.load([rule])
        await eventually(lambda: len(list(core.listers.device_taint_rules)))
        sandbox.load([user("b", later)])
        await eventually(lambda: condition(sandbox, "b"))

        assert "cannot allocate all claims" in condition(sandbox, "b")[1]
        assert (["d0"], [("podgroups", "g")]) == (devices_of(sandbox), consumers(sandbox))


@pytest.mark.parametrize("release", RELEASES)
async def test_a_claim_of_the_group_beside_one_of_the_pods(tmp_path, release):
    """The first pod's claim gains a consumer with the second pod; the group's does not."""
    of_pods = {"name": "own", "resourceClaimName": "p"}
    documents = [node("n1"), *one_device(), claim(), claim("p"), group(release, ENTRY)]
    documents[2]["spec"]["devices"] = [{"name": "d0"}, {"name": "d1"}]
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (sandbox, _):
        sandbox.load([user("a", of_pods, ENTRY)])
        await eventually(lambda: "a" in nodes_of(sandbox))
        assert ([("pods", "a")], [("podgroups", "g")]) == (consumers(sandbox, "p"), consumers(sandbox))
        sandbox.load([user("b", of_pods, ENTRY)])
        await eventually(lambda: "b" in nodes_of(sandbox))

        assert [("pods", "a"), ("pods", "b")] == consumers(sandbox, "p")
        assert [("podgroups", "g")] == consumers(sandbox)


@pytest.mark.parametrize("release", RELEASES)
async def test_more_pods_than_a_claim_may_have_consumers(tmp_path, release):
    """300 pods share one claim, which is reserved once (the API allows 256 consumers)."""
    names = [f"p{i}" for i in range(300)]
    large = [node(f"n{i}") for i in range(15)]
    documents = (
        *large,
        *one_device(),
        claim(),
        group(release, ENTRY, size=300),
        *(user(n, ENTRY) for n in names),
    )
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (sandbox, _):
        await eventually(lambda: len(nodes_of(sandbox)) == 300)

        assert [("podgroups", "g")] == consumers(sandbox)


@pytest.mark.parametrize("release", RELEASES)
async def test_devices_of_a_binding_that_failed(tmp_path, release):
    """Held for the group on a node that is gone they are given up, and it goes where there are others."""
    field = {"key": "metadata.name", "operator": "In", "values": ["gone"]}
    allocation = {
        "devices": {"results": [{"request": "r", "driver": "net.test", "pool": "gone", "device": "d9"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    documents = (node("n1"), *one_device(), group(release, ENTRY))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates(release)) as (sandbox, _):
        uid = made_for(sandbox, release)["uid"]
        left = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": uid}
        sandbox.load([claim() | {"status": {"allocation": allocation, "reservedFor": [left]}}])
        sandbox.load([user("a", ENTRY)])
        await eventually(lambda: nodes_of(sandbox))

        assert (["d0"], [("podgroups", "g")]) == (devices_of(sandbox), consumers(sandbox))
