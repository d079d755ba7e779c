"""The core put together: queue, cache, profiles and cycles on one set of shared parts.

The same assembly runs against a cluster, a file or a test; what does I/O is handed in.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from berth.binding.api_dispatcher import ApiDispatcher, CallMetrics
from berth.binding.binding_cycle import BindingCycle
from berth.binding.pods_in_pre_bind import PodsInPreBind
from berth.binding.waiting_pods import WaitingPods
from berth.cache.cache import Cache
from berth.config.loading import Loaded
from berth.cycle.assume_and_bind import AssumeAndBind
from berth.cycle.attempts import Attempts
from berth.cycle.budgets import CycleBudgets
from berth.cycle.equal_pods import EqualPods
from berth.cycle.failure import FailureHandler
from berth.cycle.find_nodes import NodeSearch, Rotation
from berth.cycle.schedule_one import ScheduleOne
from berth.cycle.schedule_pod import SchedulePod
from berth.event_handlers.device_taints import DeviceTaintRuleHandler
from berth.event_handlers.handler import EventHandled, ResourceHandler, ignore_duration
from berth.event_handlers.nodes import NodeHandler
from berth.event_handlers.pods import PodHandler, lister
from berth.event_handlers.resources import resource_handler
from berth.framework.background import Background
from berth.framework.claim_metrics import ClaimMetrics, NoClaimMetrics
from berth.framework.claim_writing import ClaimWriter
from berth.framework.clock import Clock
from berth.framework.cluster_event import ActionType
from berth.framework.cycle_record import CycleRecord
from berth.framework.extender import Extender
from berth.framework.handle import ApiWriter, EventRecorder, Handle, VolumeWriter
from berth.framework.listers import AssumeCache, Listers, Store
from berth.framework.pod_group_writing import PodGroupWriter
from berth.framework.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.objects.pod import Pod
from berth.pod_groups.conditions import GroupConditions
from berth.pod_groups.gang_gate import GangGate
from berth.pod_groups.group_algorithm import Ground
from berth.pod_groups.group_cycle import GroupFeatures, PodGroupCycle
from berth.pod_groups.pod_group_metrics import NoPodGroupMetrics, PodGroupMetrics
from berth.pod_groups.submission import Submission
from berth.preemption.evaluator import Evaluator
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.preemption.screening import Screening
from berth.profiles.profile_builder import PluginFactory, build_frameworks
from berth.queue.hints import build_hint_map, wanted_actions
from berth.queue.queue_metrics import QueueMetrics
from berth.queue.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.snapshot import Snapshot

GENERIC_WORKLOAD = "GenericWorkload"
ASYNC_API_CALLS = "SchedulerAsyncAPICalls"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the core is handed: writes, events, concurrency, time, chance, and who wants to know."""

    writer: ApiWriter
    volume_writer: VolumeWriter
    recorder: EventRecorder
    background: Background
    clock: Clock
    chance: random.Random
    on_record: Callable[[CycleRecord], None]
    before_plugins: Callable[["Shared"], None] = lambda _: None
    """Told of the shared parts before any plugin is made."""
    queue_metrics: QueueMetrics | None = None
    preemption_metrics: PreemptionMetrics | None = None
    event_handled: EventHandled = ignore_duration
    max_in_unschedulable_seconds: float = 300.0
    claim_writer: ClaimWriter | None = None
    pod_group_writer: PodGroupWriter | None = None
    """Needed with the gate GenericWorkload."""
    pod_group_metrics: PodGroupMetrics | None = None
    extenders: Sequence[Extender] = ()
    """Those of the configuration, in calling order."""
    call_metrics: CallMetrics | None = None
    claim_metrics: ClaimMetrics | None = None
    on_over_budget: Callable[[str], None] = lambda _: None
    """Called with the profile of each cycle that used more CPU than it may."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all profiles have in common."""

    cache: Cache
    snapshot: Snapshot
    listers: Listers
    unassigned: Store[Pod]
    queue: SchedulingQueue
    waiting_pods: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    screening: Screening
    equal_pods: EqualPods
    budgets: CycleBudgets
    at_work: Counter[str]
    """How many tasks of each kind run: the values of goroutines."""

    def known(self, pod: Pod) -> Pod | None:
        """That very pod as the watch last told it, on a node or not; None where it is gone."""
        current = self.unassigned.get(pod.name, pod.namespace) or self.cache.get_pod(pod.uid)
        return current if current is not None and current.uid == pod.uid else None


