"""The expander leaves the options that make their pods fit and waste least, as the engine sees it."""

import grpc
import pytest

from berth.sandbox.bodies.protobuf import read_bare
from berth.simulation_service import expander
from tests.unit.simulation.kit import APART, APP, GANGS, SPREAD, ZONE, gang, node, pod
from tests.unit.simulation_service.kit import cluster_of, groups, options_request, served, wire
from tests.unit.simulation_service.test_service import refused


async def best(there, options, nodes, gates=(), **fields):
    """The groups that are left of these options."""
    async with served(cluster_of(*there), gates=gates) as at:
        return groups(await at.expander.BestOptions(options_request(options, nodes, **fields)))


def gpu(document, count):
    document["status"]["capacity"]["example.com/gpu"] = str(count)
    return document


@pytest.mark.parametrize("as_bytes", [False, True], ids=["before Kubernetes 1.35", "since then"])
async def test_the_least_waste(as_bytes):
    """Of two groups that make the pods fit, the one is left whose nodes they fill better."""
    pods = [pod(f"p{i}") for i in range(4)]
    nodes = {"large": node("large", cpu="16"), "fitting": node("fitting", cpu="4")}

    found = await best([], [("large", 1, pods), ("fitting", 1, pods)], nodes, as_bytes=as_bytes)

    assert ["fitting"] == found


async def test_equals_are_all_left():
    """Groups that are as good as each other are all left, in their order, for the next expander."""
    nodes = {"b": node("x"), "a": node("y"), "c": node("z", cpu="8")}

    assert ["b", "a"] == await best([], [(group, 1, [pod("p")]) for group in nodes], nodes)


async def test_what_does_not_help_is_left_out():
    """A group whose node the engine does not let the pod on is dropped, whatever the autoscaler thinks."""
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    nodes = {"tainted": node("t", cpu="1", taints=[taint]), "open": node("o", cpu="64")}

    assert ["open"] == await best([], [(group, 1, [pod("p")]) for group in nodes], nodes)


async def test_pods_in_common_are_decoded_once(monkeypatch):
    """A pod that several options have is read as protobuf once."""
    read = []

    def counted(data, api_version, kind):
        read.append(kind)
        return read_bare(data, api_version, kind)

    monkeypatch.setattr(expander, "read_bare", counted)
    nodes = {group: node(group) for group in "abc"}

    assert ["a", "b", "c"] == await best([], [(group, 1, [pod("p")]) for group in nodes], nodes)
    assert ["Node", "Node", "Node", "Pod"] == sorted(read)


async def test_none_helps():
    """Where no group helps, none is left."""
    assert [] == await best([], [("a", 1, [pod("p", cpu="8")])], {"a": node("x", cpu="4")})


async def test_spreading_counts_the_running_pods():
    """A zone that has too many of the pods already does not help."""
    there = [node("n0", cpu="1", labels={ZONE: "a"}), node("n1", cpu="1", labels={ZONE: "b"})]
    there.append(pod("q", labels=APP, nodeName="n0"))
    there.append(pod("r", nodeName="n1"))
    nodes = {zone: node(zone, cpu="1", labels={ZONE: zone}) for zone in ("a", "b")}
    asking = [pod("p", labels=APP, topologySpreadConstraints=[SPREAD])]

    assert ["b"] == await best(there, [(zone, 1, asking) for zone in nodes], nodes)


async def test_affinity_among_the_pods():
    """Pods that keep apart need a node each: large ones are wasted on them."""
    pods = [pod(f"p{i}", labels=APP, affinity=APART) for i in range(3)]
    nodes = {"large": node("l", cpu="16"), "small": node("s", cpu="2")}

    assert ["small"] == await best([], [("large", 3, pods), ("small", 3, pods)], nodes)


async def test_all_its_pods_before_some():
    """A group that makes all of its pods fit comes before one that makes some of them fit with less waste."""
    pods = [pod(f"p{i}") for i in range(4)]
    nodes = {"some": node("s", cpu="2"), "all": node("a", cpu="16")}

    assert ["all"] == await best([], [("some", 1, pods), ("all", 1, pods)], nodes)


async def test_nodes_that_are_not_used_are_wasted():
    """A group that would grow by more nodes than the engine uses wastes those."""
    nodes = {"two": node("a"), "one": node("b")}

    assert ["one"] == await best([], [("two", 2, [pod("p")]), ("one", 1, [pod("p")])], nodes)


async def test_devices_are_wasted():
    """A pod that asks for no GPU is not given a node with GPUs."""
    nodes = {"gpu": gpu(node("g"), 8), "plain": node("p")}

    assert ["plain"] == await best([], [(group, 1, [pod("p")]) for group in nodes], nodes)


async def test_devices_are_used():
    """A pod that asks for a GPU is given the node with fewer of them to spare."""
    asking = pod("p")
    asking["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1", "example.com/gpu": "1"},
        "limits": {"example.com/gpu": "1"},
    }
    nodes = {"eight": gpu(node("g"), 8), "one": gpu(node("h"), 1), "plain": node("p")}

    assert ["one"] == await best([], [(group, 1, [asking]) for group in nodes], nodes)


async def test_pods_that_were_bound_meanwhile():
    """A pod that the cluster shows on a node needs none: it is left out of its option."""
    bound = pod("p", nodeName="n0")
    bound["metadata"] |= {"uid": "u1", "namespace": "default"}
    asked = pod("p", cpu="64")
    asked["metadata"] |= {"uid": "u1", "namespace": "default"}
    there, nodes = [node("n0"), bound], {"a": node("x"), "b": node("y", cpu="8")}

    assert ["a"] == await best(there, [(group, 1, [asked, pod("o", cpu="4")]) for group in nodes], nodes)


async def test_pods_of_another_scheduler():
    """An option whose pods another scheduler decides on is kept where no other helps, and only there."""
    others = [pod("p", schedulerName="another")]
    nodes = {"theirs": node("t"), "ours": node("o")}
    options = [("theirs", 1, others), ("ours", 1, [pod("q")])]

    assert ["ours"] == await best([], options, nodes)
    assert ["theirs"] == await best([], options[:1], nodes)


async def test_a_gang_is_placed_together():
    """Groups whose nodes make all of a gang fit are left; one that has room for a part of it is of no use."""
    group, pods = gang("g", 5)
    nodes = {name: node(name, cpu="2") for name in ("few", "enough", "same")}

    found = await best([group], [("few", 2, pods), ("enough", 3, pods), ("same", 3, pods)], nodes, GANGS)

    assert ["enough", "same"] == found


@pytest.mark.parametrize(
    ("options", "nodes", "text"),
    [
        ([("a", 1, [])], {}, "found no node of the group 'a'"),
        ([("a", 0, [])], {"a": node("x")}, "nodeCount: found 0"),
    ],
)
async def test_wrong_requests(options, nodes, text):
    """A request that can't be answered says what is wrong; the autoscaler then keeps all options."""
    async with served() as at:
        code, said = await refused(at.expander.BestOptions(options_request(options, nodes)))

    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert text in said


async def test_what_is_no_protobuf():
    """A pod that is cut off is named by its group."""
    request = options_request([("a", 1, [])], {"a": node("x")})
    request.options[0].podBytes.append(wire(pod("p"))[:-1])
    async with served() as at:
        code, said = await refused(at.expander.BestOptions(request))

    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert "pods of a: no Pod as protobuf" in said
