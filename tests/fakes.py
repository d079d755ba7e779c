# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Tiny plugins that do what a test sets, and the parts of a scheduler around them."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from berth.binding.binding_cycle import BindingCycle
from berth.binding.pods_in_pre_bind import PodsInPreBind
from berth.binding.waiting_pods import WaitingPods
from berth.cache.cache import Cache
from berth.cycle.assume_and_bind import AssumeAndBind
from berth.cycle.attempts import Attempts
from berth.cycle.budgets import CycleBudgets
from berth.cycle.failure import FailureHandler
from berth.cycle.schedule_one import ScheduleOne
from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.event_handlers.pods import lister
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    BindPlugin,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    PermitResult,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreFlightResult,
    PreScorePlugin,
    Reason,
    ReservePlugin,
    ScorePlugin,
)
from berth.framework.mirrors.listers import Store
from berth.framework.runtime import Framework, ProfilePlugins
from berth.framework.status import SUCCESS, Code, Status
from berth.plugins.priority_sort import PrioritySort
from berth.queue.pools.record_heap import whole
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_pod
from berth.testing.handles import ManualClock, RecordingRecorder, RememberingWriter

PROFILE = "default-scheduler"


def pending(name="p0", scheduler_name=PROFILE, **fields):
    """A pod of our profile that is on no node."""
    return make_pod(name, scheduler_name=scheduler_name, **fields)


class Named(Plugin):
    """A plugin of any name that notes what it was asked in `calls`."""

    def __init__(self, name, calls=None):
        self._name = name
        self.calls = calls if calls is not None else []

    @property
    def name(self):
        return self._name

    def note(self, point):
        self.calls.append(f"{self._name}.{point}")


def given(answer):
    """The answer, or what it raises."""
    if isinstance(answer, Exception):
        raise answer
    return answer


class PreFilters(Named, PreFilterPlugin):
    """Answers a status, perhaps with node names."""

    def __init__(self, name, status=SUCCESS, node_names=None, calls=None):
        super().__init__(name, calls)
        self.status, self.node_names = status, node_names

    def pre_filter(self, state, pod, nodes):
        self.note("pre_filter")
        names = None if self.node_names is None else frozenset(self.node_names)
        return PreFilterResult(given(self.status), names)


class Rejects(Named, FilterPlugin):
    """Turns down the nodes named, each with its own reason: `{node: "text"}` or `{node: Status}`."""

    def __init__(self, name, verdicts=(), calls=None):
        super().__init__(name, calls)
        self.verdicts = dict.fromkeys(verdicts, name) if isinstance(verdicts, list) else dict(verdicts)
        self.spelled = list(self.verdicts.values())

    def filter(self, state, pod, nodes):
        self.note("filter")
        numbers = {node: i + 1 for i, node in enumerate(self.verdicts)}
        return np.array([numbers.get(name, 0) for name in nodes.names], dtype=np.uint8)

    def filter_status(self, state, code):
        verdict = self.spelled[code - 1]
        return verdict if isinstance(verdict, Status) else Status(Code.UNSCHEDULABLE, (verdict,), self.name)


class OnePod(Named, PreFilterExtensions, FilterPlugin):
    """Lets `room` pods on a node, counting those in its state that were added on trial."""

    reasons = (Reason("full"),)

    def __init__(self, name="OnePod", room=1, added=SUCCESS):
        super().__init__(name)
        self.room, self.added = room, added

    def pre_filter(self, state, pod, nodes):
        state.write(OnePod, Counted())
        return PreFilterResult()

    def add_pod(self, state, pod, other, node):
        state.read(OnePod).extra += 1
        self.calls.append(f"add {other.pod.name} on {node.names[0]}")
        return given(self.added)

    def remove_pod(self, state, pod, other, node):
        state.read(OnePod).extra -= 1
        return SUCCESS

    def filter(self, state, pod, nodes):
        return (nodes.pod_count >= self.room).astype(np.uint8)


@dataclass
class Counted:
    extra: int = 0

    def clone(self):
        return Counted(self.extra)


class PostFilters(Named, PostFilterPlugin):
    def __init__(self, name, status, nominating=None, calls=None):
        super().__init__(name, calls)
        self.status, self.nominating = status, nominating

    def post_filter(self, state, pod, diagnosis):
        self.note("post_filter")
        self.diagnosis = diagnosis
        return PostFilterResult(given(self.status), self.nominating)


