"""What works on a server of 1.36 works on one of 1.37 and 1.38, and is written in the version served."""

import aiohttp
import pytest

from tests.unit.scheduler_at_work import eventually, node, scheduling

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
NEWER = [(1, 37), (1, 38)]
RACK = "example.com/rack"
QUORUM = "waiting for minCount pods from a gang to appear in scheduling queue"
DEVICES = {"apiVersion": "resource.k8s.io/v1"}


def group(name, size, **spec):
    """A gang of v1beta1."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}, **spec},
    }


def member(name, of="", cpu="3", **spec):
    """A pod that takes most of a node."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    grouped = {"schedulingGroup": {"podGroupName": of}} if of else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **grouped, **spec},
    }


def nodes_of(sandbox):
    """The node of each pod that has one."""
    pods = [entry.decode() for entry in sandbox.store.collection("pods").entries()]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]}


def conditions(sandbox, name):
    """The conditions of a group: type, status."""
    found = sandbox.store.collection("podgroups.scheduling.k8s.io").get(f"default/{name}").decode()
    return [(each["type"], each["status"]) for each in found.get("status", {}).get("conditions", ())]


@pytest.mark.parametrize("release", NEWER)
async def test_a_gang(tmp_path, release):
    """It is bound as a whole, and its condition has the name of the release."""
    documents = (node("n1"), node("n2"), group("g", 2), member("a", "g"), member("b", "g"))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=GATES) as (sandbox, _):
        await eventually(lambda: len(nodes_of(sandbox)) == 2)
        await eventually(lambda: conditions(sandbox, "g"))

        assert [("PodGroupInitiallyScheduled", "True")] == conditions(sandbox, "g")
        assert {"n1", "n2"} == set(nodes_of(sandbox).values())


@pytest.mark.parametrize("release", NEWER)
async def test_a_gang_from_its_first_pod_to_one_left_over(tmp_path, release):
    """It waits for its third pod; a fourth has no room, and fits once there is a node for it."""
    documents = (node("n1"), node("n2"), node("n3"), group("g", 3), member("a", "g"), member("b", "g"))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=GATES) as (sandbox, core):
        await eventually(lambda: 2 == core.queue.sizes().gated)
        assert QUORUM == core.queue.gate_of(core.queue.record("default", "a")).message
        assert {} == nodes_of(sandbox)
        sandbox.load([member("c", "g")])
        await eventually(lambda: conditions(sandbox, "g"))
        await eventually(lambda: 3 == len(nodes_of(sandbox)))
        sandbox.load([member("d", "g")])
        await eventually(lambda: "Insufficient cpu" in message(sandbox, "d"))
        assert [("PodGroupInitiallyScheduled", "True")] == conditions(sandbox, "g")
        sandbox.load([node("n4")])
        await eventually(lambda: 4 == len(nodes_of(sandbox)))

        assert "n4" == nodes_of(sandbox)["d"]


