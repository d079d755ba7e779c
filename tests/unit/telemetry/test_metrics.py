"""Metrics have upstream's names, labels, buckets and rules of counting."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics_families
from prometheus_client.parser import text_string_to_metric_families

from berth.cache.cache import Cache
from berth.client.connections.request_counts import BOUNDS, RequestCounts
from berth.framework.status import SUCCESS, Code, Status, failed
from berth.preemption.candidates import Candidate
from berth.queue.queue_metrics import QueueMetrics
from berth.queue.sub_queues import QueueSizes
from berth.telemetry.metrics.metric_families import COUNTERS, HISTOGRAMS
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.builders import make_pod
from tests.unit.telemetry.records import (
    MILLISECOND,
    SIDECAR_SPAN_ID,
    interval,
    make_record,
    rejected_record,
    scheduled_record,
)

ROOT = Path(__file__).resolve().parents[3]
SCHEDULER = ROOT / "core/scheduler/src/berth"
PROFILE = {"profile": "default-scheduler"}


def sample(metrics, name, /, **labels):
    """The value of a series, None where there is none."""
    return metrics.registry.get_sample_value(name, labels)


def after(*records):
    metrics = SchedulerMetrics()
    for record in records:
        metrics.on_record(record)
    return metrics


def series(metrics, name):
    """All series of that name: label values, in the order of the label names, to values."""
    return {
        tuple(value for _, value in sorted(each.labels.items())): each.value
        for family in metrics.registry.collect()
        for each in family.samples
        if each.name == name
    }


def test_attempts_are_counted_by_result():
    """Each attempt counts once, under its result and profile."""
    metrics = after(scheduled_record(), scheduled_record(), rejected_record())
    expected = {("default-scheduler", "scheduled"): 2, ("default-scheduler", "unschedulable"): 1}

    assert expected == series(metrics, "scheduler_schedule_attempts_total")
    assert expected == series(metrics, "scheduler_scheduling_attempt_duration_seconds_count")


def test_durations():
    """An attempt lasts from dequeuing, the algorithm to the choice, the SLI from the first queuing."""
    record = make_record(
        intervals=[interval("scheduling cycle", 3, 12), interval("Reserve", 7, 8, 0)],
        first_enqueued_ns=-980 * MILLISECOND,
        attempt=3,
    )
    metrics = after(record)

    assert 0.017 == pytest.approx(
        sample(metrics, "scheduler_scheduling_attempt_duration_seconds_sum", result="scheduled", **PROFILE)
    )
    assert 0.004 == pytest.approx(sample(metrics, "scheduler_scheduling_algorithm_duration_seconds_sum"))
    assert 1.0 == pytest.approx(
        sample(metrics, "scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="3")
    )
    assert 3.0 == sample(metrics, "scheduler_pod_scheduling_attempts_sum")


@pytest.mark.parametrize(("attempt", "label"), [(1, "1"), (14, "14"), (15, "15+"), (99, "15+")])
def test_many_attempts_share_a_label(attempt, label):
    """From fifteen attempts on, pods are counted together."""
    metrics = after(scheduled_record(attempt=attempt))

    assert 1 == sample(metrics, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts=label)


def test_pods_that_were_not_bound_have_no_sli():
    """Only a bound pod says how long and how many attempts it took."""
    metrics = after(rejected_record())

    assert 0 == sample(metrics, "scheduler_pod_scheduling_attempts_count")
    assert {} == series(metrics, "scheduler_pod_scheduling_sli_duration_seconds_count")


def test_extension_points():
    """Each point counts once under the code of its status; Filter succeeds in rejecting."""
    metrics = after(scheduled_record())

    assert {
        ("Bind", "default-scheduler", "Success"): 1,
        ("Filter", "default-scheduler", "Success"): 1,
        ("PreFilter", "default-scheduler", "Success"): 1,
    } == series(metrics, "scheduler_framework_extension_point_duration_seconds_count")


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        pytest.param(
            [interval("Filter", 3, 9, 0), interval("X", 4, 0, 1)],
            ("Filter", "Error"),
            id="a plugin that raised",
        ),
        pytest.param([interval("Score", 3, 0, 0)], ("Score", "Error"), id="a point that did not end"),
        pytest.param([interval("PostBind", 3, 4, 0, failed("x"))], ("PostBind", "Success"), id="no status"),
        pytest.param(
            [interval("PostFilter", 3, 4, 0, Status(Code.UNSCHEDULABLE))],
            ("PostFilter", "Unschedulable"),
            id="a rejection",
        ),
        pytest.param(
            [interval("Filter", 3, 4, 0, SUCCESS), interval("Filter", 5, 6, 0, SUCCESS)],
            ("Filter", "Success"),
            id="nominated nodes first",
        ),
    ],
)
def test_status_of_a_point(intervals, expected):
    """A point is observed once, and what was cut short is an error."""
    record = make_record(intervals=[interval("scheduling cycle", 3, 10), *intervals], result="error")
    point, code = expected

    assert {(point, "default-scheduler", code): 1} == series(
        after(record), "scheduler_framework_extension_point_duration_seconds_count"
    )


def test_waiting_on_permit_has_its_own_histogram():
    """The wait counts under the code that ended it, and is no extension point."""
    waiting = interval("WaitOnPermit", 11, 15, 0, Status(Code.UNSCHEDULABLE))
    metrics = after(make_record(intervals=[interval("binding cycle", 11, 19), waiting]))

    assert 1 == sample(metrics, "scheduler_permit_wait_duration_seconds_count", result="Unschedulable")
    assert {} == series(metrics, "scheduler_framework_extension_point_duration_seconds_count")


def test_evaluations():
    """Filter and Score count every call, PreFilter only those that did not skip, Bind none."""
    metrics = after(scheduled_record(), scheduled_record())

    assert {
        ("Filter", "gpu-share", "default-scheduler"): 2,
        ("Filter", "NodeAffinity", "default-scheduler"): 2,
    } == series(metrics, "scheduler_plugin_evaluation_total")


@pytest.mark.parametrize(("first_byte", "count"), [(0, 4), (1, 0), (10, 4), (255, 0)])
def test_plugins_are_timed_in_one_of_ten_cycles(first_byte, count):
    """The trace id decides, so that which cycles are timed is no accident."""
    metrics = after(scheduled_record(trace_id=bytes([first_byte]) * 16))

    assert count == sum(series(metrics, "scheduler_plugin_execution_duration_seconds_count").values())


def test_preemption_metrics():
    """What preemption counts is shown under upstream's names, also after a reset."""
    metrics = SchedulerMetrics()
    metrics.preemption.attempted()
    metrics.reset()
    metrics.preemption.attempted()
    metrics.preemption.chosen("pod", Candidate("n0", (make_pod(),) * 3))
    metrics.preemption.evicted("pod", 0.5, failed=False, beside=True)
    metrics.preemption.evicted("pod", 0.25, failed=True, beside=True)

    assert {(): 1} == series(metrics, "scheduler_preemption_attempts_total")
    assert {(): 3} == series(metrics, "scheduler_preemption_victims_sum")
    carried_out = {("success",): 1, ("error",): 1}
    assert carried_out == series(metrics, "scheduler_preemption_goroutines_execution_total")
    assert {("success",): 0.5, ("error",): 0.25} == series(
        metrics, "scheduler_preemption_goroutines_duration_seconds_sum"
    )


