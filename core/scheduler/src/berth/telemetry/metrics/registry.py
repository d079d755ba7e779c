"""All metrics of one scheduler, in a registry of their own: several schedulers may share a process.

Counters and histograms start afresh with a reset; gauges that mirror state do not. One thread counts and
resets, another may read the text meanwhile: what is read is copied in one step, or counted under a lock.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics_text
from prometheus_client.registry import Collector

from berth.binding.api_dispatcher import CallMetrics
from berth.cache.cache import Cache
from berth.config.feature_gates import FeatureGates
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.ports.claim_metrics import ClaimMetrics
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.queue.queue_metrics import QueueMetrics
from berth.telemetry.metrics.informer_metrics import InformerCollector
from berth.telemetry.metrics.measured import MeasuredFamilies
from berth.telemetry.metrics.metric_families import Families
from berth.telemetry.metrics.record_metrics import RecordMetrics
from berth.telemetry.metrics.request_metrics import RequestCollector
from berth.telemetry.metrics.state_metrics import MirroredMetric, StateCollector
from berth.telemetry.traces.tracing import Tracing

disable_created_metrics()  # type: ignore[no-untyped-call]  # upstream has no `_created` series


class SchedulerMetrics:
    """What `/metrics` shows; `queue`, `preemption` and the others are what these parts count with.

    `families` holds what is in no record. Pod groups and API calls show only where they are scheduled as such
    (GenericWorkload) and made beside the cycles (SchedulerAsyncAPICalls). What the others stand for is in
    `metric_families.Families`.
    """

    def __init__(
        self,
        *,
        pod_groups: bool = False,
        asynchronous_calls: bool = False,
        shared_claim_metric: bool = False,
        workloads: bool = False,
        placements: Sequence[str] | None = None,
    ) -> None:
        self._with_pod_groups = pod_groups
        self._with_calls = asynchronous_calls
        self._with_shared_claim_metric = shared_claim_metric
        self._with_workloads = workloads
        self._placement_labels = placements
        self._state = StateCollector()
        self.requests = RequestCollector()
        self.informers = InformerCollector()
        self.registry, self.families = self._afresh()
        self._measured = MeasuredFamilies(self.families)
        self.queue = QueueMetrics(self._measured)
        self.preemption = PreemptionMetrics(self._measured)
        self.pod_groups = PodGroupMetrics(self._measured)
        self.calls = CallMetrics(self._measured)
        self.claims = ClaimMetrics(self._measured)
        self.plugins = PluginMetrics(self._measured)
        self._records = RecordMetrics(self.families)
        self._state.mirrored += _summed_up(self.queue, self._records)

    @classmethod
    def following(cls, gates: FeatureGates) -> Self:
        """The metrics of a scheduler with these gates, as their release has them."""
        rules, pod_groups = gates.rules, gates.enabled("GenericWorkload")
        placed = rules.workload_metrics and gates.enabled("TopologyAwareWorkloadScheduling")
        return cls(
            pod_groups=pod_groups,
            asynchronous_calls=gates.enabled("SchedulerAsyncAPICalls"),
            shared_claim_metric=rules.shared_claim_metric,
            workloads=rules.workload_metrics and pod_groups,
            placements=(("type",) if rules.placements_count_by_type else ()) if placed else None,
        )

    def on_record(self, record: CycleRecord) -> None:
        """Count a finished cycle."""
        self._records.on_record(record)

    def event_handled(self, event: str, seconds: float) -> None:
        """Observe the handling of a cluster event, by its label."""
        self._measured.observe("scheduler_event_handling_duration_seconds", seconds, event)

    def over_budget(self, profile: str) -> None:
        """Count a cycle that used more CPU than it may."""
        self._measured.count("berth_cycle_budget_exceeded_total", profile)

    def fence_lowered(self, seconds: float) -> None:
        """Observe for how long no decision was taken, until the view was proven."""
        self._measured.observe("berth_fence_seconds", seconds)

    def watch_queue(self, pods: Callable[[], Mapping[str, int]]) -> None:
        """Show how many pods wait where."""
        text = "[STABLE] Pending pods, by the queue they are in."
        self._watch("scheduler_pending_pods", text, "queue", pods)

    def watch_entities(self, entities: Callable[[], Mapping[tuple[str, str], int]]) -> None:
        """Show how many pods on their own, and how many groups, wait where: by queue and type.

        Also how many came there; to be called where the release queues groups.
        """
        text = "[ALPHA] Pods on their own and groups of pods, by the queue they are in."
        self._state.mirrored += [
            MirroredMetric("scheduler_queued_entities", text, ("queue", "type"), entities),
            MirroredMetric(
                "scheduler_queue_incoming_entities",
                "[ALPHA] Pods on their own and groups of pods that came to a queue, by event.",
                ("queue", "event", "type"),
                self.queue.entities,
                counts=True,
            ),
        ]

    def watch_cache(self, cache: Cache) -> None:
        """Show how much the cache holds."""

        def read() -> dict[str, float]:
            pods, assumed = cache.pod_count(), cache.assumed_count()
            return {"assumed_pods": assumed, "pods": pods, "nodes": cache.node_count()}

        self._watch("scheduler_cache_size", "[ALPHA] Nodes, pods and assumed pods known.", "type", read)

    def watch_tasks(self, at_work: Mapping[str, int]) -> None:
        """Show how many tasks run beside the scheduling loop."""
        text = "[BETA] Tasks at work, by operation."
        self._watch("scheduler_goroutines", text, "operation", lambda: at_work)

    def watch_calls(self, pending: Mapping[str, int]) -> None:
        """Show how many asynchronous API calls wait or are being made."""
        text = "[ALPHA] API calls that wait or are being made."
        self._watch("scheduler_pending_async_api_calls", text, "call_type", lambda: pending)

    def watch_leadership(self, leads: Callable[[], Mapping[str, float]]) -> None:
        """Show whether this process holds each lease."""
        text = "[ALPHA] Whether this process leads, by lease."
        self._watch("leader_election_master_status", text, "name", leads)

    def watch_leases(self, margins: Callable[[], Mapping[str, float]]) -> None:
        """Show how much time is left to renew each lease that this process holds."""
        text = "Of a lease's renew deadline, the share that is left until its holder has to stop."
        self._watch("berth_lease_margin_ratio", text, "name", margins)

    def watch_lease_failures(self, failures: Callable[[], Mapping[str, float]]) -> None:
        """Show how often in a row each lease could not be acquired or renewed."""
        text = "Tries in a row to acquire or renew a lease that failed; 0 where another process holds it."
        self._watch("berth_lease_failures", text, "name", failures)

    def watch_holders(self, held: Callable[[], Mapping[str, float]]) -> None:
        """Show whether any process holds each lease, as this one last saw it."""
        text = "Whether any process holds the lease, kube-scheduler included, as this one last saw it."
        self._watch("berth_lease_held", text, "name", held)

    def show_identity(self, labels: Mapping[str, str]) -> None:
        """Show Berth's version, the release that is followed, the cluster and the lease."""
        text = "Berth's version, the kube-scheduler that it follows, the cluster and the lease; always 1."
        values = {tuple(labels.values()): 1.0}
        self._state.mirrored.append(
            MirroredMetric("berth_scheduler_info", text, tuple(labels), lambda: values)
        )

    def watch_tracing(self, tracing: Tracing) -> None:
        """Show what became of traces."""

        def read() -> dict[str, float]:
            return {
                "exported": tracing.exported,
                "dropped": tracing.dropped,
                "failed": tracing.failed,
                "over_rate": tracing.over_rate,
            }

        text = (
            "Traces exported, dropped for want of room, lost by the exporter, or of failed and slow "
            "attempts beyond their rates."
        )
        self._watch("berth_traces", text, "outcome", read, counts=True)

    def watch_equal_pods(self, outcomes: Mapping[str, float]) -> None:
        """Show how many cycles used what was remembered of an equal pod, and why the others did not."""
        text = "Scheduling cycles answered from what was remembered of an equal pod, or why they were not."
        self._watch("berth_equal_pods", text, "outcome", lambda: outcomes, counts=True)

    def watch_plugins(self, conditions: Callable[[], Mapping[tuple[str, str], float]]) -> None:
        """Show which conditions hold of which out-of-tree plugin: 1 or 0 by (plugin, type)."""
        text = "Conditions of out-of-tree plugins, as berth plugin describe shows them."
        mirror = MirroredMetric("berth_plugin_condition", text, ("plugin", "type"), conditions)
        self._state.mirrored.append(mirror)

    def watch_set_aside(
        self, total: Callable[[], Mapping[str, float]], now: Callable[[], Mapping[str, float]]
    ) -> None:
        """Show how many versions of objects could not be taken in, and how many objects are set aside."""
        text = (
            "Versions of objects that could not be taken in, because of what is written in them or of a bug."
        )
        self._watch("berth_objects_set_aside", text, "resource", total, counts=True)
        text = "Objects whose latest version is set aside now."
        self._watch("berth_objects_set_aside_now", text, "resource", now)

    def watch_events(self, outcomes: Callable[[], Mapping[str, float]]) -> None:
        """Show what became of the events that were recorded."""
        text = "Events that were written, were refused by the API server, or dropped because too many waited."
        self._watch("berth_events", text, "outcome", outcomes, counts=True)

    def watch_watches(self, errors: Callable[[], Mapping[str, float]]) -> None:
        """Show how often lists and watches of each kind broke off."""
        text = "Lists and watches that were refused, or broke off, by kind; each is tried again."
        self._watch("berth_watch_errors", text, "resource", errors, counts=True)

    def watch_recording(self, spans: Callable[[], Mapping[str, float]]) -> None:
        """Show how many spans of the scheduler's recording were written, and how many were dropped."""
        text = "Spans of the scheduler's recording (--record-to), by what became of them."
        self._watch("berth_recording_spans", text, "result", spans, counts=True)

    def text(self, names: Sequence[str] = (), *, open_metrics: bool = False) -> bytes:
        """Everything, or only the series of these names, in Prometheus's text format, or in OpenMetrics'."""
        shown = (
            _Named((self._state, self.requests, self.informers), self.registry, names)
            if names
            else self.registry
        )
        made: bytes = (open_metrics_text if open_metrics else generate_latest)(shown)
        return made

    def reset(self) -> None:
        """Start all counters and histograms afresh."""
        self.requests.reset()
        self.informers.reset()
        self.registry, self.families = self._afresh()
        self._measured.use(self.families)
        self._records.use(self.families)
        self.queue.reset()
        self.plugins.reset()

    def _afresh(self) -> tuple[CollectorRegistry, Families]:
        registry = CollectorRegistry()
        families = Families(
            registry,
            pod_groups=self._with_pod_groups,
            asynchronous_calls=self._with_calls,
            shared_claim_metric=self._with_shared_claim_metric,
            workloads=self._with_workloads,
            placements=self._placement_labels,
        )
        registry.register(self._state)
        registry.register(self.requests)
        registry.register(self.informers)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        return registry, families

    def _watch(
        self,
        name: str,
        text: str,
        label: str,
        read: Callable[[], Mapping[str, float]],
        *,
        counts: bool = False,
    ) -> None:
        def by_label() -> dict[tuple[str, ...], float]:
            return {(value,): number for value, number in dict(read()).items()}

        self._state.mirrored.append(MirroredMetric(name, text, (label,), by_label, counts))