@dataclass(frozen=True, slots=True)
class SchedulerCore:
    """The parts, for whoever drives them.

    `wanted` says which resources plugins wait for, and which of their changes; `resource_handler` makes a
    handler for a resource beside nodes and pods, given the store that keeps its objects.
    """

    shared: Shared
    frameworks: Mapping[str, Framework]
    handles: Mapping[str, Handle]
    schedule_one: ScheduleOne
    nodes: NodeHandler
    pods: PodHandler
    device_taint_rules: DeviceTaintRuleHandler
    wanted: Mapping[str, ActionType]
    resource_handler: Callable[[str, Store[Any]], ResourceHandler]
    feature_enabled: Callable[[str], bool]
    rewire: Callable[[str], None]
    """Takes note that a profile's plugins wait for other events than before, or are others."""
    dispatcher: ApiDispatcher | None = None
    """What merges the writes about pods, with SchedulerAsyncAPICalls."""


def assemble(loaded: Loaded, registry: Mapping[str, PluginFactory], around: Surroundings) -> SchedulerCore:
    """Build the core that a configuration describes.

    Raises: BuildError, EventRegistrationError.
    """
    dispatcher = None
    if loaded.gates.enabled(ASYNC_API_CALLS):
        dispatcher = ApiDispatcher(around.writer, around.background, around.clock, around.call_metrics)
        around = replace(around, writer=dispatcher)
    frameworks: dict[str, Framework] = {}
    queue_profiles: dict[str, QueueProfile] = {}
    shared = _shared(loaded, frameworks, queue_profiles, around)
    around.before_plugins(shared)
    handles = {p.scheduler_name: _handle(p.scheduler_name, loaded, shared, around) for p in loaded.profiles}
    frameworks.update(build_frameworks(loaded.profiles, registry, handles.__getitem__, around.extenders))
    queue_profiles.update(_queue_profiles(loaded, frameworks))
    enabled = loaded.gates.enabled
    wanted = wanted_actions(
        (profile.hints for profile in queue_profiles.values()),
        generic_workload=enabled(GENERIC_WORKLOAD),
    )
    return SchedulerCore(
        shared,
        frameworks,
        handles,
        _schedule_one(loaded, frameworks, shared, around),
        NodeHandler(
            shared.queue,
            shared.cache,
            clock=around.clock,
            handled=around.event_handled,
            declared_features=enabled("NodeDeclaredFeatures"),
        ),
        PodHandler(
            shared.queue,
            shared.cache,
            unassigned=shared.unassigned,
            profiles=frameworks,
            waiting_pods=shared.waiting_pods,
            clock=around.clock,
            handled=around.event_handled,
            gang_scheduling=enabled("GangScheduling"),
            sync_calls=None if dispatcher is None else dispatcher.sync,
        ),
        DeviceTaintRuleHandler(
            shared.queue, shared.listers, clock=around.clock, handled=around.event_handled
        ),
        wanted,
        partial(
            resource_handler,
            queue=shared.queue,
            wanted=wanted,
            clock=around.clock,
            handled=around.event_handled,
        ),
        enabled,
        partial(_rewire, loaded, frameworks, queue_profiles),
        dispatcher,
    )


