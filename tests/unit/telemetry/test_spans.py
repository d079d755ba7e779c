"""A finished cycle is one well-formed trace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.attempts.cycle_record import Interval
from berth.framework.status import SUCCESS, failed
from berth.telemetry.traces.spans import CLIENT, ERROR, EndedCycle, spans_of
from tests.unit.telemetry.records import (
    MILLISECOND,
    SIDECAR_SPAN_ID,
    WALL_OFFSET_NS,
    interval,
    make_record,
    rejected_record,
    scheduled_record,
)


def trace(record, message=""):
    return spans_of(EndedCycle(record, message), {"service.name": "s"})


def by_name(record):
    return {span.name: span for span in trace(record)}


def path(record, name):
    """The names from the root to that span."""
    spans = {span.span_id: span for span in trace(record)}
    here = next(span for span in spans.values() if span.name == name)
    names = [here.name]
    while here.parent_span_id:
        here = spans[here.parent_span_id]
        names.insert(0, here.name)
    return names


@pytest.mark.parametrize(
    ("name", "parents"),
    [
        ("queue wait", ["schedule pod"]),
        ("NodeAffinity", ["schedule pod", "scheduling cycle", "Filter"]),
        ("gpu-share Filter", ["schedule pod", "scheduling cycle", "Filter", "gpu-share"]),
        ("DefaultBinder", ["schedule pod", "binding cycle", "Bind"]),
    ],
)
def test_spans_are_nested_as_the_work_was(name, parents):
    """A plugin hangs below its extension point, that below its cycle, that below the root."""
    assert [*parents, name] == path(scheduled_record(), name)


@pytest.mark.parametrize(
    ("intervals", "parent"),
    [
        pytest.param([interval("Filter", 4, 8, 0)], "Filter", id="asked before the plugin's turn"),
        pytest.param([interval("Filter", 4, 5, 0)], "Filter", id="outlasts the point, cancelled"),
        pytest.param([interval("Filter", 3, 3.5, 0)], "scheduling cycle", id="made after the point"),
        pytest.param(
            [interval("Filter", 4, 8, 0), interval("NodePorts", 4, 8, 1)],
            "Filter",
            id="beside another plugin",
        ),
        pytest.param(
            [interval("Filter", 4, 0, 0), interval("gpu", 4, 0, 1)], "gpu", id="failed within its plugin"
        ),
    ],
)
def test_call_belongs_to_who_made_it(intervals, parent):
    """A call hangs below its plugin or the point that it was made in."""
    cycle = interval("scheduling cycle", 3, 10)
    record = make_record(intervals=[cycle, *intervals, interval("gpu Filter", 4, 6, 0, span_id=b"12345678")])

    assert parent == path(record, "gpu Filter")[-2]


def test_call_before_the_plugins_turn():
    """Sidecars are asked first: a call hangs below the turn, which begins with it."""
    record = make_record(
        intervals=[
            interval("scheduling cycle", 3, 10),
            interval("Filter", 4, 9, 0),
            interval("gpu Filter", 4.5, 7, 0, span_id=b"12345678"),
            interval("NodePorts", 5, 6, 1),
            interval("gpu", 6, 8, 1),
            interval("gpu", 8, 9, 1),
        ]
    )
    turn = next(span for span in trace(record) if span.name == "gpu")

    assert ["schedule pod", "scheduling cycle", "Filter", "gpu", "gpu Filter"] == path(record, "gpu Filter")
    assert WALL_OFFSET_NS + 9 * MILLISECOND // 2 == turn.start_time_unix_nano
    assert WALL_OFFSET_NS + 8 * MILLISECOND == turn.end_time_unix_nano


def test_point_of_a_plugin_that_broke():
    """The plugin and the point in which it broke have the attempt's error, and end with the point."""
    intervals = [interval("Filter", 4, 8, 0), interval("gpu", 5, 0, 1), interval("Score", 8, 9, 0)]
    record = make_record(intervals=[interval("scheduling cycle", 3, 10), *intervals], result="error")
    spans = {span.name: span for span in trace(record, "gpu broke")}

    assert ["gpu broke"] * 2 == [spans[name].status.message for name in ("Filter", "gpu")]
    assert 0 == spans["Score"].status.code
    assert WALL_OFFSET_NS + 8 * MILLISECOND == spans["gpu"].end_time_unix_nano


def test_root_tells_of_the_pod_and_the_outcome():
    """The root says which pod it was about, what came of it, and where."""
    expected = {
        "k8s.pod.name": "web-1",
        "k8s.namespace.name": "shop",
        "k8s.pod.uid": "u-1",
        "berth.profile": "default-scheduler",
        "berth.attempt": 1,
        "berth.result": "scheduled",
        "berth.nodes": 10,
        "berth.nodes.evaluated": 10,
        "berth.nodes.feasible": 1,
        "k8s.node.name": "node-a",
        "berth.score": 100,
    }

    assert expected == trace(scheduled_record())[0].attributes


