"""Rows come, move and go; what stood in a row before must not show through."""

import msgspec
import numpy as np
import pytest

from berth.cache.cache import Cache
from berth.objects.pods.host_ports import HostPort
from berth.objects.resource_names import MEMORY
from berth.objects.taint import Taint
from berth.snapshot.columns.flag_columns import FlagColumns
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from tests.hostile.work import kept_bytes

WEB = HostPort("0.0.0.0", "TCP", 80)


def followed():
    cache = Cache()
    snapshot = Snapshot()
    return cache, snapshot


def test_a_new_node_does_not_inherit_ports():
    """A node that takes the row of a removed one has none of its host ports."""
    cache, snapshot = followed()
    cache.add_node(make_node("old"))
    cache.add_pod(make_pod(host_ports=[80], node_name="old"))
    cache.update_snapshot(snapshot)
    cache.remove_node(make_node("old"))
    cache.update_snapshot(snapshot)
    cache.add_node(make_node("new"))
    cache.update_snapshot(snapshot)

    assert snapshot.port_conflicts([WEB]) is None or not snapshot.port_conflicts([WEB]).any()


def test_the_last_row_fills_the_hole():
    """Removing a node moves the last row into its place, and nothing else."""
    cache, snapshot = followed()
    for name in ("a", "b", "c"):
        cache.add_node(make_node(name, taints=[Taint(name, "", "NoSchedule")]))
    cache.add_pod(make_pod("p", node_name="c"))
    cache.update_snapshot(snapshot)
    cache.remove_node(make_node("a"))
    cache.update_snapshot(snapshot)

    assert ["c", "b"] == snapshot.names
    assert [1, 0] == snapshot.pod_count.tolist()
    assert {"c": 0, "b": 1} == snapshot.row_of


def test_flags_of_things_that_are_gone_leave_nothing():
    """A taint with a new value every time takes no more room than one taint."""
    flags = FlagColumns[str](4)
    for i in range(100):
        flags.set_row(0, [f"taint-{i}"])

    assert ["taint-99"] == list(flags.things)
    assert flags.column("taint-0", 4) is None
    assert [True, False, False, False] == flags.column("taint-99", 4).tolist()


@pytest.mark.parametrize("held_by", [1, 3, 40, 64])
def test_flags_say_the_same_whether_few_or_many_rows_have_a_thing(held_by):
    """Rows are numbered while they are few and flagged once they are many; growing changes neither."""
    flags = FlagColumns[str](64)
    for row in range(held_by):
        flags.set_row(row, ["here", f"own-{row}"])
    flags.grow(1024)
    flags.set_row(1000, ["here"])
    flags.drop_row(0)
    flags.move_row(1000, 0)

    assert held_by == flags.holders("here") == flags.column("here", 1024).sum()
    assert list(range(held_by)) == flags.rows("here").rows().tolist()
    assert flags.column("here", 1024).tolist() == flags.any_of(["here", "gone"], 1024).tolist()
    assert flags.column("here", 1024).tolist() == flags.count_of(["here"], 1024).tolist()
    assert flags.column("own-0", 1024) is None


def test_a_thing_that_few_rows_have_takes_few_bytes():
    """Images are on some hundred nodes each: in sets their rows took as much as all else of a node."""
    things, rows, capacity, kept = [f"image-{i}" for i in range(100)], 300, 8192, []

    def fill():
        flags = FlagColumns[str](capacity)
        for row in range(rows):
            flags.set_row(row, things)
        kept.append(flags)

    assert kept_bytes(fill) < len(things) * rows * 8


def test_sums_beyond_64_bits_do_not_break_the_table():
    """Two absurd requests on one node count as the largest amount there is."""
    huge = {"memory": "1e19"}
    snapshot = table(
        [make_node("a")],
        [make_pod("p", requests=huge, node_name="a"), make_pod("q", requests=huge, node_name="a")],
    )

    assert 2**63 - 1 == snapshot.requested[snapshot.resource_index(MEMORY), 0]
    assert 2**63 - 1 == snapshot.what_if("a", add=[PodInfo(make_pod("r"))]).requested[1, 0]


