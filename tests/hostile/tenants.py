"""How long a quiet tenant's pods wait for their nodes beside a hostile tenant, and without it.

    objects --as they are due--> decoded --> handlers --> the scheduling loop --> bindings in memory

The clock is this thread's CPU, and skips the time in which nothing is to be done: other processes do not
count. A whole scheduler runs on it, with the cluster's objects in memory in place of an API server.
"""

import asyncio
import gc
import heapq
import logging
import math
import random
import time
from collections import Counter
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from msgspec.structs import replace

from berth.framework.core_ports import CorePorts
from berth.plugins.registry import IN_TREE
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.event_loop import collect_seldom, leave_alone_what_there_is
from berth.scheduler.loop.scheduling_loop import SchedulingLoop
from berth.scheduler.plugin_source import InProcessPlugins
from berth.scheduler.scheduler import Scheduler
from berth.simulation.cluster.state import ClusterState
from berth.simulation.cluster.virtual_time import LoopClock, VirtualTimeLoop
from berth.simulation.cluster.writers import ClaimsInMemory, PodGroupsInMemory, PodsInMemory, VolumesInMemory
from berth.simulation.reading.kinds import BY_NAME
from berth.simulation.running.handlers import handlers_of
from berth.testing.handles import RecordingRecorder
from tests.hostile.tenant_clusters import QUIET, Drawn, Written, drawn
from tests.hostile.whole_core import loaded

AT_ONCE_BYTES = 65_536
"""So much of a watch is read before everything else has its turn."""
PATIENCE_SECONDS = 60.0
"""How long pods may still wait after the last one has come."""

FLOOR_SECONDS = 0.05
"""A tenant that waits for less without the other counts as one that waits for so long."""
MAX_RATIO = 3.0
MAX_SECONDS = 2.0


class CpuTimeLoop(VirtualTimeLoop):
    """An event loop whose time is the CPU of this thread, and the waiting that it skips."""

    def time(self) -> float:
        """CPU seconds and skipped ones."""
        return super().time() + time.thread_time()


def read(each: Written):
    """The object as the watch brings it."""
    return BY_NAME[each.group, each.kind].decode(each.data)


class Watched(PodsInMemory):
    """Writes to pods, of which the watch brings the whole object once more."""

    def __init__(self, state, clock, on_bound):
        super().__init__(state, clock, on_bound)
        self.pods: dict[str, Written] = {}

    def bind(self, pod, node_name, done, annotations=()):
        super().bind(pod, node_name, done, annotations)
        read(self.pods[pod.key])

    async def patch_pod_status(self, pod, condition, nominated_node_name):
        await super().patch_pod_status(pod, condition, nominated_node_name)
        read(self.pods[pod.key])