class Scores(Named, ScorePlugin):
    """Scores nodes by name; what is not named scores nothing."""

    def __init__(self, name, by_node=(), calls=None, *, in_process=True):
        super().__init__(name, calls)
        self.by_node = by_node if isinstance(by_node, Exception) else dict(by_node)
        self.in_process = in_process

    def score(self, state, pod, nodes):
        self.note("score")
        scores = given(self.by_node)
        return np.array([scores.get(name, 0) for name in nodes.names], dtype=np.int64)


class Normalizes(Scores, NormalizeScorePlugin):
    """Notes what it was given to normalise, and adds to it."""

    def __init__(self, name, by_node=(), add=0, **options):
        super().__init__(name, by_node, **options)
        self.add = add

    def normalize_score(self, state, pod, scores):
        self.seen = scores.tolist()
        return scores + given(self.add)


class PreScores(Scores, PreScorePlugin):
    def __init__(self, name, status, by_node=(), **options):
        super().__init__(name, by_node, **options)
        self.status = status

    def pre_score(self, state, pod, nodes, feasible):
        self.feasible = feasible.tolist()
        return given(self.status)


class Reserves(Named, ReservePlugin):
    def __init__(self, name, status=SUCCESS, calls=None):
        super().__init__(name, calls)
        self.status = status

    def reserve(self, state, pod, node_name):
        self.note("reserve")
        return given(self.status)

    def unreserve(self, state, pod, node_name):
        self.note("unreserve")


class Permits(Named, PermitPlugin):
    def __init__(self, name, status=SUCCESS, seconds=0.0, calls=None):
        super().__init__(name, calls)
        self.status, self.seconds = status, seconds

    def permit(self, state, pod, node_name):
        self.note("permit")
        return PermitResult(given(self.status), self.seconds)


class PreBinds(Named, PreBindPlugin):
    def __init__(self, name, status=SUCCESS, *, flight=SUCCESS, parallel=False, calls=None):
        super().__init__(name, calls)
        self.status, self.flight, self.parallel = status, flight, parallel

    def pre_bind_pre_flight(self, state, pod, node_name):
        return PreFlightResult(given(self.flight), self.parallel)

    async def pre_bind(self, state, pod, node_name):
        self.note("pre_bind")
        return given(self.status)


class Binds(Named, BindPlugin):
    def __init__(self, name="Binds", status=SUCCESS, calls=None):
        super().__init__(name, calls)
        self.status = status

    async def bind(self, state, pod, node_name):
        self.note(f"bind {pod.name} to {node_name}")
        return given(self.status)


class PostBinds(Named, PostBindPlugin):
    def __init__(self, name, failure=None, calls=None):
        super().__init__(name, calls)
        self.failure = failure

    def post_bind(self, state, pod, node_name):
        self.note("post_bind")
        given(self.failure)


def framework(**points: Any) -> Framework:
    """A profile of these plugins; score plugins weigh 1 unless given as (plugin, weight)."""
    percentage = points.pop("percentage", None)
    if "score" in points:
        points["score"] = [s if isinstance(s, tuple) else (s, 1) for s in points["score"]]
    named = [p[0] if isinstance(p, tuple) else p for plugins in points.values() for p in plugins]
    plugins = ProfilePlugins(**points, by_name={p.name: p for p in named})
    return Framework(PROFILE, plugins, percentage_of_nodes_to_score=percentage)


def new_record(pod=None) -> CycleRecord:
    return CycleRecord(pod or make_pod(), PROFILE, 1, b"t" * 16, b"s" * 8, 0, 0, 0)


def attempt_at(nodes: Snapshot, pod=None) -> Attempt:
    pod = pod or make_pod()
    return Attempt(pod, nodes, CycleState(), new_record(pod))


class Later:
    """A value that arrives once; a coroutine that awaits it before is left standing by `Steps`."""

    def __init__(self):
        self.value = None
        self.arrived = False

    def set(self, value):
        if self.arrived:
            return False
        self.value, self.arrived = value, True
        return True

    def __await__(self):
        while not self.arrived:
            yield self
        return self.value


@dataclass
class FakeTimer:
    at: float
    call: Any
    cancelled: bool = False

    def cancel(self):
        self.cancelled = True


