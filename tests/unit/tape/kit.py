"""A day by chance in virtual time: pods and nodes come, change and go, and the API server has its faults."""

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from msgspec.structs import replace

from berth.config.feature_gates import FeatureGates
from berth.config.loading import LoadedConfig, load
from berth.framework.core_ports import CorePorts
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.plugins.registry import IN_TREE
from berth.recordings.core.files import TapeFile
from berth.recordings.core.header import TapeHeader
from berth.recordings.core.recorder import CoreRecorder
from berth.recordings.line_files import LineFile
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.scheduling_loop import SchedulingLoop, follow
from berth.scheduler.plugin_source import InProcessPlugins
from berth.scheduler.scheduler import Scheduler
from berth.simulation.cluster.state import ClusterState
from berth.simulation.cluster.virtual_time import LoopClock, VirtualTimeLoop
from berth.simulation.cluster.writers import (
    BindRefusedError,
    ClaimsInMemory,
    PodGroupsInMemory,
    PodsInMemory,
    VolumesInMemory,
)
from berth.simulation.reading.inputs import ClusterInput, read_cluster
from berth.simulation.reading.kinds import KINDS, document_of
from berth.simulation.running.handlers import handlers_of
from berth.simulation.running.scores import node_scores
from berth.simulation.running.simulated_events import SimulatedEvents
from tests.chance.cluster import draw
from tests.unit.simulation.kit import written

OF_TYPE = {kind.type: kind for kind in KINDS}
DAY_SECONDS = 60.0
BEGAN = datetime(2026, 11, 23, tzinfo=UTC)
MAX_BYTES = 1 << 30
GATES = {"GenericWorkload": True, "GangScheduling": True}


class BusyClock(LoopClock):
    """Each reading takes its time, some of them long: cycles give others their turn, and go over budget."""

    def __init__(self, loop, chance):
        super().__init__(loop, 1_700_000_000.0)
        self._chance = chance

    def monotonic(self):
        """The clock that never goes back."""
        self.loop.work(self._chance.choice((0.0, 0.0001, 0.0004)) if self._chance.random() > 0.002 else 0.2)
        return self.loop.time()


class ConflictError(Exception):
    """The API server's no."""


class Faulty:
    """A writer whose calls take their time and fail at times, before or after they landed."""

    def __init__(self, real, chance, often):
        self._real, self._chance, self._often = real, chance, often

    def __getattr__(self, name):
        return lambda *arguments: self._call(getattr(self._real, name), *arguments)

    async def _call(self, method, *arguments):
        await asyncio.sleep(self._chance.random() * 0.2)
        if self._chance.random() < self._often:
            raise ConflictError("the object has been modified")
        result = await method(*arguments)
        await asyncio.sleep(self._chance.random() * 0.2)
        if self._chance.random() < self._often:
            raise TimeoutError("no answer")
        return result

    def bind(self, pod, node_name, done, annotations=()):
        """The same for a binding, some of which are answered at once."""
        if self._chance.random() < 0.3:
            self._real.bind(pod, node_name, done, dict(annotations))
            return

        async def later():
            try:
                await self._call(self._bound, pod, node_name, annotations)
            except (ConflictError, TimeoutError, BindRefusedError) as error:
                done(error)
            else:
                done(None)

        task = asyncio.get_running_loop().create_task(later())
        self._chance.tasks.add(task)

    async def _bound(self, pod, node_name, annotations):
        outcomes = []
        self._real.bind(pod, node_name, outcomes.append, dict(annotations))
        if outcomes[0] is not None:
            raise outcomes[0]


class AsWatched:
    """A handler of objects as a watch brings them: with what is decoded of them."""

    def __init__(self, handler):
        self._handler, self._known = handler, {}

    def on_add(self, obj):
        """An object is new."""
        self._known[obj.key] = decoded(obj)
        self._handler.on_add(self._known[obj.key])

    def on_update(self, old, new):
        """An object changed."""
        old, self._known[new.key] = self._known[old.key], decoded(new)
        self._handler.on_update(old, self._known[new.key])

    def on_delete(self, obj):
        """An object is gone."""
        self._handler.on_delete(self._known.pop(obj.key))


def decoded(obj):
    """What a watch makes of the object."""
    kind = OF_TYPE[type(obj)]
    return kind.decode(document_of(obj, kind))


class Dice(Random):
    """A source of chance, and the tasks that came of it."""

    def __init__(self, seed):
        super().__init__(seed)
        self.tasks = set()