class Cluster:
    """A scheduler on that clock; when pods were bound, and how often each was tried."""

    def __init__(self, tasks):
        self.loop = asyncio.get_running_loop()
        self.clock = LoopClock(self.loop)
        self.bound, self.tries = {}, Counter()
        self._one_more = asyncio.Event()
        self.state = ClusterState(self.loop.call_soon)
        self.pods = Watched(self.state, self.clock, self._on_bound)
        ready = asyncio.Event()
        self.core = Scheduler(
            loaded(),
            plugins=InProcessPlugins(IN_TREE),
            ports=CorePorts(
                pods=self.pods,
                volumes=VolumesInMemory(self.state),
                claims=ClaimsInMemory(self.state),
                pod_groups=PodGroupsInMemory(self.state),
                background=AsyncioBackground(tasks),
                clock=self.clock,
                chance=random.Random(1),
            ),
            recorder=RecordingRecorder(),
            on_record=self._on_record,
            on_ready=ready.set,
        )
        self.state.handlers.update(handlers_of(self.core))
        self.driver = SchedulingLoop(self.core, clock=self.clock, ready=ready, turn=asyncio.Lock())

    def _on_bound(self, pod):
        if pod.namespace == QUIET:
            self.bound[pod.key] = self.clock.monotonic()
            self._one_more.set()

    async def until_bound(self, number, end):
        """Wait until so many quiet pods are bound, or until then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(end - self.clock.monotonic()):
                while len(self.bound) < number:
                    self._one_more.clear()
                    await self._one_more.wait()

    def _on_record(self, record):
        self.tries[record.pod.key] += 1

    def begin(self, objects):
        """The first lists."""
        for each in objects:
            self.state.put(read(each))
        self.state.deliver()
        self.core.cache.update_snapshot(self.core.snapshot)

    async def feed(self, objects, seconds):
        """Bring the objects as they are due, for so long; pods that do not stay go and come again."""
        began, size, order = self.clock.monotonic(), 0, count()
        due = [(each.at, next(order), each, None) for each in objects]
        heapq.heapify(due)
        while due and due[0][0] <= seconds:
            at, _, each, present = heapq.heappop(due)
            size += len(each.data)
            if (left := began + at - self.clock.monotonic()) > 0 or size > AT_ONCE_BYTES:
                await asyncio.sleep(max(left, 0.0))
                size = 0
            if present is not None:
                self.state.remove(present)
            obj = self._bring(each, next(order) if present is not None else 0)
            heapq.heappush(due, (at + each.stays, next(order), each, obj))

    def _bring(self, each, number):
        obj = read(each)
        if number:
            name = f"{obj.name}-{number}"
            obj = replace(obj, metadata=replace(obj.metadata, name=name, uid=name))
        if each.kind == "Pod":
            self.pods.pods[obj.key] = each
        return self.state.put(obj)


class Run(NamedTuple):
    """What came of the quiet pods. Units: CPU seconds from created to bound, infinity where never."""

    waits: list[float]
    tries: list[int]

    @property
    def p99(self):
        """What 99 of 100 wait for at most."""
        return sorted(self.waits)[math.ceil(0.99 * len(self.waits)) - 1]


async def play(cluster: Drawn, *, hostile: bool) -> Run:
    """Let everything happen that the cluster's tenants do."""
    async with asyncio.TaskGroup() as tasks:
        playing = Cluster(tasks)
        playing.begin(cluster.there)
        # As a process does that has started.
        left_alone_before = gc.get_freeze_count()
        gc.collect()
        leave_alone_what_there_is()
        running = tasks.create_task(playing.driver.run())
        began = playing.clock.monotonic()
        last = cluster.quiet[-1].at
        await playing.feed([*cluster.quiet, *(cluster.hostile if hostile else ())], last)
        await playing.until_bound(len(cluster.quiet), began + last + PATIENCE_SECONDS)
        playing.driver.stop()
        await running
        if not left_alone_before:
            gc.unfreeze()
    keys = [f"{QUIET}/quiet-{number}" for number in range(len(cluster.quiet))]
    bound = [playing.bound.get(key, math.inf) for key in keys]
    waits = [at - began - each.at for at, each in zip(bound, cluster.quiet, strict=True)]
    return Run(waits, [playing.tries[key] for key in keys])


def played(cluster: Drawn, *, hostile: bool) -> Run:
    """The same, on a loop of its own."""
    with asyncio.Runner(loop_factory=CpuTimeLoop) as runner:
        return runner.run(play(cluster, hostile=hostile))


class Outcome(NamedTuple):
    """What the quiet tenant of a cluster noticed of the other."""

    seed: int
    nodes: int
    rows: list[str]
    alone: float
    beside: float
    longest: float

    @property
    def ratio(self) -> float:
        """How many times as long its pods waited, by their p99."""
        return self.beside / max(self.alone, FLOOR_SECONDS)

    @property
    def in_breach(self) -> bool:
        """Whether that is too long."""
        return self.ratio > MAX_RATIO or self.beside > MAX_SECONDS or self.longest == math.inf

    def __str__(self) -> str:
        times = (1000 * each for each in (self.alone, self.beside, self.longest))
        alone, beside, longest = (f"{each:.1f}" for each in times)
        said = f"alone {alone}, beside {beside}, longest {longest} ms; {self.nodes} nodes"
        return f"{self.seed}: {'BREACH, ' * self.in_breach}{said}; {'; '.join(self.rows)}"


def outcome_of(seed: int) -> Outcome:
    """Play the cluster of that seed twice."""
    logging.disable(logging.ERROR)  # Of a process of its own.
    collect_seldom()
    cluster = drawn(seed)
    alone, beside = played(cluster, hostile=False), played(cluster, hostile=True)
    return Outcome(seed, cluster.nodes, cluster.rows, alone.p99, beside.p99, max(beside.waits))
