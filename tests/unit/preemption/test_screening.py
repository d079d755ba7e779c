"""Nodes without their less important pods, as columns that follow the snapshot."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.preemption.screening import Screening
from berth.snapshot.snapshot import Snapshot
from tests.suite import examples
from tests.unit.preemption.kit import node, placed

NODES = [node(f"n{i}") for i in range(3)]
PODS = [
    placed(
        f"p{i}", "125m", priority=i % 3, on=f"n{i % 2}", host_ports=[80 + i], labels={"example.com/i": str(i)}
    )
    for i in range(6)
]


def rebuilt(nodes, priority):
    """What each node is without the pods below the priority, worked out pod by pod."""
    found = {}
    for name, row in nodes.row_of.items():
        left = [info for info in nodes.pods[row].values() if info.pod.priority >= priority]
        found[name] = {
            "pods": {info.pod.name for info in left},
            "cpu": sum(info.requests.get("cpu", 0) for info in left),
            "non_zero": sum(info.non_zero[0] for info in left),
            "ports": {port for info in left for port in info.ports},
        }
    return found


def shown(nodes, beneath):
    """The same, as the columns have it."""
    table = beneath.without(np.arange(len(nodes)))
    cpu = table.resource_index("cpu")
    return {
        name: {
            "pods": {info.pod.name for info in table.pods[row].values()},
            "cpu": int(table.requested[cpu, row]),
            "non_zero": int(table.non_zero_requested[0, row]),
            "ports": table.ports[row],
        }
        for name, row in table.row_of.items()
    }


events = st.lists(st.tuples(st.sampled_from("pn"), st.integers(0, 5), st.integers(0, 2)), max_size=20)


@settings(max_examples=examples(80), deadline=None)
@given(events)
def test_the_columns_equal_those_worked_out_anew(steps):
    """After any sequence of pods and nodes that come and go, for priorities that ask in any order."""
    cache, snapshot, screening = Cache(), Snapshot(), Screening()
    pods, nodes = set(), set()
    for kind, i, priority in steps:
        if kind == "p":
            toggle(pods, i, lambda i: cache.add_pod(PODS[i]), lambda i: cache.remove_pod(PODS[i]))
        else:
            toggle(nodes, i % 3, lambda i: cache.add_node(NODES[i]), lambda i: cache.remove_node(NODES[i]))
        cache.update_snapshot(snapshot)
        assert rebuilt(snapshot, priority) == shown(snapshot, screening.beneath(priority, snapshot))


def toggle(there, i, come, go):
    (go if i in there else come)(i)
    there ^= {i}


def test_a_table_that_was_changed_changes_no_other():
    cache, snapshot, screening = Cache(), Snapshot(), Screening()
    cache.add_node(NODES[0])
    cache.add_pod(PODS[2])
    cache.update_snapshot(snapshot)
    beneath = screening.beneath(1, snapshot)
    table = beneath.without(np.arange(1))
    table.pods[0].clear()
    table.ports[0].clear()
    table.requested[:] = 7

    assert rebuilt(snapshot, 1) == shown(snapshot, beneath)


def test_only_the_priorities_that_asked_last_are_remembered():
    cache, snapshot, screening = Cache(), Snapshot(), Screening()
    cache.add_node(NODES[0])
    cache.update_snapshot(snapshot)
    first = screening.beneath(0, snapshot)
    second = screening.beneath(1, snapshot)
    for priority in (0, 2, 3, 4):
        screening.beneath(priority, snapshot)

    assert first is screening.beneath(0, snapshot)
    assert second is not screening.beneath(1, snapshot)
