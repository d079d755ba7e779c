"""A scheduler: queue, cache, profiles and cycles, made for each other.

    cache, snapshot, listers --> queue --> plugins, by profile --> schedule_one, event handlers

The same parts run against a cluster, a file or a test: what does I/O is handed in. process.py puts a
scheduler into a process.

Source: pkg/scheduler/scheduler.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from berth.binding.api_dispatcher import ApiDispatcher
from berth.binding.binding_cycle import BindingCycle
from berth.binding.pods_in_pre_bind import PodsInPreBind
from berth.binding.waiting_pods import WaitingPods
from berth.cache.cache import Cache
from berth.config.loading import LoadedConfig
from berth.cycle.assume_and_bind import AssumeAndBind
from berth.cycle.attempts import Attempts
from berth.cycle.budgets import CycleBudgets
from berth.cycle.failure import FailureHandler
from berth.cycle.gated_pods import GatedPods
from berth.cycle.schedule_one import ScheduleOne
from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.equal_pods import EqualPods
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.event_handlers.device_taints import DeviceTaintRuleHandler
from berth.event_handlers.handler import ResourceHandler
from berth.event_handlers.nodes import NodeHandler
from berth.event_handlers.pods import PodHandler, lister
from berth.event_handlers.resources import resource_handler
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.core_ports import CorePorts
from berth.framework.handle import EventRecorder, Handle
from berth.framework.mirrors.group_trees import TREES_GATE
from berth.framework.mirrors.listers import AssumeCache, Listers, Store
from berth.framework.queueing.object_events import UnassignedPodEvents
from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.pod_groups.conditions import GroupConditions
from berth.pod_groups.counting import Counting
from berth.pod_groups.gang_gate import GangGate
from berth.pod_groups.group_algorithm import SchedulingContext
from berth.pod_groups.group_cycle import GroupFeatures, PodGroupCycle
from berth.pod_groups.plan_memory import PlanMemory
from berth.pod_groups.submission import Submission
from berth.pod_groups.validation import OF_A_GROUP, OF_A_HIERARCHY
from berth.preemption.departures import Departures
from berth.preemption.evaluator import Evaluator
from berth.preemption.group_preemption import GROUPS_POLICY
from berth.preemption.screening import Screening
from berth.profiles.profile_builder import build_frameworks
from berth.queue.pools.record_heap import ShardOf, whole
from berth.queue.requeueing.hints import wanted_actions
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.core_metrics import CoreMetrics
from berth.scheduler.plugin_source import PluginSource, SchedulerParts
from berth.scheduler.profiles import Profiles
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.snapshot import Snapshot

GENERIC_WORKLOAD = "GenericWorkload"
ASYNC_API_CALLS = "SchedulerAsyncAPICalls"


class Scheduler:
    """The parts of one scheduler, as its configuration describes it.

    `recorder` records events. `on_record` is called with the record of each attempt, `on_ready` whenever a
    pod is ready to be popped. `shard_of` says with which shard a pod is popped.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        *,
        plugins: PluginSource,
        ports: CorePorts,
        recorder: EventRecorder,
        on_record: Callable[[CycleRecord], None],
        on_ready: Callable[[], None],
        metrics: CoreMetrics | None = None,
        max_in_unschedulable_seconds: float = 300.0,
        shard_of: ShardOf = whole,
    ) -> None:
        """Make the parts, in the order in which they need each other.

        Raises: BuildError, EventRegistrationError.
        """
        self._loaded = loaded
        self.ask_ahead = plugins.ask_ahead
        """What is called while there is nothing to schedule."""
        self._ports = ports
        self.clock = ports.clock
        self._recorder = recorder
        self._metrics = metrics or CoreMetrics()
        self.feature_enabled = enabled = loaded.gates.enabled
        self.release = loaded.gates.version.binary
        """The release of Kubernetes whose kube-scheduler is followed."""
        self.dispatcher = self._new_dispatcher() if enabled(ASYNC_API_CALLS) else None
        """What merges the writes about pods, with the gate SchedulerAsyncAPICalls."""
        self._writer = self.dispatcher or ports.pods

        self.pod_groups = PodGroupStates() if enabled(GENERIC_WORKLOAD) else None
        self.listers = Listers()
        if self.pod_groups is not None:
            self.listers.trees.count(self.pod_groups)
        self.listers.trees.follows = loaded.gates.rules.queues_groups and enabled(TREES_GATE)
        self.unassigned: Store[Pod] = Store()
        """The pods that are on no node."""
        self.snapshot = Snapshot()
        self.cache = Cache(self.pod_groups, resizes_count_by_pod=loaded.gates.rules.resizes_count_by_pod)
        self.profiles = Profiles(extenders=bool(loaded.extenders), generic_workload=enabled(GENERIC_WORKLOAD))
        self.budgets = CycleBudgets(
            ports.clock,
            ports.background,
            self._metrics.over_budget,
            on_forgiven=self._release_held,
            terms_by_namespace=lambda: self.snapshot.placed.terms.terms_by_namespace,
        )
        for claims in (self.listers.resource_claims, self.listers.persistent_volume_claims):
            claims.followers.append(self._end_debts_for(claims))
        self._unassigned_events = UnassignedPodEvents(split=loaded.gates.rules.pod_events_are_split)
        self.queue = self._new_queue(plugins, on_ready, max_in_unschedulable_seconds, shard_of)
        self.waiting_pods = WaitingPods(ports.background, ports.clock)
        self.pods_in_pre_bind = PodsInPreBind(ports.background)
        self.at_work: Counter[str] = Counter()
        """How many tasks of each kind run: the values of goroutines."""

        self.equivalence_cache = EquivalenceCache(self.snapshot)
        self.handles = self._new_handles()
        """What the plugins of each profile are given."""
        self.profiles.add(self._new_frameworks(plugins, on_ready))
        self.wanted = wanted_actions(
            (profile.hints for profile in self.profiles.queue_profiles.values()),
            generic_workload=enabled(GENERIC_WORKLOAD),
        )
        """Which resources plugins wait for, and which of their changes."""

        self.schedule_one = self._new_schedule_one(Attempts(ports.clock, ports.chance, on_record))
        self.node_handler = self._new_node_handler()
        self.pod_handler = self._new_pod_handler()
        self.device_taint_rule_handler = DeviceTaintRuleHandler(
            self.queue, self.listers, clock=ports.clock, handled=self._metrics.event_handled
        )

    def _end_debts_for(self, claims: Store[Any]) -> Callable[[str], None]:
        def follow(key: str) -> None:
            if claims.by_key(key) is None:
                self.budgets.claim_gone(key)

        return follow

    def known(self, pod: Pod) -> Pod | None:
        """The latest version of the pod with this UID, on a node or not; None where it is gone."""
        current = self.unassigned.get(pod.name, pod.namespace) or self.cache.get_pod(pod.uid)
        return current if current is not None and current.uid == pod.uid else None

    def resource_handler(self, resource: str, store: Store[Any]) -> ResourceHandler:
        """A handler for a resource beside nodes and pods, with the store that keeps its objects."""
        return resource_handler(
            resource,
            store,
            queue=self.queue,
            wanted=self.wanted,
            clock=self._ports.clock,
            handled=self._metrics.event_handled,
        )

    def _release_held(self, namespaces: AbstractSet[str]) -> None:
        # The queue is made after the budgets, which it asks how long a pod waits.
        self.queue.release(namespaces)

    def _new_dispatcher(self) -> ApiDispatcher:
        ports = self._ports
        return ApiDispatcher(ports.pods, ports.background, ports.clock, self._metrics.calls)

    @property
    def _queues_groups(self) -> bool:
        """Whether the pods of a group wait and are tried as one."""
        return self.pod_groups is not None and self._loaded.gates.rules.queues_groups

    def _new_queue(
        self,
        plugins: PluginSource,
        on_ready: Callable[[], None],
        max_in_unschedulable_seconds: float,
        shard_of: ShardOf,
    ) -> SchedulingQueue:
        configuration, enabled = self._loaded.configuration, self.feature_enabled
        gate = None if self.pod_groups is None else GangGate(self.pod_groups, self.listers.trees)
        return SchedulingQueue(
            self.profiles.less,
            self.profiles.queue_profiles,
            self._ports.clock,
            pod_lister=lister(self.unassigned),
            sort_key=self.profiles.sort_key,
            initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
            max_backoff_seconds=configuration.pod_max_backoff_seconds,
            max_in_unschedulable_seconds=max_in_unschedulable_seconds,
            metrics=self._metrics.queue,
            pop_from_backoff=enabled("SchedulerPopFromBackoffQ"),
            generic_workload=enabled(GENERIC_WORKLOAD),
            groups=self.listers.trees if self._queues_groups else None,
            background=self._ports.background,
            on_ready=on_ready,
            ask_hints=plugins.ask_hints,
            leaves_out=None if gate is None else gate.leaves_out,
            wait_seconds=self.budgets.wait_seconds,
            shard_of=shard_of,
            unassigned_events=self._unassigned_events,
            nominates_gated=self._loaded.gates.rules.gated_pods_are_nominated,
            still_gated=GatedPods(self._writer, self._ports.background, self._ports.clock).tell,
        )

    def _new_frameworks(self, plugins: PluginSource, wake: Callable[[], None]) -> Mapping[str, Framework]:
        parts = SchedulerParts(
            cache=self.cache,
            snapshot=self.snapshot,
            answers=self.equivalence_cache,
            queue=self.queue,
            waiting_pods=self.waiting_pods,
            rewire=self.profiles.rewire,
            wake=wake,
        )
        return build_frameworks(
            self._loaded.profiles, plugins.factories(parts), self.handles.__getitem__, plugins.extenders
        )

    def _new_handles(self) -> Mapping[str, Handle]:
        screening, departures = Screening(), Departures()
        names = (profile.scheduler_name for profile in self._loaded.profiles)
        return {name: self._new_handle(name, screening, departures) for name in names}

    def _new_handle(self, profile: str, screening: Screening, departures: Departures) -> Handle:
        handle = Handle(
            profile_name=profile,
            snapshot=self.snapshot,
            listers=self.listers,
            nominator=self.queue.nominator,
            waiting_pods=self.waiting_pods,
            writer=self._writer,
            recorder=self._recorder,
            clock=self._ports.clock,
            random=self._ports.chance,
            feature_enabled=self.feature_enabled,
            rules=self._loaded.gates.rules,
            activate=self.queue.activate,
            background=self._ports.background,
            pods_in_pre_bind=self.pods_in_pre_bind,
            volume_writer=self._ports.volumes,
            claim_writer=self._ports.claims,
            claim_metrics=self._metrics.claims,
            pod_groups=PodGroupStates() if self.pod_groups is None else self.pod_groups,
            known=self.known,
        )
        preemption = Evaluator(
            handle,
            self.profiles.frameworks,
            screening=screening,
            departures=departures,
            metrics=self._metrics.preemption,
        )
        return replace(handle, preemption=preemption)

    def _new_node_handler(self) -> NodeHandler:
        return NodeHandler(
            self.queue,
            self.cache,
            clock=self._ports.clock,
            handled=self._metrics.event_handled,
            declared_features=self.feature_enabled("NodeDeclaredFeatures"),
        )

    def _new_pod_handler(self) -> PodHandler:
        return PodHandler(
            self.queue,
            self.cache,
            unassigned=self.unassigned,
            profiles=self.profiles.frameworks,
            waiting_pods=self.waiting_pods,
            clock=self._ports.clock,
            handled=self._metrics.event_handled,
            gang_scheduling=self.feature_enabled("GangScheduling"),
            sync_calls=None if self.dispatcher is None else self.dispatcher.sync,
            resizes_count_by_pod=self._loaded.gates.rules.resizes_count_by_pod,
            unassigned_events=self._unassigned_events,
            on_gone=self.budgets.pod_gone,
        )

    def _new_schedule_one(self, attempts: Attempts) -> ScheduleOne:
        failure = self._new_failure_handler()
        search = NodeSearch(
            self.queue.nominator, Rotation(), self._loaded.configuration.percentage_of_nodes_to_score
        )
        algorithm = SchedulePod(search, self._ports.chance, self.equivalence_cache)
        binding = self._new_binding_cycle(failure)
        commit = AssumeAndBind(self.cache, self.queue.nominator, binding, failure, attempts)
        groups = None
        if self.pod_groups is not None:
            plans = PlanMemory(self._plans_rest_on)
            rules = self._loaded.gates.rules
            judge = None
            if self._queues_groups:
                judge = Counting(rules.rejected_groups_name_plugins, rules.tries_nominated_placements_first)
            ground = SchedulingContext(
                self.cache,
                self.snapshot,
                self.queue.nominator,
                algorithm,
                plans,
                judge,
                EqualPods(search, self.equivalence_cache),
            )
            groups = self._new_group_cycle(self.pod_groups, ground, Submission(commit, failure, attempts))
        return ScheduleOne(
            frameworks=self.profiles.frameworks,
            queue=self.queue,
            cache=self.cache,
            snapshot=self.snapshot,
            algorithm=algorithm,
            commit=commit,
            failure=failure,
            attempts=attempts,
            groups=groups,
        )

    def _new_failure_handler(self) -> FailureHandler:
        return FailureHandler(
            queue=self.queue,
            lookup=lister(self.unassigned),
            writer=self._writer,
            recorder=self._recorder,
            background=self._ports.background,
            clock=self._ports.clock,
            budgets=self.budgets,
        )

    def _new_binding_cycle(self, failure: FailureHandler) -> BindingCycle:
        return BindingCycle(
            cache=self.cache,
            queue=self.queue,
            waiting_pods=self.waiting_pods,
            pods_in_pre_bind=self.pods_in_pre_bind,
            writer=self._writer,
            recorder=self._recorder,
            background=self._ports.background,
            on_failure=failure.handle,
            at_work=self.at_work,
            announces=self.feature_enabled("NominatedNodeNameForExpectation"),
            clock=self._ports.clock,
        )

    def _plans_rest_on(self) -> tuple[int, ...]:
        """How far everything has come that a plan for a group rests on, but sidecars."""
        return self.cache.version, self.queue.nominator.changes.end, self.listers.generation

    def _new_group_cycle(
        self, states: PodGroupStates, ground: SchedulingContext, submission: Submission
    ) -> PodGroupCycle:
        ports, enabled = self._ports, self.feature_enabled
        return PodGroupCycle(
            frameworks=self.profiles.frameworks,
            queue=self.queue,
            states=states,
            trees=self.listers.trees,
            ground=ground,
            submission=submission,
            conditions=GroupConditions(
                AssumeCache(self.listers.pod_groups),
                AssumeCache(self.listers.composite_pod_groups),
                ports.pod_groups,
                ports.background,
                ports.clock,
                self._loaded.gates.rules.pod_group_condition,
                self._loaded.gates.rules.composite_group_condition,
            ),
            features=GroupFeatures(
                enabled("TopologyAwareWorkloadScheduling"),
                enabled("WorkloadAwarePreemption"),
                OF_A_HIERARCHY if self._loaded.gates.rules.names_pods_that_differ else OF_A_GROUP,
                enabled(GROUPS_POLICY),
            ),
            chance=self._ports.chance,
            clock=self._ports.clock,
            metrics=self._metrics.pod_groups,
        )
