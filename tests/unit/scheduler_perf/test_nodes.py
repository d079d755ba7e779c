"""Nodes have what templates and strategies give them."""

from tests.scheduler_perf.nodes import HOSTNAME, base_node, csi_node, prepared
from tests.scheduler_perf.operations import Operation
from tests.scheduler_perf.requests import Requests


def make(index=0, node=None, **fields):
    operation = Operation("createNodes", fields, "here")
    return prepared(node or base_node("node-0-"), index, operation, Requests(None).generated)


def test_a_plain_node():
    """A name from the prefix, its own hostname, upstream's capacity."""
    node = make()
    name = node["metadata"]["name"]

    assert (name.startswith("node-0-"), len("node-0-") + 5) == (True, len(name))
    assert {HOSTNAME: name} == node["metadata"]["labels"]
    assert {"pods": "110", "cpu": "4", "memory": "32Gi"} == node["status"]["allocatable"]


def test_labels_go_round():
    """Each node has the next value."""
    strategy = {"labelKey": "zone", "labelValues": ["a", "b"]}
    nodes = [make(i, labelNodePrepareStrategy=strategy) for i in range(3)]

    assert ["a", "b", "a"] == [node["metadata"]["labels"]["zone"] for node in nodes]


def test_unique_labels():
    """No two nodes share a value."""
    nodes = [make(i, uniqueNodeLabelStrategy={"labelKey": "rack"}) for i in range(9)]

    assert 9 == len({node["metadata"]["labels"]["rack"] for node in nodes})


def test_a_template():
    """What it says stays, and capacity is what can be allocated."""
    template = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "status": {"capacity": {"cpu": "1"}},
    }
    node = make(node=template)

    assert ({"a": "b", HOSTNAME: "n"}, {"cpu": "1"}) == (
        node["metadata"]["labels"],
        node["status"]["allocatable"],
    )


def test_a_csi_node():
    """Drivers with what they allow, and plugins that moved to them."""
    found = csi_node("n", {"csiNodeAllocatable": {"ebs": {"count": 39}}, "migratedPlugins": ["a", "b"]})

    assert [{"name": "ebs", "nodeID": "n", "allocatable": {"count": 39}}] == found["spec"]["drivers"]
    assert "a,b" in found["metadata"]["annotations"].values()