@dataclass
class Steps:
    """Background work that runs when a test says so, on a clock that a test moves."""

    clock: ManualClock
    work: list = field(default_factory=list)
    timers: list = field(default_factory=list)
    names: list = field(default_factory=list)

    def spawn(self, work, name, context=None):
        self.work.append(work)
        self.names.append(name)

    def outcome(self):
        return Later()

    def call_later(self, seconds, call):
        timer = FakeTimer(self.clock.monotonic() + seconds, call)
        self.timers.append(timer)
        return timer

    async def unless(self, stop, work):
        return await work

    async def breathe(self):
        """Everything else waits for `run`."""

    async def all_of(self, work):
        return [await one for one in work]

    def advance(self, seconds):
        """Let time pass; timers that are due go off."""
        self.clock.seconds += seconds
        due = [t for t in self.timers if t.at <= self.clock.seconds and not t.cancelled]
        self.timers = [t for t in self.timers if t.at > self.clock.seconds and not t.cancelled]
        for timer in due:
            timer.call()

    def run(self):
        """Run everything as far as it goes; what waits for an outcome stays."""
        waiting = []
        while self.work:
            work = self.work.pop(0)
            try:
                work.send(None)
            except StopIteration:
                continue
            waiting.append(work)
        self.work = waiting

    def close(self):
        for work in self.work:
            work.close()


@dataclass
class Core:
    """A whole core on fakes: nodes and pods in, bindings and conditions out."""

    frameworks: dict
    cache: Cache
    queue: SchedulingQueue
    unassigned: Store
    writer: RememberingWriter
    recorder: RecordingRecorder
    background: Steps
    waiting_pods: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    queue_profiles: dict
    clock: ManualClock
    schedule_one: ScheduleOne
    records: list
    ready: asyncio.Event

    def add_pod(self, pod):
        """A pod is created."""
        self.unassigned.put(pod)
        self.queue.add(pod)
        return pod

    async def turn(self):
        """Schedule the next pod and run what comes of it."""
        info = self.queue.pop()
        assert info is not None, "a pod is ready"
        await self.schedule_one.schedule(info)
        self.background.run()
        return info

    @property
    def conditions(self):
        return [patch[0] for _, patch in self.writer.patches if patch[0] is not None]

    @property
    def nominations(self):
        return [patch[1] for _, patch in self.writer.patches]

    @property
    def notes(self):
        return [(reason, note) for _, _, reason, _, note in self.recorder.events]

    def waits(self, name="p0"):
        return self.queue.record("default", name)


def empty(profile: Framework, *, detailed=False) -> CachedEvaluation:
    """Answers of the profile's plugins that know nothing yet."""
    return CachedEvaluation(NodePlugins(profile.plugins), detailed=detailed)


def make_core(profile: Framework, *nodes, profiles=None, percentage=0, hints=None, shard_of=whole) -> Core:
    """A core that schedules with this profile on these nodes."""
    clock, cache, unassigned = ManualClock(1000.0), Cache(), Store()
    for node in nodes:
        cache.add_node(node)
    writer, recorder, background = RememberingWriter(), RecordingRecorder(), Steps(clock)
    queue_profiles = {name: hints or QueueProfile() for name in profiles or {PROFILE: profile}}
    ready = asyncio.Event()
    queue = SchedulingQueue(
        PrioritySort(None, None).less,
        queue_profiles,
        clock,
        pod_lister=lister(unassigned),
        on_ready=ready.set,
        shard_of=shard_of,
    )
    waiting, in_pre_bind = WaitingPods(background, clock), PodsInPreBind(background)
    failure = FailureHandler(
        queue, lister(unassigned), writer, recorder, background, clock, CycleBudgets(clock, background)
    )
    binding = BindingCycle(cache, queue, waiting, in_pre_bind, writer, recorder, background, failure.handle)
    chance, records = random.Random(1), []
    algorithm = SchedulePod(NodeSearch(queue.nominator, Rotation(), percentage), chance)
    frameworks = profiles or {PROFILE: profile}
    attempts = Attempts(clock, chance, records.append)
    commit = AssumeAndBind(cache, queue.nominator, binding, failure, attempts)
    one = ScheduleOne(frameworks, queue, cache, Snapshot(), algorithm, commit, failure, attempts)
    return Core(
        frameworks,
        cache,
        queue,
        unassigned,
        writer,
        recorder,
        background,
        waiting,
        in_pre_bind,
        queue_profiles,
        clock,
        one,
        records,
        ready,
    )
