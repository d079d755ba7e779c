"""Columns that plugins make of rows, and that follow changes."""

import random

import pytest

from berth.cache.cache import Cache
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


@pytest.mark.parametrize("seed", range(5))
def test_a_column_follows(seed):
    """A column is what it would be if made anew, after few changes and after many."""
    chance = random.Random(seed)
    cache, nodes = cluster(20)
    pods_there(nodes)
    for step in range(30):
        for i in range(chance.choice((1, 2, 100))):
            cache.add_pod(make_pod(f"p{step}-{i}", node_name=f"n{chance.randrange(20)}"))
        if chance.random() < 0.2:
            cache.remove_node(nodes.nodes[chance.randrange(len(nodes))])
        cache.update_snapshot(nodes)

        assert nodes.pod_count.tolist() == pods_there(nodes).tolist()


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
