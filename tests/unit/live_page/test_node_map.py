"""The heat map's nodes, groups and shares."""

import json

import msgspec
import numpy as np

from berth.cache.cache import Cache
from berth.live_page.node_map import (
    MAX_GROUPS,
    MAX_RESOURCES,
    NOT_OFFERED,
    MappedNodes,
    NodeMap,
    ResourceShare,
)
from berth.objects.quantity import MAX_INT64
from berth.snapshot.node_tree import ZONE
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from tests.hostile.work import calls

GPU = "example.com/gpu"


def offer(**amounts):
    return {"cpu": "4", "memory": "8Gi", "pods": "10", **amounts}


def shown(*nodes, placed=()):
    found = NodeMap(table(nodes, placed))
    found.refresh()
    return found


def resources(*nodes, placed=()):
    return {each.name: each for each in shown(*nodes, placed=placed).resources()}


def document(found):
    return msgspec.json.decode(found.nodes, type=MappedNodes)


def test_shares_in_percent():
    """255 where a node offers none of it."""
    pod = make_pod(requests={"cpu": "3", GPU: 1}, node_name="a")
    found = resources(make_node("a", allocatable=offer(**{GPU: 2})), make_node("b"), placed=[pod])

    assert {"cpu": [75, 0], "memory": [0, 0], "pods": [10, 0], GPU: [50, NOT_OFFERED]} == {
        name: [*each.shares] for name, each in found.items()
    }


def test_sums_of_amounts():
    """Milli-CPU and whole devices."""
    pod = make_pod(requests={"cpu": "3", GPU: 1}, node_name="a")
    found = resources(make_node("a", allocatable=offer(**{GPU: 2})), make_node("b"), placed=[pod])

    assert [(8000.0, 3000.0), (2.0, 1.0)] == [
        (each.allocatable, each.requested) for each in (found["cpu"], found[GPU])
    ]


def test_cordoned_nodes_leave_the_sums():
    """Neither what a cordoned node offers nor what is requested there counts; its own share is shown."""
    nodes = [make_node("a", allocatable=offer()), make_node("b", allocatable=offer(), unschedulable=True)]
    pods = [make_pod(f"p{name}", requests={"cpu": 1}, node_name=name) for name in "ab"]
    alone, found = resources(nodes[0], placed=pods[:1])["cpu"], resources(*nodes, placed=pods)["cpu"]

    assert (alone.allocatable, alone.requested) == (found.allocatable, found.requested)
    assert [alone.shares[0]] * 2 == [*found.shares]


def test_amounts_beyond_all_bounds():
    """What nodes and pods name may be as large as an int64: nothing overflows, and a share has an end."""
    much = {"memory": str(MAX_INT64), "cpu": 0, "pods": 1}
    pods = [make_pod(f"p{i}", requests={"memory": str(MAX_INT64)}, node_name="a") for i in range(3)]
    found = resources(*(make_node(name, allocatable=much) for name in "ab"), placed=pods)

    assert [100, 0] == [*found["memory"].shares]
    assert [200, 0] == [*found["pods"].shares]
    assert [NOT_OFFERED, NOT_OFFERED] == [*found["cpu"].shares]
    assert found["memory"].allocatable == 2.0 * MAX_INT64


def test_the_resources_that_most_nodes_offer():
    """However many kinds of devices there are; ephemeral storage is the last one to be shown."""
    kinds = {f"example.com/d{i:02}": 1 for i in range(40)}
    nodes = [
        make_node("a", allocatable=offer(**kinds, **{"ephemeral-storage": "1Gi"})),
        make_node("b", allocatable=offer(**{"example.com/d07": 1})),
    ]

    names = list(resources(*nodes))
    assert ["cpu", "memory", "pods", "example.com/d07", "example.com/d00"] == names[:5]
    assert MAX_RESOURCES == len(names)


def test_names_and_groups():
    found = document(
        shown(make_node("a", labels={ZONE: "west"}), make_node("b"), make_node("c", labels={ZONE: "east"}))
    )

    assert ["a", "b", "c"] == found.names
    [zones] = found.groupings
    assert ("zone", ["east", "west"]) == (zones.name, zones.values)
    assert [1, 2, 0] == np.frombuffer(zones.of, dtype="<u2").tolist()


def test_groups_are_bounded():
    """The largest have places of their own, all others one together."""
    nodes = [make_node(f"n{i}", labels={ZONE: f"z{i:04}"}) for i in range(MAX_GROUPS + 50)]
    [zones] = document(shown(*nodes, make_node("last", labels={ZONE: "z0299"}))).groupings

    numbers = np.frombuffer(zones.of, dtype="<u2")
    assert (MAX_GROUPS, 50) == (len(zones.values), int((numbers == MAX_GROUPS).sum()))
    assert "z0299" in zones.values


def test_cordoned_nodes_are_bits():
    nodes = [make_node(f"n{i}", unschedulable=i in (1, 9)) for i in range(10)]

    assert bytes([0b01000000, 0b01000000]) == shown(*nodes).cordoned()


def test_the_version_follows_the_nodes():
    """It changes with the nodes, and not with pods or with what is not shown of a node."""
    cache, snapshot = Cache(), Snapshot()
    found, versions = NodeMap(snapshot), []

    def look():
        cache.update_snapshot(snapshot)
        found.refresh()
        versions.append(found.version)

    node = make_node("a")
    cache.add_node(node)
    look()
    cache.add_pod(make_pod(node_name="a"))
    look()
    cordoned = make_node("a", unschedulable=True)
    cache.update_node(node, cordoned)
    look()
    cache.add_node(make_node("b"))
    look()

    assert versions[0] == versions[1] == versions[2]
    assert versions[2] != versions[3]
    assert ["a", "b"] == document(found).names


def test_no_nodes():
    found = shown()

    assert ([], b"") == (document(found).names, found.cordoned())
    assert {b""} == {each.shares for each in found.resources()}


def test_hostile_names_are_data():
    """A label's value is a string of a JSON document, whatever is in it."""
    hostile = '</script><img src=x onerror="alert(1)">'
    found = shown(make_node("a", labels={ZONE: hostile}))

    assert [hostile] == json.loads(found.nodes)["groupings"][0]["values"]


def test_no_python_step_for_a_node():
    """Ten times as many nodes take no more calls."""

    def work(n):
        found = shown(*(make_node(f"n{i}", allocatable=offer(**{GPU: 1})) for i in range(n)))

        def make() -> tuple[list[ResourceShare], bytes]:
            found.refresh()
            return found.resources(), found.cordoned()

        make()
        return calls(make)

    assert work(40) == work(400)