def record(path, subject, seed, *, faults=0.1, seconds=DAY_SECONDS, gates=None, **sizes):
    """Record such a day to the file; the scheduler's core at its end."""
    drawn = draw(subject, seed, **sizes)
    text = json.dumps(drawn.configuration)
    loaded = load(text, gates=FeatureGates(gates or {}))
    cluster = read_cluster([written(path.with_suffix(".json"), *drawn.objects, *drawn.pods)])
    header = TapeHeader.of(loaded, version="test", began=BEGAN, seed=seed, max_in_unschedulable_seconds=20.0)
    tape = TapeFile(LineFile(path, header), MAX_BYTES)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        day = Day(cluster, loaded, tape, Dice(f"{subject}-{seed}"), seed, faults, seconds)
        core = runner.run(_live(day))
    tape.close()
    assert not tape.dropped
    return core


@dataclass
class Day:
    """What a day is made of."""

    cluster: ClusterInput
    loaded: LoadedConfig
    sink: TapeFile
    chance: Dice
    seed: int
    faults: float
    seconds: float


async def _live(day):
    loop, chance, loaded = asyncio.get_running_loop(), day.chance, day.loaded
    async with asyncio.TaskGroup() as group:
        state = ClusterState(lambda call: loop.call_later(chance.choice((0, 0, 0.05, 1.0)), call))
        clock = BusyClock(loop, chance)
        real = CorePorts(
            pods=Faulty(PodsInMemory(state, clock, lambda _: None), chance, day.faults),
            volumes=Faulty(VolumesInMemory(state), chance, day.faults),
            claims=Faulty(ClaimsInMemory(state), chance, day.faults),
            pod_groups=Faulty(PodGroupsInMemory(state), chance, day.faults),
            background=AsyncioBackground(group),
            clock=clock,
            chance=chance,
        )
        recorder = CoreRecorder(real, seed=day.seed, sink=day.sink)
        ready, turn = asyncio.Event(), asyncio.Lock()
        core = Scheduler(
            loaded,
            plugins=InProcessPlugins(IN_TREE),
            ports=recorder.ports,
            recorder=SimulatedEvents(lambda *_: None),
            on_record=lambda _: None,
            on_ready=ready.set,
            max_in_unschedulable_seconds=20.0,
        )
        driven = recorder.recorded(core)
        state.handlers |= {kind: AsWatched(handler) for kind, handler in handlers_of(driven).items()}
        driver = SchedulingLoop(driven, clock=clock, ready=ready, turn=turn)
        following = [
            group.create_task(follow(core, turn)),
            group.create_task(_ask(core, turn, state, Random(day.seed))),
        ]
        running = group.create_task(driver.run())
        await _happen(state, day.cluster, chance, day.seconds)
        driver.stop()
        await running
        for task in following:
            task.cancel()
        recorder.close()
        for task in chance.tasks:
            task.cancel()
    return core


async def _ask(core, turn, state, chance):
    """What nodes score for a pod is asked now and then: no part of the recording."""
    while True:
        await asyncio.sleep(chance.random() * 3)
        pods = [pod for pod in state.all(Pod) if pod.spec.scheduler_name in core.profiles.frameworks]
        if pods:
            async with turn:
                await node_scores(core, chance.choice(pods), [node.name for node in state.all(Node)])


async def _happen(state, cluster, chance, seconds):
    """Everything comes, some of it at once; then something changes every now and then."""
    later = []
    for _, obj in cluster.all():
        if isinstance(obj, Pod | Node) and chance.random() < 0.6:
            later.append(obj)
        else:
            state.put(obj)
    chance.shuffle(later)
    steps = len(later) * 2
    for step in range(steps):
        await asyncio.sleep(chance.random() * 2 * seconds / steps)
        if step % 2 == 0:
            state.put(later[step // 2])
        else:
            _change(state, chance)


def _change(state, chance):
    kind = chance.choice((Node, Pod, Pod))
    found = list(state.all(kind))
    if not found:
        return
    obj = chance.choice(found)
    match chance.randrange(4):
        case 0:
            state.remove(obj)
        case 1 if kind is Node:
            state.put(replace(obj, spec=replace(obj.spec, unschedulable=not obj.spec.unschedulable)))
        case _:
            labels = {**obj.metadata.labels, "step": str(chance.randrange(9))}
            state.put(replace(obj, metadata=replace(obj.metadata, labels=labels)))
