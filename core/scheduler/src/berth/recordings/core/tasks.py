"""Concurrency of a core whose steps are on a tape: a task's next step is run when its pace says so.

    spawn --> ready --step--> waits for a promise --set--> ready --step--> ... --> finished

While a core is recorded, the event loop sets the pace and each step is noted; in a replay, the tape does. No
step depends on the event loop's order but through the steps that were noted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from typing import Any, Final, Protocol, TypeVar

from berth.framework.ports.background import Promise, Timer

T = TypeVar("T")

log = logging.getLogger(__name__)


class TapedPromise:
    """Implements berth.framework.ports.background.Promise."""

    __slots__ = ("_then", "arrived", "value")

    def __init__(self) -> None:
        self.arrived = False
        self.value: Any = None
        self._then: list[Callable[[], object]] = []

    def set(self, value: Any) -> bool:
        """Deliver; False where a value was delivered before."""
        if self.arrived:
            return False
        self.arrived, self.value = True, value
        then, self._then = self._then, []
        for call in then:
            call()
        return True

    def then(self, call: Callable[[], object]) -> None:
        """Make the call once the value is there, at once where it is."""
        if self.arrived:
            call()
        else:
            self._then.append(call)

    def __await__(self) -> Generator[Any, None, Any]:
        while not self.arrived:
            yield self
        return self.value


class _Breath:
    """Gives everything else its turn."""

    def __await__(self) -> Generator[Any, None, None]:
        yield ARRIVED


ARRIVED: Final = TapedPromise()
ARRIVED.set(None)


class TapedTask:
    """A coroutine and how far it is; `finished` is set at its end, with `result` or `error`."""

    __slots__ = ("_cancelled", "_context", "_turn", "_work", "error", "finished", "name", "number", "result")

    def __init__(self, number: int, name: str, work: Coroutine[Any, Any, Any], context: Context) -> None:
        self.number = number
        self.name = name
        self.finished = TapedPromise()
        self.result: Any = None
        self.error: BaseException | None = None
        self._work = work
        self._context = context
        self._turn = 0
        self._cancelled = False

    def cancel(self) -> None:
        """Raise CancelledError in it at its next step."""
        self._cancelled = True

    def step(self, ready: Callable[["TapedTask"], None]) -> None:
        """Run until it waits for something, and have `ready` called once that is there."""
        if self.finished.arrived:
            return
        self._turn += 1
        turn, cancelled, self._cancelled = self._turn, self._cancelled, False
        try:
            if cancelled:
                waits_for = self._context.run(self._work.throw, asyncio.CancelledError())
            else:
                waits_for = self._context.run(self._work.send, None)
        except StopIteration as end:
            self.result = end.value
            self.finished.set(None)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the task's own
            self.error = error
            self.finished.set(None)
        else:
            waits_for.then(lambda: ready(self) if self._turn == turn else None)

    def close(self) -> None:
        """End it where it is."""
        if not self.finished.arrived:
            self._work.close()
            self.finished.set(None)

    def outcome(self) -> Any:
        """The result of a finished task. Raises: what it raised."""
        if self.error is not None:
            raise self.error
        return self.result


class TaskPace(Protocol):
    """Says when steps and timers run."""

    def ready(self, task: TapedTask) -> None:
        """The task can go on: call `Tasks.step` with it."""

    def later(self, number: int, seconds: float, call: Callable[[], None]) -> Timer:
        """Make the call after that time."""


class Tasks:
    """Implements berth.framework.ports.background.Background; tasks and timers are numbered as they come."""

    def __init__(self, pace: TaskPace) -> None:
        self._pace = pace
        self._tasks = self._timers = 0
        self.alive: dict[int, TapedTask] = {}
        """Tasks that are not finished, by number."""

    def start(self, work: Coroutine[Any, Any, Any], name: str, context: Context | None = None) -> TapedTask:
        """A task that has not run yet, and that nothing is going to run but `step`."""
        self._tasks += 1
        task = TapedTask(self._tasks, name, work, context or copy_context())
        self.alive[task.number] = task
        task.finished.then(lambda: self.alive.pop(task.number, None))
        return task

    def step(self, task: TapedTask) -> None:
        """Let the task go on."""
        task.step(self._pace.ready)

    def cancel(self, task: TapedTask) -> None:
        """Have CancelledError raised in the task, unless it is finished."""
        if not task.finished.arrived:
            task.cancel()
            self._pace.ready(task)

    def close(self) -> None:
        """End all tasks where they are."""
        for task in list(self.alive.values()):
            task.close()

    # Background.

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        """Run it beside everything else; a failure that it did not handle itself is logged."""
        task = self.start(work, name, context)
        task.finished.then(lambda: _log_failure(task))
        self._pace.ready(task)

    def outcome(self) -> TapedPromise:
        """A place for a value that arrives later."""
        return TapedPromise()

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Make the call after that time."""
        self._timers += 1
        return self._pace.later(self._timers, seconds, call)

    async def unless(self, stop: Promise, work: Awaitable[T]) -> T | None:
        """The work's result; None where the outcome comes first: then the work has been cancelled."""
        assert isinstance(stop, TapedPromise), "all promises of a core come from its background"
        child, either = self._child(work), TapedPromise()
        stop.then(lambda: either.set(None))
        child.finished.then(lambda: either.set(None))
        try:
            await either
            if child.finished.arrived:
                outcome: T = child.outcome()
                return outcome
        finally:
            self.cancel(child)
        await child.finished
        return None

    async def breathe(self) -> None:
        """Let everything else have its turn, in the midst of work that takes long."""
        await _Breath()

    async def all_of(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """Run side by side; the results in order. Raises: the first failure, at once."""
        if len(work) == 1:
            return [await work[0]]
        children, over = [self._child(each) for each in work], TapedPromise()
        left = [len(children)]

        def ended(child: TapedTask) -> None:
            left[0] -= 1
            if child.error is not None or not left[0]:
                over.set(child.error)

        for child in children:
            child.finished.then(lambda child=child: ended(child))  # type: ignore[misc]
        if children and await over is not None:
            raise over.value
        return [child.result for child in children]

    def _child(self, work: Awaitable[T]) -> TapedTask:
        child = self.start(_result_of(work), "child")
        self._pace.ready(child)
        return child


async def _result_of(work: Awaitable[T]) -> T:
    return await work


def _log_failure(task: TapedTask) -> None:
    if isinstance(task.error, Exception):
        log.error("background work failed name=%s", task.name, exc_info=task.error)
