"""A core that is driven by a recording: it gets the recorded core's inputs in the same order.

    tape --span--> event, pop, cycle, step, timer, answer, flush --> core --calls, decisions--> outputs

There is no event loop here: a task continues when the recording does, and the clock reads recorded times.
"""

import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from berth.config.loading import LoadedConfig
from berth.config.shards import Shard
from berth.event_handlers.errors import FollowUpError
from berth.framework.core_ports import CorePorts
from berth.framework.handle import OnBound
from berth.framework.ports.background import Timer
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.objects.api_object import TypedObject
from berth.objects.decode import UndecodableObjectError
from berth.objects.pods.pod import Pod
from berth.plugins.registry import IN_TREE
from berth.queue.pools.record_heap import whole
from berth.recordings.core import spans
from berth.recordings.core.calls import Claims, PodGroups, TapedPodWrites, Volumes, error_of
from berth.recordings.core.header import TapeHeader
from berth.recordings.core.recorded_scheduler import cycle_of
from berth.recordings.core.spans import (
    ANSWER,
    CALL,
    CYCLE,
    EVENT,
    FLUSH,
    FOLLOW,
    MICROSECONDS,
    POP,
    STEP,
    TIMER,
)
from berth.recordings.core.tape import DRAWS, seed_of
from berth.recordings.core.tasks import TapedPromise, TapedTask, Tasks
from berth.scheduler.leading.leaderships import shard_of_records
from berth.scheduler.plugin_source import InProcessPlugins
from berth.scheduler.scheduler import Scheduler
from berth.simulation.errors import InputError
from berth.simulation.reading.kinds import KINDS
from berth.simulation.recordings.tape_file import ReadLine
from berth.simulation.running.handlers import handlers_of
from berth.simulation.running.simulated_events import SimulatedEvents

T = TypeVar("T")

Output = list[Any]

_KINDS = {kind.type.__name__: kind for kind in KINDS}


INPUTS: Final[Mapping[str, tuple[Any, ...]]] = {
    EVENT: (str, str, msgspec.Raw),
    POP: (str, str),
    CYCLE: (),
    STEP: (int,),
    TIMER: (int,),
    ANSWER: (int, tuple[str, str] | None, str | None, msgspec.Raw),
    FLUSH: (),
    FOLLOW: (),
}
"""The arguments of each input."""


class DivergedError(Exception):
    """The recording has an input that the core does not wait for.

    The two texts are the recorded and the actual state.
    """

    def __init__(self, recorded: str, now: str) -> None:
        super().__init__(f"{recorded}: {now}")
        self.recorded = recorded
        self.now = now


class _Clock:
    """The recorded clock readings, in order; the last one again where there are no more."""

    def __init__(self, began: datetime) -> None:
        self._wall = [round(began.timestamp() * MICROSECONDS)]
        self._monotonic, self._cpu = [0], [0]
        self._ahead = self._wall[0]
        """Of the wall clock against the monotonic one, when it was last read."""

    @property
    def last(self) -> float:
        """The wall clock's last reading, of this span or an earlier one."""
        return (self._monotonic[0] + self._ahead) / MICROSECONDS

    def take(self, line: ReadLine) -> None:
        """Set the next readings."""
        first = self._monotonic == [0] and bool(line.m)
        self._wall = [*reversed(line.n)] or self._wall[:1]
        self._monotonic = [*reversed(line.m)] or self._monotonic[:1]
        self._cpu = [*reversed(line.c)] or self._cpu[:1]
        if line.n or first:
            self._ahead = self._wall[0] - self._monotonic[0]

    def wall(self) -> float:
        return _next(self._wall)

    def monotonic(self) -> float:
        return _next(self._monotonic)

    def cpu(self) -> float:
        return _next(self._cpu)


def _next(readings: list[int]) -> float:
    reading = readings.pop() if len(readings) > 1 else readings[0]
    return reading / MICROSECONDS


class _Timer:
    def __init__(self, timers: dict[int, Callable[[], None]], number: int) -> None:
        self._timers, self._number = timers, number

    def cancel(self) -> None:
        self._timers.pop(self._number, None)


class _Pace:
    """Collects ready tasks, which wait for the recording. Implements berth.recordings.core.tasks.Pace."""

    def __init__(self) -> None:
        self.ready_tasks: dict[int, TapedTask] = {}
        self.timers: dict[int, Callable[[], None]] = {}

    def ready(self, task: TapedTask) -> None:
        self.ready_tasks[task.number] = task

    def later(self, number: int, seconds: float, call: Callable[[], None]) -> Timer:
        del seconds
        self.timers[number] = call
        return _Timer(self.timers, number)


class _Calls:
    """Collects calls, which the recording answers. Implements berth.recordings.core.calls.Calls."""

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self._number = 0
        self.under_way: dict[int, Callable[[Exception | None, Any], object]] = {}

    async def make(self, method: str, arguments: tuple[Any, ...], real: Callable[[], Awaitable[Any]]) -> Any:
        del real
        answer = TapedPromise()
        number = self._begin(method, arguments)
        self.under_way[number] = lambda error, value: answer.set((error, value))
        try:
            error, value = await answer
        finally:
            self.under_way.pop(number, None)
        if error is not None:
            raise error
        return value

    def begin(
        self, method: str, arguments: tuple[Any, ...], real: Callable[[OnBound], None], done: OnBound
    ) -> None:
        del real
        number = self._begin(method, arguments)
        self.under_way[number] = lambda error, _: done(error)

    def _begin(self, method: str, arguments: tuple[Any, ...]) -> int:
        self._number += 1
        self._note(CALL, self._number, method, *arguments)
        return self._number


