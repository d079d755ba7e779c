"""The order of a search that may stop early."""

from hypothesis import given
from hypothesis import strategies as st

from berth.snapshot.node_tree import ZONE, NodeTree
from berth.testing.builders import make_node

NODES = st.dictionaries(st.integers(0, 30), st.sampled_from(["", "a", "b", "c"]), max_size=20)


def node(number, zone):
    return make_node(f"n{number}", labels={ZONE: zone} if zone else {})


@given(nodes=NODES, gone=st.sets(st.integers(0, 30)))
def test_every_node_is_in_the_order_once(nodes, gone):
    """Whatever came and went, and no zone is ahead of another by more than one node."""
    tree = NodeTree()
    for number, zone in nodes.items():
        tree.put(node(number, zone))
    for number in gone:
        tree.remove(f"n{number}")
    left = {f"n{number}": zone for number, zone in nodes.items() if number not in gone}
    names = tree.names()

    assert sorted(left) == sorted(names)
    for turn in range(len(names)):
        taken = [left[name] for name in names[: turn + 1]]
        for zone in set(left.values()):
            behind = max(map(taken.count, taken)) - taken.count(zone)
            assert behind <= 1 or taken.count(zone) == list(left.values()).count(zone)


def test_nothing_new_leaves_the_version():
    """A node that stays in its zone changes no order."""
    tree = NodeTree()
    tree.put(node(0, "a"))
    version = tree.version
    tree.put(node(0, "a"))
    tree.remove("n9")

    assert version == tree.version