def _shared(
    loaded: Loaded,
    frameworks: Mapping[str, Framework],
    queue_profiles: Mapping[str, QueueProfile],
    around: Surroundings,
) -> Shared:
    """The shared parts; both mappings are filled in once the profiles are built."""

    def less(a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return next(iter(frameworks.values())).plugins.queue_sort[0].less(a, b)

    def sort_key(record: QueuedPodInfo) -> Any:
        return next(iter(frameworks.values())).plugins.queue_sort[0].sort_key(record)

    configuration, enabled = loaded.configuration, loaded.gates.enabled
    unassigned: Store[Pod] = Store()
    queue = SchedulingQueue(
        less,
        queue_profiles,
        around.clock,
        pod_lister=lister(unassigned),
        sort_key=sort_key,
        initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
        max_backoff_seconds=configuration.pod_max_backoff_seconds,
        max_in_unschedulable_seconds=around.max_in_unschedulable_seconds,
        metrics=around.queue_metrics,
        pop_from_backoff=enabled("SchedulerPopFromBackoffQ"),
        generic_workload=enabled(GENERIC_WORKLOAD),
        background=around.background,
    )
    snapshot = Snapshot()
    return Shared(
        Cache(PodGroupStates() if enabled(GENERIC_WORKLOAD) else None),
        snapshot,
        Listers(),
        unassigned,
        queue,
        WaitingPods(around.background),
        PodsInPreBind(around.background),
        Screening(),
        EqualPods(snapshot),
        CycleBudgets(around.clock, around.background, around.on_over_budget),
        Counter(),
    )


def _handle(profile: str, loaded: Loaded, shared: Shared, around: Surroundings) -> Handle:
    handle = Handle(
        profile_name=profile,
        snapshot=shared.snapshot,
        listers=shared.listers,
        nominator=shared.queue.nominator,
        waiting_pods=shared.waiting_pods,
        writer=around.writer,
        recorder=around.recorder,
        clock=around.clock,
        random=around.chance,
        feature_enabled=loaded.gates.enabled,
        activate=shared.queue.activate,
        background=around.background,
        pods_in_pre_bind=shared.pods_in_pre_bind,
        volume_writer=around.volume_writer,
        claim_writer=around.claim_writer,
        claim_metrics=around.claim_metrics or NoClaimMetrics(),
        known=shared.known,
    )
    if shared.cache.pod_groups is not None:
        handle.pod_groups = shared.cache.pod_groups
    handle.preemption = Evaluator(handle, screening=shared.screening, metrics=around.preemption_metrics)
    return handle


def _queue_profiles(loaded: Loaded, frameworks: Mapping[str, Framework]) -> dict[str, QueueProfile]:
    return {name: _queue_profile(loaded, framework) for name, framework in frameworks.items()}


def _queue_profile(loaded: Loaded, framework: Framework) -> QueueProfile:
    hints = build_hint_map(
        framework.plugins.by_name.values(),
        extenders=bool(loaded.extenders),
        generic_workload=loaded.gates.enabled(GENERIC_WORKLOAD),
    )
    return QueueProfile(framework.plugins.pre_enqueue, hints)


def _rewire(
    loaded: Loaded,
    frameworks: Mapping[str, Framework],
    queue_profiles: dict[str, QueueProfile],
    profile: str,
) -> None:
    queue_profiles[profile] = _queue_profile(loaded, frameworks[profile])


def _schedule_one(
    loaded: Loaded, frameworks: Mapping[str, Framework], shared: Shared, around: Surroundings
) -> ScheduleOne:
    queue = shared.queue
    failure = FailureHandler(
        queue,
        lister(shared.unassigned),
        around.writer,
        around.recorder,
        around.background,
        around.clock,
        shared.budgets,
    )
    search = NodeSearch(queue.nominator, Rotation(), loaded.configuration.percentage_of_nodes_to_score)
    attempts = Attempts(around.clock, around.chance, around.on_record)
    algorithm = SchedulePod(search, around.chance, shared.equal_pods)
    binding = BindingCycle(
        shared.cache,
        queue,
        shared.waiting_pods,
        shared.pods_in_pre_bind,
        around.writer,
        around.recorder,
        around.background,
        failure.handle,
        shared.at_work,
        announces=loaded.gates.enabled("NominatedNodeNameForExpectation"),
    )
    commit = AssumeAndBind(shared.cache, queue.nominator, binding, failure, attempts)
    groups = None
    if shared.cache.pod_groups is not None:
        ground = Ground(shared.cache, shared.snapshot, queue.nominator, algorithm)
        submission = Submission(commit, failure, attempts)
        groups = _group_cycle(loaded, frameworks, shared, around, ground=ground, submission=submission)
    return ScheduleOne(
        frameworks, queue, shared.cache, shared.snapshot, algorithm, commit, failure, attempts, groups
    )


def _group_cycle(
    loaded: Loaded,
    frameworks: Mapping[str, Framework],
    shared: Shared,
    around: Surroundings,
    *,
    ground: Ground,
    submission: Submission,
) -> PodGroupCycle:
    states, enabled = shared.cache.pod_groups, loaded.gates.enabled
    assert states is not None, "asked for with the gate GenericWorkload alone"
    shared.queue.leaves_out = GangGate(states, shared.listers.pod_groups).leaves_out
    assert around.pod_group_writer is not None, "whoever turns GenericWorkload on hands in a PodGroupWriter"
    groups = AssumeCache(shared.listers.pod_groups)
    return PodGroupCycle(
        frameworks,
        shared.queue,
        states,
        shared.listers.pod_groups,
        ground,
        submission,
        GroupConditions(groups, around.pod_group_writer, around.background, around.clock),
        GroupFeatures(enabled("TopologyAwareWorkloadScheduling"), enabled("WorkloadAwarePreemption")),
        around.chance,
        around.clock,
        around.pod_group_metrics or NoPodGroupMetrics(),
    )
