"""The scheduler's metrics by upstream's names, labels and buckets, and Berth's own under `berth_`.

Families behind gates (`async_api_call_*`, `podgroup_*`) are left out while the gates are off; what
mirrors the state of others is in `state_metrics.py`.

Source: pkg/scheduler/metrics (Kubernetes v1.36).
"""

from collections.abc import Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter

from berth.telemetry.metrics.histogram import Histogram, Series


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds, each `factor` times the one before; multiplied up step by step, as upstream does."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


ATTEMPT = exponential(0.001, 2, 15)
POINT = exponential(0.0001, 2, 12)
PLUGIN = exponential(0.00001, 1.5, 20)
HINT = exponential(0.00001, 2, 12)
LONG = exponential(0.01, 2, 20)
PREEMPTION = exponential(0.001, 2, 16)
UNITS = exponential(1, 2, 11)


class Family(NamedTuple):
    """A metric's name, its labels, its help, and a histogram's bucket bounds."""

    name: str
    labels: tuple[str, ...]
    text: str
    buckets: Sequence[float] = ()


COUNTERS = (
    Family(
        "scheduler_schedule_attempts_total", ("result", "profile"), "[STABLE] Attempts to schedule a pod."
    ),
    Family("scheduler_preemption_attempts_total", (), "[STABLE] Attempts to preempt in the cluster so far."),
    Family(
        "scheduler_pod_scheduled_after_flush_total",
        (),
        "[ALPHA] Pods bound after a flush of the unschedulable ones.",
    ),
    Family(
        "scheduler_queue_incoming_pods_total", ("queue", "event"), "[STABLE] Pods added to a queue, by event."
    ),
    Family(
        "scheduler_batch_attempts_total", ("profile", "result"), "[ALPHA] Uses of the result of an equal pod."
    ),
    Family(
        "scheduler_batch_cache_flushed_total",
        ("profile", "reason"),
        "[ALPHA] Results of equal pods forgotten.",
    ),
    Family(
        "scheduler_preemption_goroutines_execution_total", ("result",), "[ALPHA] Preemptions carried out."
    ),
    Family(
        "scheduler_dra_bindingconditions_allocations_total",
        ("profile", "driver", "status"),
        "[ALPHA] Allocations that waited for binding conditions.",
    ),
    Family(
        "scheduler_volume_binder_cache_requests_total",
        ("operation",),
        "[ALPHA] Requests to the volume binder.",
    ),
    Family(
        "scheduler_volume_scheduling_stage_error_total",
        ("operation",),
        "[ALPHA] Errors of volume scheduling.",
    ),
    Family(
        "berth_cycle_budget_exceeded_total",
        ("profile",),
        "Scheduling cycles that used more CPU than their budgets.",
    ),
    Family(
        "berth_plugin_calls_total",
        ("plugin", "method", "outcome"),
        "Calls of out-of-tree plugins: ok, error (their own), failed, late, garbled, refused, gave up.",
    ),
    Family(
        "berth_plugin_failures_ignored_total",
        ("plugin", "extension_point"),
        "Failures of out-of-tree plugins that were passed over, as the failure policy says.",
    ),
    Family("berth_plugin_hints_total", ("plugin", "answer"), "Answers of out-of-tree plugins about events."),
    Family(
        "berth_plugin_sort_keys_total",
        ("plugin", "outcome"),
        "Sort keys of pods that an out-of-tree plugin gave, changed, or owed.",
    ),
    Family("berth_plugin_requeues_total", ("plugin",), "Requests of out-of-tree plugins to try pods again."),
    Family(
        "berth_plugin_hint_misses_total",
        ("plugin",),
        "Pods that the plugin had rejected and that were bound only thanks to the five-minute flush.",
    ),
    Family(
        "berth_plugin_shadow_attempts_total",
        ("plugin", "profile", "outcome"),
        "Attempts beside which a plugin in shadow was asked: same, or how they would have gone on with it "
        "(gated, rejected, moved, refused, room); failed, outdated, skipped.",
    ),
    Family(
        "berth_plugin_shadow_nodes_rejected_total",
        ("plugin", "profile"),
        "Nodes that were left to choose from and that a plugin in shadow would have turned down.",
    ),
)