def test_ids_of_the_record_are_kept():
    """Trace, root and sidecar calls keep the ids that others were sent."""
    record = scheduled_record()
    spans = by_name(record)

    assert {record.trace_id.hex()} == {span.trace_id for span in spans.values()}
    assert record.root_span_id.hex() == spans["schedule pod"].span_id
    assert (SIDECAR_SPAN_ID.hex(), CLIENT) == (
        spans["gpu-share Filter"].span_id,
        spans["gpu-share Filter"].kind,
    )


def test_times_are_wall_clock():
    """Monotonic times are shifted to the epoch, and the wait is from enqueued to dequeued."""
    wait = by_name(scheduled_record())["queue wait"]

    assert WALL_OFFSET_NS + 1 * MILLISECOND == wait.start_time_unix_nano
    assert WALL_OFFSET_NS + 3 * MILLISECOND == wait.end_time_unix_nano


def test_rejection_is_an_answer_and_not_an_error():
    """A pod that fits nowhere has a reason in its trace; only what broke has an error status."""
    root = trace(rejected_record(), "0/3 nodes are available.")[0]

    assert ("unschedulable", "0/3 nodes are available.", "NodeAffinity", 0) == (
        root.attributes["berth.result"],
        root.attributes["berth.message"],
        root.attributes["berth.plugin"],
        root.status.code,
    )


def test_error_is_an_error():
    """A broken plugin marks its span and the root, in its own words."""
    status = failed("no route")
    record = make_record(intervals=[interval("Bind", 4, 5, status=status)], status=status, result="error")
    root, _, point = trace(record, "no route")

    assert [(ERROR, "no route")] * 2 == [(s.status.code, s.status.message) for s in (root, point)]


def test_work_cut_short_ends_with_the_work_around_it():
    """An interval that an exception left open lasts to the end of what is known, and is an error."""
    spans = by_name(rejected_record())

    assert WALL_OFFSET_NS + 20 * MILLISECOND == spans["NodeAffinity"].end_time_unix_nano
    assert (ERROR, "did not end") == (spans["NodeAffinity"].status.code, spans["NodeAffinity"].status.message)


def test_verdict_counts_are_attributes_of_the_plugin():
    """Counts become attributes under our prefix; one that has its own keeps it; numbers are plain."""
    counts = {"rejected": np.int64(7), "rpc.system": "grpc"}
    plugin = Interval("Gpu", 1, 2, 0, counts)
    spans = by_name(make_record(intervals=[interval("Filter", 0, 1), plugin]))

    assert {"berth.rejected": 7, "rpc.system": "grpc"} == spans["Gpu"].attributes


@st.composite
def records(draw):
    """Records as `begin` and `end` leave them: parents first, times only ever growing, some never ended."""
    now, intervals = 0, []
    for index in range(draw(st.integers(0, 12))):
        now += draw(st.integers(0, 50))
        ended = draw(st.just(0) | st.integers(now, now + 50))
        span_id = draw(st.sampled_from([b"", b"sent" + index.to_bytes(4, "big")]))
        intervals.append(Interval("x", now, ended, draw(st.integers(-1, index - 1)), {}, span_id, SUCCESS))
        now = draw(st.sampled_from([now, max(now, ended)]))
    return make_record(
        intervals=intervals,
        root_span_id=draw(st.binary(min_size=8, max_size=8).filter(any)),
        enqueued_ns=draw(st.integers(-50, 50)),
        dequeued_ns=0,
        ended_ns=now + draw(st.integers(0, 50)),
    )


@given(record=records())
def test_trace_is_well_formed(record):
    """One root, distinct ids, every parent is there, and every child lies within its parent."""
    spans = trace(record)
    known = {span.span_id: span for span in spans}

    assert len(record.intervals) + 2 == len(known)
    assert [spans[0]] == [span for span in spans if not span.parent_span_id]
    for span in spans[1:]:
        parent = known[span.parent_span_id]
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= parent.end_time_unix_nano


def test_root_is_linked_to_the_attempt_before():
    """A second attempt names the root of the first; a first one has no links."""
    second = trace(scheduled_record(earlier=bytes(range(24))))[0]

    assert [("000102030405060708090a0b0c0d0e0f", "1011121314151617")] == [
        (link.trace_id, link.span_id) for link in second.links
    ]
    assert () == trace(scheduled_record())[0].links