def test_queue_metrics():
    """What the queue counts is shown under upstream's names."""
    metrics = SchedulerMetrics()
    queue: QueueMetrics = metrics.queue
    queue.pod_incoming("active", "UnschedulablePodAdd")
    queue.rejected_pods("NodeAffinity", "p", 2)
    queue.rejected_pods("NodeAffinity", "p", -1)
    queue.in_flight_events("PodPopped", 1)
    queue.hint_executed("NodeAffinity", "NodeAdd", "Queue", 0.001)
    queue.pre_enqueue_executed("p", 0.001)

    assert {("UnschedulablePodAdd", "active"): 1} == series(metrics, "scheduler_queue_incoming_pods_total")
    assert {("NodeAffinity", "p"): 1} == series(metrics, "scheduler_unschedulable_pods")
    assert {("PodPopped",): 1} == series(metrics, "scheduler_inflight_events")
    assert {("NodeAdd", "Queue", "NodeAffinity"): 1} == series(
        metrics, "scheduler_queueing_hint_execution_duration_seconds_count"
    )
    assert {("PreEnqueue", "p", "Success"): 1} == series(
        metrics, "scheduler_framework_extension_point_duration_seconds_count"
    )


def test_state_is_read_when_collected():
    """Sizes of queue and cache, leadership and traces are those of the moment."""
    metrics = SchedulerMetrics()
    sizes = [QueueSizes(1, 2, 3, 4)]
    metrics.watch_queue(lambda: dict(sizes[0]._asdict()))
    metrics.watch_cache(Cache())
    metrics.watch_leadership(lambda: {"kube-scheduler": 1.0})
    metrics.watch_tracing(SimpleNamespace(exported=5, dropped=6, failed=7, over_rate=8))
    metrics.watch_equal_pods({"reused": 8})
    sizes[0] = QueueSizes(9, 2, 3, 4)

    assert 9 == sample(metrics, "scheduler_pending_pods", queue="active")
    assert 4 == sample(metrics, "scheduler_pending_pods", queue="gated")
    assert 0 == sample(metrics, "scheduler_cache_size", type="assumed_pods")
    assert 1 == sample(metrics, "leader_election_master_status", name="kube-scheduler")
    assert 6 == sample(metrics, "berth_traces_total", outcome="dropped")
    assert 8 == sample(metrics, "berth_equal_pods_total", outcome="reused")