def test_a_view_of_a_view_selects_from_the_whole():
    """Rows of a view are rows of the whole snapshot, however deep."""
    nodes = table([make_node(f"n{i}", labels={"i": str(i)}) for i in range(5)])
    inner = nodes.view(np.array([4, 2, 0])).view(slice(1, 2))

    assert ["n2"] == inner.names
    assert nodes.label_ids("i")[2] == inner.label_ids("i")[0]
    assert [20] == inner.answer("tens", lambda whole: np.arange(len(whole)) * 10).tolist()


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([2, 0])])
def test_a_view_agrees_with_its_rows(rows):
    """Each column of a view is the same rows of the table."""
    taint = Taint("k", "v", "NoSchedule")
    nodes = table(
        [
            make_node("a"),
            make_node("b", taints=[taint], images={"app:1": 5}),
            make_node("c", unschedulable=True),
        ],
        [make_pod("p", host_ports=[80], requests={"cpu": "1"}, node_name="b")],
    )
    view = nodes.view(rows)

    assert np.array(nodes.names)[rows].tolist() == view.names
    assert {name: i for i, name in enumerate(view.names)} == view.row_of
    assert nodes.port_conflicts([WEB])[rows].tolist() == view.port_conflicts([WEB]).tolist()
    assert nodes.image_on("app:1")[rows].tolist() == view.image_on("app:1").tolist()
    assert nodes.requested[:, rows].tolist() == view.requested.tolist()
    assert nodes.unschedulable[rows].tolist() == view.unschedulable.tolist()
    assert nodes.with_taint([taint])[rows].tolist() == view.with_taint([taint]).tolist()
    assert [nodes.pods[nodes.row_of[name]] for name in view.names] == view.pods


def test_an_answer_lasts_until_something_static_changes():
    """Pods that come leave answers about nodes alone; a changed node makes them be asked again."""
    cache, snapshot = followed()
    asked = []

    def compute(whole):
        asked.append(len(whole))
        return np.zeros(len(whole))

    cache.add_node(make_node("a"))
    cache.update_snapshot(snapshot)
    snapshot.answer("q", compute)
    cache.add_pod(make_pod(node_name="a"))
    cache.update_snapshot(snapshot)
    snapshot.answer("q", compute)
    cache.add_node(make_node("b"))
    cache.update_snapshot(snapshot)
    snapshot.answer("q", compute)

    assert [1, 2] == asked


@pytest.mark.parametrize(
    ("version", "asked_again"),
    [
        (make_node("a", labels={"zone": "z"}), False),
        (make_node("a", labels={"zone": "y"}), True),
        (make_node("a", labels={"zone": "z"}, unschedulable=True), True),
        (make_node("a", labels={"zone": "z"}, allocatable={"cpu": "9"}), True),
        (make_node("a", labels={"zone": "z"}, images={"app:1": 5}), True),
    ],
    ids=["a sign of life", "label", "cordon", "allocatable", "image"],
)
def test_a_node_that_says_nothing_new_leaves_answers_alone(version, asked_again):
    """The object itself is taken over all the same."""
    cache, snapshot = followed()
    asked = []

    def compute(whole):
        asked.append(len(whole))
        return np.zeros(len(whole))

    cache.add_node(make_node("a", labels={"zone": "z"}))
    cache.update_snapshot(snapshot)
    snapshot.answer("q", compute)
    metadata = msgspec.structs.replace(version.metadata, resource_version="2")
    newer = msgspec.structs.replace(version, metadata=metadata)
    cache.update_node(version, newer)
    cache.update_snapshot(snapshot)
    snapshot.answer("q", compute)

    assert (2 if asked_again else 1) == len(asked)
    assert "2" == snapshot.nodes[0].metadata.resource_version
