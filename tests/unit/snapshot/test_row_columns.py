"""Columns that plugins make of rows, and that follow changes."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.snapshot.columns.resource_columns import MAX_PLACES
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod


def cluster(n):
    cache, nodes = Cache(), Snapshot()
    for i in range(n):
        cache.add_node(make_node(f"n{i}"))
    cache.update_snapshot(nodes)
    return cache, nodes


def pods_there(nodes):
    return nodes.of_rows("pods there", lambda table: table.pod_count * 1, pods_on_row)


def pods_on_row(nodes):
    return lambda row: len(nodes.pods[row])


def pods_and_room(nodes):
    """A column of two numbers a row, in floats: pods, and how many more are allowed."""
    return nodes.of_rows(
        "both",
        lambda table: np.array([table.pod_count, table.allowed_pods - table.pod_count], dtype=np.float64),
        lambda table: lambda row: [len(table.pods[row]), table.allowed_pods.item(row) - len(table.pods[row])],
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_column_follows(seed):
    """A column is what it would be if made anew, after few changes and after many."""
    chance = random.Random(seed)
    cache, nodes = cluster(100)
    pods_there(nodes)
    pods_and_room(nodes)
    for step in range(20):
        for i in range(chance.choice((1, 2, 80, 160))):
            cache.add_pod(make_pod(f"p{step}-{i}", node_name=f"n{chance.randrange(80)}"))
        if chance.random() < 0.2:
            cache.remove_node(nodes.nodes[chance.randrange(len(nodes))])
        cache.update_snapshot(nodes)

        assert nodes.pod_count.tolist() == pods_there(nodes).tolist()
        both = [nodes.pod_count.tolist(), (nodes.allowed_pods - nodes.pod_count).tolist()]
        assert both == pods_and_room(nodes).tolist()


def test_one_changed_row_is_one_step():
    """After one change one row is made again, however many nodes there are."""
    cache, nodes = cluster(50)
    made = []

    def ask():
        nodes.of_rows("rows", lambda table: table.pod_count * 1, lambda _: lambda row: made.append(row) or 0)

    ask()
    cache.add_pod(make_pod("p", node_name="n7"))
    cache.update_snapshot(nodes)
    ask()
    ask()

    assert [nodes.row_of["n7"]] == made


def test_rows_of_their_own():
    """A table of some rows is worked out by itself."""
    cache, nodes = cluster(3)
    cache.add_pod(make_pod("p", node_name="n1"))
    cache.update_snapshot(nodes)

    assert [1, 0] == pods_there(nodes.view(slice(1, 3))).tolist()


OFFERS = [{}, {"example.com/a": "2"}, {"example.com/b": "3"}, {"example.com/a": "0", "example.com/b": "1"}]
OFFERS.append({f"example.com/many-{i}": "1" for i in range(MAX_PLACES + 2)})


@given(
    st.lists(st.tuples(st.sampled_from(("offer", "remove", "place")), st.integers(0, 3), st.integers(0, 4)))
)
def test_columns_lie_where_they_lay_while_nothing_static_changed(changes):
    """Who holds on to a resource's column, as functions of rows do, reads it until the static generation
    grows: it is neither made anew nor given another place before.
    """
    cache, nodes = cluster(2)
    for number, (change, i, which) in enumerate(changes):
        before = nodes.static_generation, nodes.resource_names, addresses(nodes)
        if change == "offer":
            cache.add_node(make_node(f"n{i}", allocatable={"cpu": "4", **OFFERS[which]}))
        elif change == "place":
            requests = dict.fromkeys([*OFFERS[which]][:2], "1")
            cache.add_pod(make_pod(f"p{number}", requests=requests, node_name=f"n{i}"))
        elif f"n{i}" in nodes.row_of:
            cache.remove_node(nodes.nodes[nodes.row_of[f"n{i}"]])
        cache.update_snapshot(nodes)

        if nodes.static_generation == before[0]:
            assert before[1:] == (nodes.resource_names, addresses(nodes))


def test_a_row_more_is_a_static_change_whoever_brings_it():
    """A node that another table took over before says of no change; columns are forgotten all the same."""
    _, nodes = cluster(1)
    assert [0] == pods_there(nodes).tolist()
    info = NodeInfo("seen before")
    info.set_node(make_node("seen before", allocatable={"cpu": "4", "example.com/a": "2"}))
    info.node_changed = False
    nodes.take([info])

    assert [0, 0] == pods_there(nodes).tolist()


def addresses(nodes):
    """Where the columns of resources lie in memory."""
    columns = (
        nodes.allocatable,
        nodes.requested,
        nodes.non_zero_requested,
        nodes.pod_count,
        nodes.allowed_pods,
    )
    return [column.__array_interface__["data"][0] for column in columns]
