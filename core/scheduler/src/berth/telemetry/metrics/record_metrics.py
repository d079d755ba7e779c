"""What a finished cycle says in numbers.

Labelled children are kept: finding one again costs as much as counting with it.

Source: pkg/scheduler/metrics/profile_metrics.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Mapping

import prometheus_client as prometheus

from berth.framework.attempts.cycle_record import CycleRecord, Interval
from berth.framework.status import SUCCESS, Code
from berth.telemetry.metrics.histogram import Series
from berth.telemetry.metrics.metric_families import Families
from berth.telemetry.traces.trace_shape import broken

SAMPLED_ONE_IN = 10
MAX_ATTEMPTS = 15

_EVALUATED = frozenset({"PreFilter", "Filter", "PreScore", "Score"})
_ALWAYS_SUCCESS = frozenset({"Unreserve", "PostBind"})
_WAITING = "WaitOnPermit"
_NANO = 1e-9
_SUCCESS, _ERROR, _SKIP = Code.SUCCESS, Code.ERROR, Code.SKIP


class RecordMetrics:
    """Observes one record after another; `evaluations` are calls by plugin, extension point and profile."""

    def __init__(self, families: Families) -> None:
        self.evaluations: Counter[tuple[str, str, str]] = Counter()
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._counters, self._histograms = families.counters, families.histograms
        self._attempts: dict[tuple[str, str], tuple[prometheus.Counter, Series]] = {}
        self._batches: dict[tuple[str, str], prometheus.Counter] = {}
        self._durations: dict[str, Series] = {}
        self._points: dict[tuple[str, Code, str], Series] = {}
        self._plugins: dict[tuple[str, str, Code], Series] = {}
        self.evaluations.clear()

    def on_record(self, record: CycleRecord) -> None:
        """Count a finished cycle."""
        self._attempt(record)
        self._histograms["scheduler_scheduling_algorithm_duration_seconds"].observe(
            _algorithm_ns(record) * _NANO
        )
        self._intervals(record)
        if record.result == "scheduled":
            self._scheduled(record)

    def _attempt(self, record: CycleRecord) -> None:
        key = record.result, record.profile
        children = self._attempts.get(key)
        if children is None:
            children = self._attempts[key] = (
                self._counters["scheduler_schedule_attempts_total"].labels(*key),
                self._histograms["scheduler_scheduling_attempt_duration_seconds"].labels(*key),
            )
        children[0].inc()
        seconds = (record.ended_ns - record.dequeued_ns - record.paused_ns) * _NANO
        children[1].observe(seconds)
        if record.traced:
            _exemplify(children[1], seconds, record)
        self._batched(record)

    def _batched(self, record: CycleRecord) -> None:
        """Count whether the attempt could do with the answers of an equal pod."""
        key = record.profile, "hint_used" if record.remembered else "no_hint"
        child = self._batches.get(key)
        if child is None:
            child = self._batches[key] = self._counters["scheduler_batch_attempts_total"].labels(*key)
        child.inc()

    def _scheduled(self, record: CycleRecord) -> None:
        attempts = record.attempt
        label = str(attempts) if attempts < MAX_ATTEMPTS else f"{MAX_ATTEMPTS}+"
        self._histograms["scheduler_pod_scheduling_attempts"].observe(attempts)
        if record.after_flush:
            self._counters["scheduler_pod_scheduled_after_flush_total"].inc()
        child = self._durations.get(label)
        if child is None:
            family = self._histograms["scheduler_pod_scheduling_sli_duration_seconds"]
            child = self._durations[label] = family.labels(label)
        seconds = max(0, record.ended_ns - record.first_enqueued_ns) * _NANO
        child.observe(seconds)
        if record.traced:
            _exemplify(child, seconds, record)

    def _intervals(self, record: CycleRecord) -> None:
        intervals, profile, evaluations = record.intervals, record.profile, self.evaluations
        points: dict[int, Interval] = {}
        for index, interval in enumerate(intervals):
            if interval.span_id:
                self._call(record, interval)
                continue
            if interval.parent < 0:
                continue
            around = intervals[interval.parent]
            if around.parent < 0:
                points[index] = interval
            elif around.name in _EVALUATED and (interval.status is None or interval.status.code is not _SKIP):
                evaluations[interval.name, around.name, profile] += 1
        self._points_of(record, points)
        if record.trace_id[0] % SAMPLED_ONE_IN == 0:
            self._plugins_of(record)

    def _points_of(self, record: CycleRecord, points: Mapping[int, Interval]) -> None:
        """Observe each run of a point; looks at nominated nodes alone belong to the search that ends them."""
        cut_short = broken(record.intervals) if record.result != "scheduled" else ()
        search = None
        for index, interval in points.items():
            code = _ERROR if index in cut_short else _code(interval)
            if interval.name == "Filter":
                search = interval, code
            else:
                self._point(record, interval, code)
        if search is not None:
            self._point(record, *search)

    def _point(self, record: CycleRecord, interval: Interval, code: Code) -> None:
        seconds = ((interval.ended_ns or record.ended_ns) - interval.started_ns) * _NANO
        if interval.name == _WAITING:
            self._histograms["scheduler_permit_wait_duration_seconds"].labels(str(code)).observe(seconds)
            return
        key = interval.name, code, record.profile
        child = self._points.get(key)
        if child is None:
            family = self._histograms["scheduler_framework_extension_point_duration_seconds"]
            child = self._points[key] = family.labels(interval.name, str(code), record.profile)
        child.observe(seconds)

    def _call(self, record: CycleRecord, interval: Interval) -> None:
        """Observe a call of a sidecar; its name is the sidecar's and the method's."""
        sidecar, _, method = interval.name.partition(" ")
        child = self._histograms["berth_sidecar_call_duration_seconds"].labels(sidecar, method)
        seconds = (interval.ended_ns - interval.started_ns) * _NANO
        child.observe(seconds)
        if record.traced:
            _exemplify(child, seconds, record, interval.span_id)

    def _plugins_of(self, record: CycleRecord) -> None:
        for interval in record.intervals:
            around = record.intervals[interval.parent] if interval.parent >= 0 else interval
            if around.parent < 0 or interval.span_id:
                continue
            key = interval.name, around.name, _code(interval)
            child = self._plugins.get(key)
            if child is None:
                family = self._histograms["scheduler_plugin_execution_duration_seconds"]
                child = self._plugins[key] = family.labels(interval.name, around.name, str(key[2]))
            child.observe(((interval.ended_ns or record.ended_ns) - interval.started_ns) * _NANO)


def _exemplify(child: Series, seconds: float, record: CycleRecord, span_id: bytes = b"") -> None:
    """Let the attempt's trace, or one span of it, stand for such values."""
    at = (record.ended_ns + record.wall_offset_ns) * _NANO
    child.exemplify(seconds, record.trace_id, span_id or record.root_span_id, at)


def _code(interval: Interval) -> Code:
    """The code that the interval is counted under; what was cut short is an error."""
    status = interval.status
    if not interval.ended_ns:
        return _ERROR
    if status is None or status is SUCCESS or interval.name in _ALWAYS_SUCCESS:
        return _SUCCESS
    return status.code


def _algorithm_ns(record: CycleRecord) -> int:
    """From the cycle's start to the choice of a node, PostFilter included."""
    chosen = next((i.started_ns for i in record.intervals if i.name == "Reserve"), 0)
    if not chosen and record.intervals:
        # The first phase of a pod of a group may be about the whole group.
        phases = (i for i in record.intervals if i.parent < 0 and i.name == "scheduling cycle")
        chosen = next((phase.ended_ns for phase in phases), record.intervals[0].ended_ns)
    return max(0, (chosen or record.ended_ns) - record.dequeued_ns)