@pytest.mark.parametrize("release", NEWER)
async def test_a_gang_that_is_content_with_fewer_pods(tmp_path, release):
    """Its minCount is lowered to the pods that are there, and all of them go."""
    documents = (node("n1"), node("n2"), group("g", 3), member("a", "g"), member("b", "g"))
    async with (
        scheduling(tmp_path / "k", *documents, release=release, gates=GATES) as (sandbox, core),
        aiohttp.ClientSession() as client,
    ):
        await eventually(lambda: 2 == core.queue.sizes().gated)
        answer = await client.patch(
            f"{sandbox.url}/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/g",
            json={"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
            headers={"Content-Type": "application/merge-patch+json"},
        )
        assert 200 == answer.status, await answer.text()
        await eventually(lambda: 2 == len(nodes_of(sandbox)))

        assert {"n1", "n2"} == set(nodes_of(sandbox).values())


def message(sandbox, name):
    """What the pod's PodScheduled says; empty while it says nothing."""
    pod = sandbox.store.collection("pods").get(f"default/{name}").decode()
    found = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return found[0].get("message", "") if found else ""


@pytest.mark.parametrize("release", NEWER)
async def test_a_group_of_one_rack(tmp_path, release):
    """A topology constraint keeps it together."""
    racks = [node(f"{rack}{i}", **{RACK: rack}) for rack in ("a", "b") for i in (1, 2)]
    taken = member("taken", nodeName="a1")
    together = group("g", 2, schedulingConstraints={"topology": [{"key": RACK}]})
    documents = (*racks, taken, together, member("a", "g"), member("b", "g"))
    async with scheduling(tmp_path / "k", *documents, release=release, gates=GATES) as (sandbox, _):
        await eventually(lambda: len(nodes_of(sandbox)) == 3)

        assert {"b1", "b2"} == {nodes_of(sandbox)[name] for name in ("a", "b")}


@pytest.mark.parametrize("release", NEWER)
async def test_a_claim_from_a_template(tmp_path, release):
    """The claim that was made of it is allocated, and the pod bound where its device is."""
    pod = claiming("a-gpu")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
    pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "a-gpu"}]}
    documents = (node("n1"), node("n2"), *devices(), pod)
    async with scheduling(tmp_path / "k", *documents, release=release) as (sandbox, _):
        uid = sandbox.store.collection("pods").get("default/a").decode()["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, "controller": True}
        made = claim("a-gpu")
        made["metadata"]["ownerReferences"] = [owner]
        sandbox.load([made])
        await eventually(lambda: nodes_of(sandbox))
        stored = sandbox.store.collection("resourceclaims.resource.k8s.io").get("default/a-gpu").decode()

        assert {"a": "n2"} == nodes_of(sandbox)
        assert ["d0"] == [each["device"] for each in stored["status"]["allocation"]["devices"]["results"]]


def claiming(name):
    """A pod with that claim."""
    return member("a", cpu="1", resourceClaims=[{"name": "gpu", "resourceClaimName": name}])


def claim(name):
    """A claim of one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        **DEVICES,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def devices():
    """One device, on node n2, and its class."""
    pool = {"name": "n2", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n2", "pool": pool, "devices": [{"name": "d0"}]}
    yield {**DEVICES, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    yield {**DEVICES, "kind": "ResourceSlice", "metadata": {"name": "n2"}, "spec": spec}


@pytest.mark.parametrize(
    ("release", "version", "waits"), [((1, 36), "v1beta2", False), ((1, 37), "v1", True)]
)
async def test_a_device_taint_rule_by_default(tmp_path, release, version, waits):
    """Up to 1.36 it is not read without a gate; from 1.37 on its device is allocated to no pod."""
    taint = {"key": "k", "effect": "NoSchedule"}
    rule = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": "d.example.com"}, "taint": taint},
    }
    documents = (node("n2"), *devices(), rule, claim("gpu"), claiming("gpu"), member("last", cpu="1"))
    async with scheduling(tmp_path / "k", *documents, release=release) as (sandbox, _):
        await eventually(lambda: "last" in nodes_of(sandbox))
        await eventually(lambda: "a" in nodes_of(sandbox) or waiting(sandbox))

        assert waits == ("a" not in nodes_of(sandbox))


def waiting(sandbox):
    """Whether pod a was told that it does not fit."""
    pod = sandbox.store.collection("pods").get("default/a").decode()
    return any(each["status"] == "False" for each in pod["status"].get("conditions", ()))


def tree(name, parent=""):
    """A CompositePodGroup, below another one."""
    above = {"parentCompositePodGroupName": parent} if parent else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 1}}, "workloadRef": {"name": "w"}, **above},
    }


@pytest.mark.parametrize("release", NEWER)
async def test_a_tree_of_groups(tmp_path, release):
    """It is bound as one, and its groups say so, trees from 1.38 on; others wait for their root."""
    gates = GATES | {"CompositePodGroup": True}
    documents = (
        node("n1"),
        node("n2"),
        tree("root"),
        tree("middle", "root"),
        tree("apart", "gone"),
        group("g", 1, parentCompositePodGroupName="middle"),
        group("h", 1, parentCompositePodGroupName="root"),
        group("i", 1, parentCompositePodGroupName="apart"),
        *(member(name, of) for name, of in (("a", "g"), ("b", "h"), ("c", "i"))),
    )
    async with scheduling(tmp_path / "k", *documents, release=release, gates=gates) as (sandbox, core):
        trees = sandbox.store.collection("compositepodgroups.scheduling.k8s.io")

        def of(name):
            found = trees.get(f"default/{name}").decode().get("status", {}).get("conditions", ())
            return [(each["type"], each["status"], each["reason"]) for each in found]

        written = release >= (1, 38)
        await eventually(lambda: (of("root") and of("middle")) or not written)
        await eventually(lambda: conditions(sandbox, "h") and 2 == len(nodes_of(sandbox)))
        waits = core.queue.gate_of(core.queue.record("default", "c")).message
        expected = [("CompositePodGroupInitiallyScheduled", "True", "Scheduled")] if written else []

        assert {"a", "b"} == set(nodes_of(sandbox))
        assert [expected, expected, []] == [of(name) for name in ("root", "middle", "apart")]
        assert "waiting for composite pod group default/gone to be created" == waits


@pytest.mark.parametrize("release", [(1, 36), *NEWER])
async def test_metrics_of_informers(tmp_path, release):
    """From 1.37 on, by client-go's names (kubernetes/kubernetes#140511)."""
    async with scheduling(tmp_path / "k", node("n1"), member("a"), release=release) as (sandbox, core):
        await eventually(lambda: nodes_of(sandbox))
        shown = core._metrics.event_handled.__self__
        text = shown.text().decode()
    of_pods = 'informer_processing_latency_seconds_count{group="",name="kube-scheduler",resource="pods"'

    assert (release in NEWER) == (of_pods in text)