HISTOGRAMS = (
    Family(
        "scheduler_scheduling_attempt_duration_seconds",
        ("result", "profile"),
        "[STABLE] From a pod's dequeuing to the end of its binding cycle.",
        ATTEMPT,
    ),
    Family("scheduler_scheduling_algorithm_duration_seconds", (), "[ALPHA] The choice of a node.", ATTEMPT),
    Family(
        "scheduler_event_handling_duration_seconds", ("event",), "[ALPHA] Handling of a cluster event.", POINT
    ),
    Family("scheduler_preemption_victims", (), "[STABLE] Victims of a preemption.", exponential(1, 2, 7)),
    Family(
        "scheduler_pod_scheduling_sli_duration_seconds",
        ("attempts",),
        "[BETA] From a pod's first attempt to its binding.",
        LONG,
    ),
    Family(
        "scheduler_pod_scheduling_attempts",
        (),
        "[STABLE] Attempts it took to schedule a pod.",
        exponential(1, 2, 5),
    ),
    Family(
        "scheduler_framework_extension_point_duration_seconds",
        ("extension_point", "status", "profile"),
        "[STABLE] All plugins of an extension point.",
        POINT,
    ),
    Family(
        "scheduler_plugin_execution_duration_seconds",
        ("plugin", "extension_point", "status"),
        "[ALPHA] One plugin at an extension point, in one of ten cycles.",
        PLUGIN,
    ),
    Family("scheduler_permit_wait_duration_seconds", ("result",), "[BETA] Waiting on Permit.", ATTEMPT),
    Family(
        "scheduler_get_node_hint_duration_seconds",
        ("hinted", "profile"),
        "[ALPHA] Looking for the result of an equal pod.",
        HINT,
    ),
    Family(
        "scheduler_store_schedule_results_duration_seconds",
        ("profile",),
        "[ALPHA] Keeping a result for equal pods.",
        HINT,
    ),
    Family(
        "scheduler_queueing_hint_execution_duration_seconds",
        ("plugin", "event", "hint"),
        "[ALPHA] A queueing hint.",
        PLUGIN,
    ),
    Family("scheduler_preemption_goroutines_duration_seconds", ("result",), "[ALPHA] A preemption.", LONG),
    Family(
        "scheduler_dra_bindingconditions_wait_duration_seconds",
        ("profile", "driver", "status"),
        "[ALPHA] Waiting for binding conditions.",
        exponential(0.1, 2, 14),
    ),
    Family(
        "berth_sidecar_call_duration_seconds",
        ("sidecar", "method"),
        "Calls of a sidecar within a cycle, its binding cycle included.",
        exponential(0.0001, 2, 14),
    ),
    Family(
        "berth_fence_seconds",
        (),
        "From an acquired lease, or a watch's return, until the view was proven to be up to date.",
        LONG,
    ),
)

POD_GROUP_COUNTERS = (
    Family(
        "scheduler_podgroup_schedule_attempts_total",
        ("result", "profile"),
        "[ALPHA] Attempts to schedule a pod group.",
    ),
)

POD_GROUP_HISTOGRAMS = (
    Family(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        ("result", "profile"),
        "[ALPHA] From a pod group's dequeuing to the submission of what was decided.",
        ATTEMPT,
    ),
    Family(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        (),
        "[ALPHA] The choice of nodes for a pod group.",
        ATTEMPT,
    ),
)

WORKLOAD_COUNTERS = (
    Family(
        "scheduler_workload_preemption_attempts_total",
        ("result",),
        "[ALPHA] Pod groups that asked for room.",
    ),
    Family(
        "scheduler_preemption_pdb_violations_total",
        ("preemptor",),
        "[ALPHA] Disruption budgets that preemption violated.",
    ),
)

