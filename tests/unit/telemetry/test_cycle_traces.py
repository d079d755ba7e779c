"""Cycles that really ran leave well-formed traces, whatever became of them."""

import pytest

from berth.framework.runtime import Framework, ProfilePlugins
from berth.framework.status import failed, unschedulable
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.telemetry.traces.spans import EndedCycle, spans_of
from berth.testing.builders import make_node, make_pod
from tests.fakes import PROFILE, Binds, Rejects, Reserves, Scores, make_core


class Breaks(Rejects):
    """Raises where others answer."""

    def filter(self, *_arguments):
        raise ValueError("boom")


FITS = {"filter": [Rejects("Room")], "score": [(Scores("Best", {"n1": 5}), 1)], "bind": [Binds("Binder")]}


@pytest.mark.parametrize(
    ("plugins", "result", "spans"),
    [
        pytest.param(FITS, "scheduled", {"Room", "Best", "Binder", "binding cycle"}, id="bound"),
        pytest.param(
            FITS | {"filter": [Rejects("Room", ["n0", "n1"])]},
            "unschedulable",
            {"Room"},
            id="fits nowhere",
        ),
        pytest.param(FITS | {"filter": [Breaks("Room")]}, "error", {"Filter"}, id="Filter raises"),
        pytest.param(
            FITS | {"score": [(Scores("Best", ValueError("boom")), 1)]}, "error", {"Best"}, id="Score raises"
        ),
        pytest.param(
            FITS | {"reserve": [Reserves("Held", unschedulable("no"))]},
            "unschedulable",
            {"Held", "Unreserve"},
            id="Reserve refuses",
        ),
        pytest.param(
            FITS | {"bind": [Binds("Binder", failed("gone"))]},
            "error",
            {"Binder", "Unreserve"},
            id="Bind fails",
        ),
    ],
)
async def test_trace_of_a_cycle_that_ran(plugins, result, spans):
    """One root, no span twice, each within a parent that is there, and the metrics take the record too."""
    core = make_core(Framework(PROFILE, ProfilePlugins(**plugins)), make_node("n0"), make_node("n1"))
    core.add_pod(make_pod("p0", scheduler_name=PROFILE))
    await core.turn()
    (record,) = core.records
    trace = spans_of(EndedCycle(record, ""), {})
    known = {span.span_id: span for span in trace}
    metrics = SchedulerMetrics()
    metrics.on_record(record)

    assert (result, len(trace)) == (record.result, len(known))
    assert spans <= {span.name for span in trace}
    for span in trace[1:]:
        parent = known[span.parent_span_id]
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= parent.end_time_unix_nano
    assert 1 == metrics.registry.get_sample_value(
        "scheduler_schedule_attempts_total", {"result": result, "profile": PROFILE}
    )
