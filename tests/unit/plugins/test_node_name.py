from berth.plugins.node_name import NodeName
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, reasons

NODES = [make_node("n0"), make_node("n1")]
OTHER = ("node(s) didn't match the requested node name",)


def test_no_name():
    """A pod that names no node fits everywhere."""
    assert ["n0", "n1"] == feasible(make_plugin(NodeName), make_pod(), NODES)


def test_named():
    """A pod that names a node fits there alone."""
    assert {"n1": OTHER} == reasons(make_plugin(NodeName), make_pod(node_name="n0"), NODES)


def test_named_and_gone():
    """A pod that names a node that is not there fits nowhere."""
    assert {"n0": OTHER, "n1": OTHER} == reasons(make_plugin(NodeName), make_pod(node_name="gone"), NODES)