def test_calls_of_sidecars():
    """A call counts by sidecar and method, and is neither an extension point nor a plugin."""
    metrics = after(scheduled_record(trace_id=bytes(16)))
    name = "berth_sidecar_call_duration_seconds_count"

    assert 1 == sample(metrics, name, sidecar="gpu-share", method="Filter")
    assert "gpu-share Filter" not in metrics.text().decode()


def test_reset_starts_counters_afresh():
    """After a reset counters are at zero and still count; what mirrors state stays."""
    metrics = after(scheduled_record())
    metrics.queue.rejected_pods("NodeAffinity", "p", 1)
    metrics.reset()
    metrics.on_record(rejected_record())

    assert {("default-scheduler", "unschedulable"): 1} == series(metrics, "scheduler_schedule_attempts_total")
    assert {("NodeAffinity", "default-scheduler", "Filter")} == {
        (plugin, profile, point)
        for point, plugin, profile in series(metrics, "scheduler_plugin_evaluation_total")
    }
    assert 1 == sample(metrics, "scheduler_unschedulable_pods", plugin="NodeAffinity", profile="p")


def test_schedulers_do_not_share_figures():
    """Two schedulers in one process count for themselves."""
    one, other = after(scheduled_record()), SchedulerMetrics()

    assert {} == series(other, "scheduler_schedule_attempts_total")
    assert {} != series(one, "scheduler_schedule_attempts_total")


@pytest.mark.parametrize(
    ("name", "first", "last", "count"),
    [
        ("scheduler_scheduling_attempt_duration_seconds", 0.001, 16.384, 15),
        ("scheduler_framework_extension_point_duration_seconds", 0.0001, 0.2048, 12),
        ("scheduler_plugin_execution_duration_seconds", 0.00001, 0.00001 * 1.5**19, 20),
        ("scheduler_pod_scheduling_sli_duration_seconds", 0.01, 0.01 * 2**19, 20),
        ("scheduler_pod_scheduling_attempts", 1, 16, 5),
        ("scheduler_preemption_victims", 1, 64, 7),
    ],
)
def test_buckets(name, first, last, count):
    """Buckets are upstream's: exponential from the first bound, and one without a bound."""
    text = after(scheduled_record(trace_id=bytes(16))).text().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    bounds = sorted({float(s.labels["le"]) for s in families[name].samples if "le" in s.labels})

    assert count + 1 == len(bounds)
    assert (first, last) == (bounds[0], pytest.approx(bounds[-2]))


