"""Counts, timelines and calls of recent attempts stay bounded, and say what the records said."""

from berth.framework.status import unschedulable
from berth.live_page.recent_attempts import (
    BETWEEN_TIMELINES_NS,
    KEPT_CALLS,
    KEPT_FAILED,
    KEPT_TIMELINES,
    MAX_PLUGINS,
    STEPS_OF_A_TIMELINE,
    RecentAttempts,
    timeline,
)
from berth.testing.builders import make_pod
from tests.unit.telemetry.records import SIDECAR_SPAN_ID, interval, make_record, scheduled_record


def failed(name, **changes):
    return make_record(pod=make_pod(name), result="unschedulable", status=unschedulable("no"), **changes)


def test_steps_are_a_tree():
    """A call that was made before its plugin's turn stands below it."""
    intervals = [
        interval("scheduling cycle", 3, 10),
        interval("Filter", 4, 9, 0),
        interval("gpu Filter", 4, 7, 0, span_id=SIDECAR_SPAN_ID),
        interval("NodePorts", 5, 6, 1),
        interval("gpu", 6, 8, 1),
    ]
    steps = timeline(make_record(intervals=intervals)).steps

    assert [
        ("scheduling cycle", 0),
        ("Filter", 1),
        ("NodePorts", 2),
        ("gpu", 2),
        ("gpu Filter", 3),
    ] == [(step.name, step.depth) for step in steps]


def called(plugin, milliseconds=1):
    return make_record(intervals=[interval(f"{plugin} Filter", 0, milliseconds, span_id=SIDECAR_SPAN_ID)])


def taken(*records):
    recent = RecentAttempts()
    for record in records:
        recent.on_record(record)
    return recent


def test_attempts_are_counted():
    recent = taken(scheduled_record(), failed("p"), scheduled_record())

    assert (3, 2) == (recent.attempts, recent.scheduled)


def test_a_timeline_has_the_steps_with_their_depths():
    """A call of a sidecar is a step of the plugin that made it."""
    found = timeline(scheduled_record())

    assert [
        ("scheduling cycle", 0, 0, 7000),
        ("PreFilter", 1, 500, 500),
        ("NodePorts", 2, 600, 300),
        ("Filter", 1, 1000, 4000),
        ("NodeAffinity", 2, 1000, 1000),
        ("gpu-share", 2, 2000, 3000),
        ("gpu-share Filter", 3, 2500, 2000),
        ("binding cycle", 0, 8000, 8000),
        ("Bind", 1, 9000, 6000),
        ("DefaultBinder", 2, 9000, 6000),
    ] == [(step.name, step.depth, step.started, step.took) for step in found.steps]


def test_a_timeline_says_whose_it_is():
    found = timeline(scheduled_record())

    assert ("shop/web-1", "scheduled", "node-a", 2000, 17000, 1_700_000_000.003) == (
        found.pod,
        found.result,
        found.node,
        found.queued,
        found.took,
        found.at,
    )


def test_a_timeline_names_the_trace_that_is_exported():
    """And none where nothing is traced."""
    traced = scheduled_record()
    traced.traced = True

    assert (traced.trace_id.hex(), "") == (timeline(traced).trace_id, timeline(scheduled_record()).trace_id)


def test_a_step_that_was_cut_short_ends_with_the_attempt():
    found = timeline(make_record(intervals=[interval("scheduling cycle", 3, 0)]))

    assert 17000 == found.steps[0].took


def test_a_timeline_has_its_first_steps():
    """However many calls an attempt makes."""
    found = timeline(make_record(intervals=[interval("x" * 1000, 3, 4)] * (STEPS_OF_A_TIMELINE + 5)))

    assert (STEPS_OF_A_TIMELINE, 5) == (len(found.steps), found.left_out)
    assert 80 == len(found.steps[0].name)


def test_timelines_are_kept_at_a_rate():
    """One of those that end within the same half second, the last dozen in all, the latest first."""
    ends = [at for i in range(20) for at in (i * BETWEEN_TIMELINES_NS, i * BETWEEN_TIMELINES_NS + 1)]
    recent = taken(*(make_record(dequeued_ns=0, ended_ns=end) for end in ends))

    latest = range(19, 19 - KEPT_TIMELINES, -1)
    assert [i * BETWEEN_TIMELINES_NS // 1000 for i in latest] == [each.took for each in recent.timelines()]


def test_failed_pods_are_those_whose_last_attempt_failed():
    recent = taken(failed("a"), failed("b"), failed("a"), make_record(pod=make_pod("b")))

    assert [("default/a", "default-a")] == list(recent.failed())


def test_failed_pods_are_bounded():
    """The latest are kept."""
    recent = taken(*(failed(f"p{i}") for i in range(KEPT_FAILED + 3)))

    found = [key for key, _ in recent.failed()]
    assert (KEPT_FAILED, f"default/p{KEPT_FAILED + 2}", "default/p3") == (len(found), found[0], found[-1])


def test_calls_are_of_the_plugin_that_was_called():
    recent = taken(*(called("gpu", milliseconds) for milliseconds in range(1, 101)), called("other", 7))

    assert [("gpu", 100, 51000, 100000), ("other", 1, 7000, 7000)] == [
        (each.plugin, each.calls, each.p50, each.p99) for each in recent.calls()
    ]


def test_calls_are_bounded():
    """The last calls of each plugin count, and the plugins that were called last."""
    recent = taken(*[called("first", 9)] * KEPT_CALLS, *[called("first", 1)] * KEPT_CALLS)
    for i in range(MAX_PLUGINS):
        recent.on_record(called(f"plugin-{i}"))
        recent.on_record(called("first"))

    found = {each.plugin: each for each in recent.calls()}
    assert MAX_PLUGINS == len(found)
    assert {"first", f"plugin-{MAX_PLUGINS - 1}"} <= set(found)
    assert (1000, 1000) == (found["first"].p50, found["first"].p99)
