"""Pools and views of devices, and what of them outlives a change."""

from berth.objects.steps import at_once
from berth.plugins.dynamic_resources.inventory import Inventory
from berth.snapshot.node_info import NodeInfo
from berth.testing.builders import make_node
from berth.testing.clusters import table
from tests.unit.plugins.dynamic_resources.kit import device, make_slice

ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}


def names(view):
    return [d.id.device for part in view.parts for d in part.devices]


def seen(inventory, nodes):
    groups = at_once(inventory.groups(nodes)).tolist()
    return {name: names(inventory.view(g)) for name, g in zip(nodes.names, groups, strict=True)}


def test_unchanged_slices_keep_their_devices():
    """What was worked out of a device stays while its slice does."""
    kept, changed = make_slice("s0", [device("a")]), make_slice("s1", [device("b")])
    before = Inventory([kept, changed])
    after = Inventory([kept, make_slice("s1", [device("b")])], before)
    pairs = zip(before.pools, after.pools, strict=True)
    same = {old.devices[0].id.device: old.devices[0] is new.devices[0] for old, new in pairs}

    assert {"a": True, "b": False} == same


def test_views_follow_the_nodes():
    """A node that gets another label reaches other devices from then on."""
    inventory = Inventory([make_slice("s0", [device("a")], nodeSelector={"nodeSelectorTerms": [ZONE_A]})])
    nodes = table([make_node("n0", labels={"zone": "a"}), make_node("n1")])
    assert {"n0": ["a"], "n1": []} == seen(inventory, nodes)
    info = NodeInfo("n1")
    info.set_node(make_node("n1", labels={"zone": "a"}))
    nodes.take([info])

    assert {"n0": ["a"], "n1": ["a"]} == seen(inventory, nodes)


def test_some_rows_see_what_they_see_in_the_whole():
    """A view of some rows answers for those rows."""
    inventory = Inventory([make_slice("s0", [device("a")], node="n1"), make_slice("s1", [device("b")])])
    nodes = table([make_node("n0"), make_node("n1"), make_node("n2")])

    assert {"n1": ["a", "b"]} == seen(inventory, nodes.view(slice(1, 2)))
    assert {"n0": ["b"], "n1": ["a", "b"], "n2": ["b"]} == seen(inventory, nodes)