class PlayedCore:
    """A core, and its position in the recording."""

    def __init__(self, header: TapeHeader, loaded: LoadedConfig) -> None:
        self.outputs: list[Output] = []
        """Of the span that was played last."""
        self._seed, self._spans = header.seed, 0
        self._clock, self._pace = _Clock(header.began), _Pace()
        self._tasks, self._calls = Tasks(self._pace), _Calls(self._note)
        self._chance = random.Random(header.seed)
        self._popped: QueuedPodInfo | None = None
        self._known: dict[tuple[str, str], TypedObject] = {}
        real: Any = None
        shards = tuple(Shard(name, tuple(profiles)) for name, profiles in header.shards.items())
        self.core = Scheduler(
            loaded,
            plugins=InProcessPlugins(IN_TREE),
            ports=CorePorts(
                pods=TapedPodWrites(self._calls, real),
                volumes=Volumes(self._calls, real),
                claims=Claims(self._calls, real),
                pod_groups=PodGroups(self._calls, real),
                background=self._tasks,
                clock=self._clock,
                chance=self._chance,
            ),
            recorder=SimulatedEvents(lambda *_: None),
            on_record=lambda _: None,
            on_ready=lambda: None,
            max_in_unschedulable_seconds=header.max_in_unschedulable_seconds,
            shard_of=shard_of_records(shards) if shards else whole,
        )
        self._handlers = {kind.__name__: each for kind, each in handlers_of(self.core).items()}
        self._inputs: dict[str, Callable[..., None]] = {
            EVENT: self._event,
            POP: self._pop,
            CYCLE: self._cycle,
            STEP: self._step,
            TIMER: self._timer,
            ANSWER: self._answer,
            FLUSH: self.core.queue.flush,
            FOLLOW: self._follow,
        }

    @property
    def time(self) -> float:
        """The wall clock's last reading."""
        return self._clock.last

    def popped(self) -> Pod | None:
        """The last popped pod."""
        return None if self._popped is None else self._popped.pod

    def play(self, line: ReadLine) -> None:
        """Apply a span's input to the core. Raises: DivergedError, InputError."""
        arguments = self._decoded(line)
        self.outputs = []
        self._clock.take(line)
        if line.i in DRAWS:
            self._chance.seed(seed_of(self._seed, self._spans))
        self._spans += 1
        self._inputs[line.i](*arguments)

    def _decoded(self, line: ReadLine) -> list[Any]:
        try:
            return _arguments_of(line)
        except ValueError as error:
            raise InputError(f"span {self._spans}: {error}; record anew") from None

    def _object(self, kind: str, document: msgspec.Raw) -> Any:
        try:
            return _KINDS[kind].decode(bytes(document))
        except (LookupError, UndecodableObjectError, msgspec.MsgspecError) as error:
            raise InputError(f"span {self._spans}: {kind}: {error}; record anew") from None

    def _note(self, *output: Any) -> None:
        self.outputs.append(msgspec.json.decode(msgspec.json.encode(spans.written(output))))

    # Inputs, by name.

    def _event(self, verb: str, kind: str, document: msgspec.Raw) -> None:
        handler, obj = self._handlers.get(kind), self._object(kind, document)
        if handler is None:
            return
        at = kind, obj.key
        old = self._known.get(at)
        try:
            if verb == "add":
                handler.on_add(obj)
            elif verb == "update":
                handler.on_update(old, obj)
            else:
                handler.on_delete(obj)
        except FollowUpError:
            pass
        except Exception:  # noqa: BLE001 - what a handler raises is no matter for others, as with a watch
            return
        if verb == "delete":
            self._known.pop(at, None)
        else:
            self._known[at] = obj

    def _pop(self, shard: str, uid: str) -> None:
        self._popped = self.core.queue.pop(shard)
        pod = self.popped()
        if uid != ("" if pod is None else pod.uid):
            now = "no pod" if pod is None else f"pod {pod.key}"
            raise DivergedError(
                f"pod of UID {uid} is next in the queue" if uid else "no pod is next in the queue",
                f"{now} is next in the queue",
            )

    def _cycle(self) -> None:
        info = self._popped
        if info is None:
            raise DivergedError("a scheduling cycle began", "no pod is popped")
        task = self._tasks.start(cycle_of(self.core, info, self._note), f"cycle of {info.pod.key}")
        self._tasks.step(task)

    def _step(self, number: int) -> None:
        task = self._pace.ready_tasks.pop(number, None)
        if task is None:
            raise DivergedError(f"task {number} went on", "it has nothing to go on with")
        self._tasks.step(task)

    def _timer(self, number: int) -> None:
        call = self._pace.timers.pop(number, None)
        if call is None:
            raise DivergedError(f"timer {number} ran out", "it is not set")
        call()

    def _answer(
        self, number: int, error: tuple[str, str] | None, kind: str | None, document: msgspec.Raw
    ) -> None:
        answered = self._calls.under_way.pop(number, None)
        if answered is None:
            raise DivergedError(f"write {number} was answered", "it is not under way")
        value = None if kind is None else self._object(kind, document)
        answered(None if error is None else error_of(*error), value)

    def _follow(self) -> None:
        self.core.cache.update_snapshot(self.core.snapshot)

    def close(self) -> None:
        """Cancel the tasks under way."""
        self._tasks.close()


def _arguments_of(line: ReadLine) -> list[Any]:
    """The arguments of an input. Raises: ValueError."""
    types = INPUTS.get(line.i)
    if types is None or len(types) != len(line.a):
        raise ValueError(f"no input {line.i!r} of {len(line.a)} arguments")
    return [msgspec.json.decode(each, type=kind) for each, kind in zip(line.a, types, strict=True)]


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that does not wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("it waits for something")
