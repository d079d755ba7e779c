"""Recording a scheduler: its ports go through here, and every span goes to a sink.

    CorePorts --around--> CorePorts that are noted --> Scheduler --recorded--> RecordedScheduler
                                                                                        |
                                     watches and scheduling loops drive that one <------+

Nothing here waits for a disk: a sink takes a span and returns.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any, TypeVar

from berth.framework.core_ports import CorePorts
from berth.framework.handle import OnBound
from berth.framework.ports.background import Background, Promise, Timer
from berth.recordings.core.calls import Claims, PodGroups, TapedPodWrites, Volumes
from berth.recordings.core.recorded_scheduler import Core, RecordedScheduler
from berth.recordings.core.spans import ANSWER, CALL, STEP, TIMER, kind_of
from berth.recordings.core.tape import Sink, Tape
from berth.recordings.core.tasks import TapedPromise, TapedTask, Tasks

T = TypeVar("T")


class _Pace:
    """Steps and timers as the event loop has time for them, each in a span. Implements tasks.Pace."""

    def __init__(self, tape: Tape, loop: asyncio.AbstractEventLoop) -> None:
        self._tape = tape
        self._loop = loop
        self.tasks = Tasks(self)

    def ready(self, task: TapedTask) -> None:
        self._loop.call_soon(self._step, task)

    def later(self, number: int, seconds: float, call: Callable[[], None]) -> Timer:
        return self._loop.call_later(seconds, self._fire, number, call)

    def _step(self, task: TapedTask) -> None:
        if not task.finished.arrived:
            with self._tape.span(STEP, task.number):
                self.tasks.step(task)

    def _fire(self, number: int, call: Callable[[], None]) -> None:
        with self._tape.span(TIMER, number):
            call()


class _Background:
    """Concurrency of a recorded core: in a span that of the tape, outside of one what it would be anyway.

    Outside are those who ask a core what it would do, such as explanations. Implements
    berth.framework.ports.background.Background.
    """

    def __init__(self, tape: Tape, tasks: Tasks, outside: Background) -> None:
        self._tape = tape
        self._tasks = tasks
        self._outside = outside

    def _here(self) -> Background:
        return self._tasks if self._tape.running else self._outside

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        self._here().spawn(work, name, context)

    def outcome(self) -> Promise:
        return self._here().outcome()

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self._here().call_later(seconds, call)

    def unless(self, stop: Promise, work: Awaitable[T]) -> Coroutine[Any, Any, T | None]:
        return self._here().unless(stop, work)

    def breathe(self) -> Coroutine[Any, Any, None]:
        return self._here().breathe()

    def all_of(self, work: Sequence[Awaitable[T]]) -> Coroutine[Any, Any, list[T]]:
        return self._here().all_of(work)


class _Calls:
    """Makes each call, and lets its answer in as a span. Implements calls.Calls.

    A core calls nothing but in a span.
    """

    def __init__(self, tape: Tape, loop: asyncio.AbstractEventLoop) -> None:
        self._tape = tape
        self._loop = loop
        self._number = 0
        self._under_way: set[asyncio.Task[None]] = set()

    async def make(self, method: str, arguments: tuple[Any, ...], real: Callable[[], Awaitable[Any]]) -> Any:
        number, answer = self._noted(method, arguments), TapedPromise()
        task = self._loop.create_task(self._answered(number, real, answer))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            error, value = await answer
        except BaseException:
            task.cancel()
            raise
        if error is not None:
            raise error
        return value

    async def _answered(self, number: int, real: Callable[[], Awaitable[Any]], answer: TapedPromise) -> None:
        error, value = None, None
        try:
            value = await real()
        except Exception as raised:  # noqa: BLE001 - the core gets it
            error = raised
        kind = None if value is None else kind_of(value)
        with self._tape.span(ANSWER, number, error, kind, value):
            answer.set((error, value))

    def begin(
        self, method: str, arguments: tuple[Any, ...], real: Callable[[OnBound], None], done: OnBound
    ) -> None:
        number = self._noted(method, arguments)

        def answered(error: Exception | None) -> None:
            if self._tape.running:
                self._loop.call_soon(answered, error)
                return
            with self._tape.span(ANSWER, number, error, None, None):
                done(error)

        real(answered)

    def _noted(self, method: str, arguments: tuple[Any, ...]) -> int:
        self._number += 1
        self._tape.note(CALL, self._number, method, *arguments)
        return self._number

    def close(self) -> None:
        """Give up what was not answered."""
        for task in self._under_way:
            task.cancel()


class CoreRecorder:
    """Records one core, on the running event loop; `sink` gets every span."""

    def __init__(self, real: CorePorts, *, seed: int, sink: Sink) -> None:
        loop = asyncio.get_running_loop()
        self._tape = Tape(real.clock, seed, sink)
        self._pace = _Pace(self._tape, loop)
        self._calls = _Calls(self._tape, loop)
        self.ports = CorePorts(
            pods=TapedPodWrites(self._calls, real.pods),
            volumes=Volumes(self._calls, real.volumes),
            claims=Claims(self._calls, real.claims),
            pod_groups=PodGroups(self._calls, real.pod_groups),
            background=_Background(self._tape, self._pace.tasks, real.background),
            clock=self._tape.clock,
            chance=self._tape.chance,
        )
        """What the core is made with."""

    def recorded(self, core: Core) -> "RecordedScheduler":
        """The core as watches and scheduling loops are to drive it; it was made with `ports`."""
        self._tape.snapshot = core.snapshot
        return RecordedScheduler(core, self._tape, self._pace.tasks)

    def close(self) -> None:
        """End the core's tasks where they are."""
        self._calls.close()
        self._pace.tasks.close()