WORKLOAD_HISTOGRAMS = (
    Family("scheduler_workload_preemption_victims", (), "[ALPHA] Pods evicted for a pod group.", UNITS),
    Family(
        "scheduler_preemption_workload_disruptions",
        ("preemptor",),
        "[ALPHA] Groups, or pods of groups that go one by one, evicted for a preemptor.",
        UNITS,
    ),
    Family(
        "scheduler_preemption_evaluation_duration_seconds",
        ("preemptor", "result"),
        "[ALPHA] The search for victims.",
        PREEMPTION,
    ),
    Family(
        "scheduler_preemption_execution_duration_seconds",
        ("preemptor", "result"),
        "[ALPHA] The evictions for a preemptor.",
        PREEMPTION,
    ),
)


def placement_counters(more: tuple[str, ...]) -> tuple[Family, ...]:
    """What is counted of placements, with these further labels."""
    return (
        Family(
            "scheduler_generated_placements_total",
            ("profile", *more),
            "[ALPHA] Placements that pod groups may have.",
        ),
        Family(
            "scheduler_placement_evaluations_total",
            ("result", "profile", *more),
            "[ALPHA] Placements that were tried, by whether the pod group fits.",
        ),
    )


def placement_histograms(more: tuple[str, ...]) -> tuple[Family, ...]:
    """What is measured of placements, with these further labels."""
    return (
        Family(
            "scheduler_placement_evaluation_duration_seconds",
            ("result", "profile", *more),
            "[ALPHA] Trying a placement.",
            ATTEMPT,
        ),
    )


CALL_COUNTERS = (
    Family(
        "scheduler_async_api_call_execution_total",
        ("call_type", "result"),
        "[ALPHA] Asynchronous API calls that were made.",
    ),
)
CALL_HISTOGRAMS = (
    Family(
        "scheduler_async_api_call_execution_duration_seconds",
        ("call_type", "result"),
        "[ALPHA] An asynchronous API call.",
        ATTEMPT,
    ),
)


CLAIMS_CREATED = Family(
    "scheduler_resourceclaim_creates_total", ("status",), "[ALPHA] Resource claims created."
)
CLAIMS_CREATED_BY_ANY = Family(
    "dynamic_resource_allocation_resourceclaim_creates_total",
    ("status", "admin_access", "owner_api_group", "owner_api_kind"),
    "[ALPHA] Resource claims created, by what owns them; controllers have the same series.",
)


class Families:
    """One process's counters and histograms, by name; those of pod groups and of calls where asked for.

    `shared_claim_metric` and `workloads` are rules of the release (berth.config.releases); `placements` are
    the labels that counts of placements have beside result and profile, None where there are no such counts.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        pod_groups: bool = False,
        asynchronous_calls: bool = False,
        shared_claim_metric: bool = False,
        workloads: bool = False,
        placements: Sequence[str] | None = None,
    ) -> None:
        counters, histograms = list(COUNTERS), list(HISTOGRAMS)
        counters.append(CLAIMS_CREATED_BY_ANY if shared_claim_metric else CLAIMS_CREATED)
        if pod_groups:
            counters += POD_GROUP_COUNTERS
            histograms += POD_GROUP_HISTOGRAMS
        if workloads:
            counters += WORKLOAD_COUNTERS
            histograms += WORKLOAD_HISTOGRAMS
        if placements is not None:
            counters += placement_counters(tuple(placements))
            histograms += placement_histograms(tuple(placements))
        if asynchronous_calls:
            counters += CALL_COUNTERS
            histograms += CALL_HISTOGRAMS
        self.counters = {f.name: Counter(f.name, f.text, f.labels, registry=registry) for f in counters}
        self.histograms = {f.name: Histogram(f.name, f.text, f.labels, f.buckets) for f in histograms}
        for histogram in self.histograms.values():
            registry.register(histogram)
        self.labels = {f.name: f.labels for f in (*counters, *histograms)}
        """The labels of each metric that the release has."""

    def counter(self, name: str, labels: Sequence[str]) -> Counter | None:
        """The series with these label values, without those beyond its own; None without such a metric."""
        if name not in self.labels:
            return None
        own = labels[: len(self.labels[name])]
        return self.counters[name].labels(*own) if own else self.counters[name]

    def series(self, name: str, labels: Sequence[str]) -> Series | None:
        """The same of a histogram."""
        if name not in self.labels:
            return None
        return self.histograms[name].labels(*labels[: len(self.labels[name])])