_SUFFIXES = ("", "_total", "_bucket", "_sum", "_count")


class _Named:
    """The series of some names: a full exposition takes tens of milliseconds, these do not."""

    def __init__(
        self, unnamed: Sequence[Collector], registry: CollectorRegistry, names: Sequence[str]
    ) -> None:
        self._unnamed, self._registry, self._names = unnamed, registry, names

    def collect(self) -> Iterator[Metric]:
        """The families that have such series."""
        for collector in self._unnamed:
            for family in collector.collect():
                if {f"{family.name}{suffix}" for suffix in _SUFFIXES} & set(self._names):
                    yield family
        yield from self._registry.restricted_registry(self._names).collect()


def _summed_up(queue: QueueMetrics, records: RecordMetrics) -> list[MirroredMetric]:
    """What is counted in plain dictionaries, because it is counted too often for labelled children."""
    return [
        MirroredMetric(
            "scheduler_unschedulable_pods",
            "[BETA] Pods that a plugin holds back.",
            ("plugin", "profile"),
            lambda: queue.rejected,
        ),
        MirroredMetric(
            "scheduler_inflight_events",
            "[ALPHA] Events kept for pods in flight.",
            ("event",),
            lambda: queue.in_flight,
        ),
        MirroredMetric(
            "scheduler_plugin_evaluation",
            "[BETA] Calls of a plugin; one call looks at all nodes.",
            ("plugin", "extension_point", "profile"),
            lambda: records.evaluations,
            counts=True,
        ),
    ]