def test_text():
    """The text has help with the stability, type and series, and no series that upstream lacks."""
    lines = after(scheduled_record()).text().decode().splitlines()
    name = "scheduler_schedule_attempts_total"

    assert [
        f"# HELP {name} [STABLE] Attempts to schedule a pod.",
        f"# TYPE {name} counter",
        f'{name}{{profile="default-scheduler",result="scheduled"}} 1.0',
    ] == [line for line in lines if name in line]
    assert not [line for line in lines if "_created" in line]


def test_every_family_is_filled_or_explained():
    """What no module of the scheduler fills is in the list of docs/metrics.md, and nothing else is."""
    paths = [path for path in SCHEDULER.rglob("*.py") if path.stem != "metric_families"]
    sources = "".join(path.read_text() for path in paths)
    declared = {family.name for family in (*COUNTERS, *HISTOGRAMS)}
    _, _, section = (ROOT / "docs/metrics.md").read_text().partition("## Declared, and never more")
    explained = set(re.findall(r"^\| `(\w+)`", section.partition("\n## ")[0], re.MULTILINE))

    assert explained == {name for name in declared if name not in sources}


def test_process_metrics():
    """The process itself is measured too."""
    assert sample(SchedulerMetrics(), "process_resident_memory_bytes") > 0


def test_only_the_series_that_are_named():
    """A request for some names gets those, whether they are counted or mirrored, and no others."""
    metrics = SchedulerMetrics()
    metrics.watch_queue(QueueSizes(1, 2, 3, 4)._asdict)

    lines = metrics.text(["scheduler_pending_pods"]).decode().splitlines()

    assert {"scheduler_pending_pods"} == {line.split("{")[0] for line in lines if not line.startswith("#")}


def exemplars(metrics):
    """The span of each example in OpenMetrics' text, by the histogram's name."""
    return {
        family.name: (each.exemplar.labels["trace_id"], each.exemplar.labels["span_id"])
        for family in open_metrics_families(metrics.text(open_metrics=True).decode())
        for each in family.samples
        if each.exemplar
    }


def test_traced_attempts_are_examples():
    """A bucket of a latency names the trace of an attempt in it; that of a call the call's span."""
    record = scheduled_record(traced=True)
    root = record.trace_id.hex(), record.root_span_id.hex()

    assert {
        "scheduler_scheduling_attempt_duration_seconds": root,
        "scheduler_pod_scheduling_sli_duration_seconds": root,
        "berth_sidecar_call_duration_seconds": (root[0], SIDECAR_SPAN_ID.hex()),
    } == exemplars(after(record))


def test_attempts_without_traces_are_no_examples():
    """What was not exported is not pointed at, and Prometheus's own text has no examples."""
    assert {} == exemplars(after(scheduled_record()))
    assert b"trace_id" not in after(scheduled_record(traced=True)).text()


def test_requests_of_all_transports():
    """client-go's names: requests by code, method and host, durations by verb and host, of all transports."""
    metrics, transports = SchedulerMetrics(), [RequestCounts(), RequestCounts()]
    metrics.requests.watch("10.0.0.1:6443", transports, BOUNDS)
    for counts in transports:
        counts.answered("POST", 201, 0.01)
    transports[0].failed("GET")
    host = {"host": "10.0.0.1:6443"}

    assert 2 == sample(metrics, "rest_client_requests_total", code="201", method="POST", **host)
    assert 1 == sample(metrics, "rest_client_requests_total", code="<error>", method="GET", **host)
    bucket = "rest_client_request_duration_seconds_bucket"
    assert [0, 2, 2] == [
        sample(metrics, bucket, verb="POST", le=le, **host) for le in ("0.005", "0.025", "+Inf")
    ]
    assert b"rest_client_requests_total{" in metrics.text([bucket, "rest_client_requests_total"])


def test_requests_start_afresh():
    """DELETE /metrics sets them back as it does the others."""
    metrics, counts = SchedulerMetrics(), RequestCounts()
    metrics.requests.watch("server", [counts], BOUNDS)
    counts.answered("POST", 201, 0.01)
    metrics.reset()

    assert {} == series(metrics, "rest_client_requests_total")
