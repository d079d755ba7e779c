"""Runs a scheduler's real core on a cluster in memory, in virtual time, with seeded random numbers.

    cluster --> state --> event handlers --> queue --> scheduling loop --> writers --> state
                  ^             +--> workloads: pods of owners                |
                  |                     v                                     |
                  +---- timeline: arrivals, ends, changes <-------------------+

It ends once nothing can change any more: no pod is in activeQ, in backoffQ or waits for
Permit, and the timeline is empty. Pods that no event can help are not tried every five minutes, and
pods of groups, which are tried again without an event, only while that can have another result (retries).

Called by: the command, fill, compare.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from berth.config.releases.release import shown
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.core_ports import CorePorts
from berth.objects.api_object import TypedObject
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.queue.sub_queues import BACKOFF
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.scheduling_loop import SchedulingLoop
from berth.scheduler.scheduler import Scheduler
from berth.simulation.cluster.state import ClusterState
from berth.simulation.cluster.virtual_time import LoopClock, VirtualTimeLoop
from berth.simulation.cluster.workloads import Workloads
from berth.simulation.cluster.writers import ClaimsInMemory, PodGroupsInMemory, PodsInMemory, VolumesInMemory
from berth.simulation.queue_shares.samples import Samples
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.reading.kinds import KINDS
from berth.simulation.reading.timeline import Timeline, arrival_of, departure_of, duration_of
from berth.simulation.running.fragmentation import fragmentation
from berth.simulation.running.handlers import handlers_of
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.outcome import (
    ERROR,
    GATED,
    UNSCHEDULABLE,
    USUAL,
    WAITING,
    PendingPod,
    SimulatedPlacement,
    SimulatedPreemption,
    SimulationOutcome,
    in_use,
    utilization,
    waits_of,
    without_profile,
)
from berth.simulation.running.plugins import SimulationPlugins, plugins_of
from berth.simulation.running.retries import CountedChance, Retries, goes_round
from berth.simulation.running.simulated_events import SimulatedEvents

LOOK_SECONDS: Final = 1.0
"""How often it is looked whether anything is left to do; the shortest backoff is no shorter."""
PATIENCE_SECONDS: Final = 3600.0
"""Attempts that break off are repeated for ever: it is over when they have brought nothing for so long."""

T = TypeVar("T")


def simulate(cluster: ClusterInput, options: SimulationOptions) -> SimulationOutcome:
    """Simulate the cluster; the same input and options give the same outcome.

    Raises: InputError, PluginsError, BuildError, EventRegistrationError.
    """

    async def run(simulation: Simulation) -> SimulationOutcome:
        return simulation.outcome()

    return after(cluster, options, run)


def after(
    cluster: ClusterInput,
    options: SimulationOptions,
    then: Callable[["Simulation"], Coroutine[Any, Any, T]],
    *,
    before: Callable[["Simulation"], None] | None = None,
) -> T:
    """The result of `then`, called on the virtual-time loop at the end of the simulation.

    `before` is called with the simulation before it runs.

    Raises: as `simulate`, and what `then` raises.
    """

    async def run(plugins: SimulationPlugins) -> T:
        async with asyncio.TaskGroup() as tasks:
            simulation = Simulation(cluster, options, plugins, tasks)
            if before is not None:
                before(simulation)
            await simulation.run()
            found = await then(simulation)
            await simulation.end()
        return found

    with (
        plugins_of(cluster, options) as plugins,
        asyncio.Runner(loop_factory=partial(VirtualTimeLoop, plugins.moves)) as runner,
    ):
        try:
            return runner.run(run(plugins))
        except ExceptionGroup as group:
            # One task failed, and the others were cancelled for it.
            raise group.exceptions[0] from None


def _last_start(cluster: ClusterInput) -> int:
    """The start of the youngest pod of the input: pods that start from now on are younger."""
    pods: Iterable[Pod] = cluster.of(Pod).values()
    started = (pod.start_time.timestamp() for pod in pods if pod.start_time)
    return int(max(started, default=0.0))


@dataclass(slots=True)
class _Track:
    """The state of a pod that is to be scheduled. Units: virtual seconds."""

    pod: Pod
    arrived: float
    attempts: int = 0
    message: str = ""
    failed: bool = False
    bound_at: float | None = None
    node: str = ""
    number: int = 0


@dataclass
class Simulation:
    """One simulation, on a running virtual-time loop; its tasks belong to `tasks`."""

    cluster: ClusterInput
    options: SimulationOptions
    plugins: SimulationPlugins
    tasks: asyncio.TaskGroup
    tracks: dict[str, _Track] = field(default_factory=dict)
    """Each pod that is or was to be scheduled, by UID."""
    preemptions: list[SimulatedPreemption] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Create the parts, in the order of their dependencies."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop), "a simulation runs in virtual time"
        self._loop = loop
        self._bound = 0
        self.chance = CountedChance(self.options.seed)
        may_change = self.plugins.present or goes_round(self.options.loaded)
        self._retries = Retries(self.chance, may_change=may_change)
        self.clock = LoopClock(loop, _last_start(self.cluster))
        self._began = self._progress = self.clock.wall()
        self._queues = Samples(self.options.queues_every)
        self.timeline = Timeline()
        self.state = ClusterState(loop.call_soon)
        self._background = AsyncioBackground(self.tasks)
        ready = asyncio.Event()
        self.core = Scheduler(
            self.options.loaded,
            plugins=self.plugins.source(self.state, self.clock),
            ports=CorePorts(
                pods=PodsInMemory(self.state, self.clock, self._on_bound),
                volumes=VolumesInMemory(self.state),
                claims=ClaimsInMemory(self.state),
                pod_groups=PodGroupsInMemory(self.state),
                background=self._background,
                clock=self.clock,
                chance=self.chance,
            ),
            recorder=SimulatedEvents(self._on_event),
            on_record=self._on_record,
            on_ready=ready.set,
        )
        found = handlers_of(self.core)
        self._workloads = Workloads(self.state, self.put, self.remove, self.cluster.of(Pod))
        for kind in KINDS:
            if kind.type in found:
                shown = self.plugins.shown(kind, found[kind.type])
                self.state.handlers[kind.type] = self._workloads.heard(kind.type, shown)
        self._driver = SchedulingLoop(self.core, clock=self.clock, ready=ready, turn=asyncio.Lock())

    # Time.

    async def run(self) -> None:
        """Run to the end. Raises: PluginsError."""
        self.plugins.connect(self.core, self._background.spawn)
        await self._loop.idle()
        for _, obj in self.cluster.all():
            self._bring(obj)
        for revision in self.cluster.workloads:
            self.timeline.put(self._began + revision.at, partial(self._workloads.apply, revision))
        for change in self.options.changes:
            if change.after:
                self.timeline.put(self._began + change.after, partial(change.act, self))
        self.timeline.run(self.clock.wall())
        self.state.deliver()
        loop_task = self.tasks.create_task(self._driver.run())
        await self._loop.idle()
        self._sample_queues()
        last = self._began + self.options.max_seconds
        while (later := self._next_look()) is not None and self.clock.wall() < last:
            await asyncio.sleep(min(later, last, self._next_sample()) - self.clock.wall())
            self.timeline.run(self.clock.wall())
            await self._loop.idle()
            if self.clock.wall() >= self._next_sample():
                self._sample_queues()
        self._sample_queues()
        self._driver.stop()
        await loop_task

    def _next_sample(self) -> float:
        return self._began + self._queues.due if self._queues.every else math.inf

    def _sample_queues(self) -> None:
        if self._queues.every:
            # Plugins see what has changed since the last attempt, too.
            self.core.cache.update_snapshot(self.core.snapshot)
            self._queues.take(round(self.clock.wall() - self._began, 3), self.plugins.queues())

    def _next_look(self) -> float | None:
        """The time to continue at; None where nothing is left to do."""
        sizes = self.core.queue.sizes()
        working = sizes.active or any(True for _ in self.core.waiting_pods) or any(self.core.at_work.values())
        due = min(self.timeline.next_time(), self.plugins.next_wake(self._progress))
        if due == math.inf:
            if self.clock.wall() > self._progress + PATIENCE_SECONDS:
                return None
            if not working and (not sizes.backoff or self._only_in_vain()):
                return None
        return min(due, self.clock.wall() + LOOK_SECONDS) if working or sizes.backoff else due

    def _only_in_vain(self) -> bool:
        """Whether the pods in backoffQ would be tried in vain."""
        queue = self.core.queue
        backing_off = (record for record in queue.records() if queue.place_of(record) == BACKOFF)
        return self._retries.in_vain(backing_off, self.state.changes)

    async def end(self) -> None:
        """Cancel the remaining tasks."""
        await self._background.settle(0.0)

    # What comes and goes.

    def _bring(self, obj: TypedObject) -> None:
        at = self._began + (arrival_of(obj) if isinstance(obj, Pod | Node) else 0.0)
        self.timeline.put(at, partial(self.put, obj))
        departure = departure_of(obj) if isinstance(obj, Pod) else None
        if departure is not None:
            self.timeline.put(max(at, self._began + departure), partial(self._end_pod, obj))

    def nodes(self) -> list[Node]:
        """All nodes, as they are now."""
        return list(self.state.all(Node))

    def pods(self) -> list[Pod]:
        """All pods, as they are now."""
        return list(self.state.all(Pod))

    def remove(self, obj: TypedObject) -> None:
        """Delete an object now."""
        self._progress = self.clock.wall()
        self.state.remove(obj)

    def put(self, obj: TypedObject) -> None:
        """Create or replace an object now; a pod without a node is to be scheduled."""
        now = self._progress = self.clock.wall()
        if self.state.get(type(obj), obj.key) is not None:
            self.state.put(obj)
            return
        if isinstance(obj, Pod) and not obj.node_name:
            self.tracks[obj.uid] = _Track(obj, now)
        elif isinstance(obj, Pod | Node):
            self._end_in_time(obj)
        self.state.put(obj)

    def _end_in_time(self, obj: Pod | Node) -> None:
        duration = duration_of(obj)
        if duration is not None:
            end = self._end_node if isinstance(obj, Node) else self._end_pod
            self.timeline.put(self.clock.wall() + duration, partial(end, obj))

    def _end_pod(self, pod: TypedObject) -> None:
        current = self.state.get(Pod, pod.key)
        if current is not None and current.uid == pod.uid:
            self.state.remove(current)

    def _end_node(self, node: TypedObject) -> None:
        """Delete the node, and its pods, as the pod garbage collector does."""
        for pod in self.state.all(Pod):
            if pod.node_name == node.name:
                self.state.remove(pod)
        self.state.remove(node)

    # What is heard of.

    def _on_bound(self, pod: Pod) -> None:
        self._progress = self.clock.wall()
        track = self.tracks.get(pod.uid)
        if track is not None:
            track.bound_at, track.node = self.clock.wall(), pod.node_name
            track.number = self._bound = self._bound + 1
        self._end_in_time(pod)

    def _on_event(self, pod: Pod, reason: str, note: str, related: Any) -> None:
        if reason == "FailedScheduling" and pod.uid in self.tracks:
            self.tracks[pod.uid].message = note
        elif reason == "Preempted":
            by = related.key if related is not None else ""
            at = round(self.clock.wall() - self._began, 3)
            self.preemptions.append(SimulatedPreemption(pod.key, pod.node_name, by, at))

    def _on_record(self, record: CycleRecord) -> None:
        track = self.tracks.get(record.pod.uid)
        if track is not None:
            track.attempts += 1
            track.failed = record.result == "error"
            if record.result == "unschedulable" and record.pod.spec.scheduling_group is not None:
                self._retries.tried(record.pod.uid, self.state.changes)
        self.plugins.ended(record)

    # What came of it.

    def outcome(self) -> SimulationOutcome:
        """The outcome up to now."""
        self.core.cache.update_snapshot(self.core.snapshot)
        placements = sorted(self._placement(track) for track in self.tracks.values() if track.node)
        pending = sorted(self._pending(track) for track in self.tracks.values() if self._is_pending(track))
        extended = {
            name for node in self.state.all(Node) for name in node.status.allocatable if name not in USUAL
        }
        return SimulationOutcome(
            release=shown(self.options.loaded.gates.version.binary),
            seed=self.options.seed,
            seconds=round(self.clock.wall() - self._began, 3),
            nodes=len(self.core.snapshot),
            pods=len(self.tracks),
            placements=placements,
            pending=pending,
            preemptions=self.preemptions,
            utilization=utilization(self.core.snapshot, extended),
            fragmentation=fragmentation(
                self.core.snapshot,
                (track.pod for track in self.tracks.values()),
                (*USUAL - {"pods"}, *extended),
            ),
            waits=waits_of([each.wait_seconds for each in placements]),
            nodes_in_use=in_use(self.core.snapshot),
            left_out=self.left_out(),
            plugins=self.plugins.uses(),
            queues=self._queues.taken,
        )

    def left_out(self) -> dict[str, int]:
        """The objects of the input that no decision reads and no plugin was shown, by kind."""
        return dict(sorted((self.cluster.left_out - self.plugins.shown_kinds()).items()))

    def _is_pending(self, track: _Track) -> bool:
        """Whether the pod exists and has no node; a drained pod was replaced by another."""
        current = self.state.get(Pod, track.pod.key)
        return not track.node and current is not None and current.uid == track.pod.uid

    def _placement(self, track: _Track) -> SimulatedPlacement:
        assert track.bound_at is not None, "it has a node"
        return SimulatedPlacement(
            track.pod.key,
            track.node,
            track.pod.spec.scheduler_name,
            round(track.bound_at - self._began, 3),
            round(track.bound_at - track.arrived, 3),
            track.attempts,
            track.number,
        )

    def _pending(self, track: _Track) -> PendingPod:
        pod, profile = track.pod, track.pod.spec.scheduler_name
        record = self.core.queue.record(pod.namespace, pod.name)
        if profile not in self.core.profiles.frameworks:
            return without_profile(pod, self.core.profiles.frameworks)
        gate = None if record is None else self.core.queue.gate_of(record)
        if gate is not None:
            message = track.message or (f"gated by {gate.plugin}" if gate.plugin else gate.message)
            waits_for = self.plugins.may_let_go_on(pod.uid, gate.plugin)
            return PendingPod(pod.key, profile, GATED, message, track.attempts, waits_for)
        reason = ERROR if track.failed else UNSCHEDULABLE if track.message else WAITING
        waits_for = "" if track.failed else self.plugins.may_let_go_on(pod.uid, "")
        return PendingPod(pod.key, profile, reason, track.message, track.attempts, waits_for)
