"""A node with pods added or removed on trial looks like one where that has happened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.objects.pods.host_ports import HostPort
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from tests.unit.snapshot.facts import node_facts

NODES = [make_node("a", labels={"zone": "z"}), make_node("b")]
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 5))
PODS = st.lists(st.tuples(REQUESTS, st.sets(st.sampled_from([80, 443]))), max_size=4)


def on_b(prefix, shapes):
    return [
        make_pod(f"{prefix}{i}", requests=requests, host_ports=ports, node_name="b")
        for i, (requests, ports) in enumerate(shapes)
    ]


@given(stay=PODS, leave=PODS, come=PODS)
def test_what_if_is_what_would_be(stay, leave, come):
    """Pods added and removed on trial give the row that the real change gives."""
    staying, leaving, coming = on_b("s", stay), on_b("l", leave), on_b("c", come)
    all_resources = make_pod("x", requests={"example.com/gpu": 0}, node_name="a")
    before = table(NODES, [all_resources, *staying, *leaving])
    after = table(NODES, [all_resources, *staying, *coming])

    simulated = before.what_if("b", add=map(PodInfo, coming), remove=map(PodInfo, leaving))

    expected = node_facts(after, after.row_of["b"])
    found = node_facts(simulated, 0)
    # Counts over the cluster stay as they are: plugins follow in their own state.
    assert {**expected, "counts": []} == {**found, "counts": []}


def test_the_table_itself_does_not_change():
    """Thinking leaves no trace."""
    nodes = table(NODES, [make_pod("p", requests={"cpu": "1"}, host_ports=[80], node_name="b")])
    before = [node_facts(nodes, row) for row in range(2)]

    nodes.what_if("b", add=[PodInfo(make_pod("q", requests={"cpu": "1"}, host_ports=[81]))])

    assert before == [node_facts(nodes, row) for row in range(2)]
    assert nodes.port_conflicts([HostPort("0.0.0.0", "TCP", 81)]) is None


def test_an_unknown_node_is_an_error():
    with pytest.raises(KeyError):
        table(NODES).what_if("nowhere")


def test_rows_that_change_are_noted():
    """New rows, rows whose pods or nodes change, and the row that a removal fills."""
    cache, nodes = Cache(), Snapshot()
    noted = []
    for change in (
        lambda: [cache.add_node(make_node(name)) for name in "abc"],
        lambda: cache.add_pod(make_pod("p", node_name="b")),
        lambda: cache.update_node(None, make_node("c", labels={"zone": "z"})),
        lambda: cache.remove_node(make_node("a")),
    ):
        position = nodes.changed_rows.end
        change()
        cache.update_snapshot(nodes)
        noted.append(set(nodes.changed_rows.since(position)))

    assert [{0, 1, 2}, {1}, {2}, {0}] == noted
