"""The core's background work on an asyncio loop, every task in one task group."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import Context
from typing import Any, TypeVar

from berth.framework.ports.background import Promise

T = TypeVar("T")

log = logging.getLogger(__name__)


class FutureOutcome:
    """A value that arrives once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[Any] = loop.create_future()

    def set(self, value: Any) -> bool:
        """Deliver; False where a value was delivered before."""
        if self._future.done():
            return False
        self._future.set_result(value)
        return True

    def then(self, call: Callable[[], None]) -> None:
        """Make the call once the value has arrived, in a turn of the loop after that."""
        self._future.add_done_callback(lambda _: call())

    def __await__(self) -> Generator[Any, None, Any]:
        # Many may wait: one that is cancelled must not take the value away from the others.
        return asyncio.shield(self._future).__await__()


class AsyncioBackground:
    """Implements berth.framework.ports.background.Background."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._mine: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        """Run it beside everything else; a failure that it did not handle itself is logged.

        Work that comes while the process ends is not begun: the group takes no more then. Timers, and what
        ends other work, know nothing of that.
        """
        logged = _logged(work, name)
        try:
            task = self._tasks.create_task(logged, name=name, context=context)
        except RuntimeError:
            logged.close()
            work.close()
            log.debug("ending, work not begun name=%s", name)
            return
        self._mine.add(task)
        task.add_done_callback(self._mine.discard)
        # Work that was cancelled before it began would otherwise be reported as never awaited.
        task.add_done_callback(lambda _: work.close())

    async def settle(self, seconds: float) -> None:
        """Give what runs that long to end, and cancel what does not."""
        if self._mine:
            await asyncio.wait(tuple(self._mine), timeout=seconds)
        for task in self._mine:
            task.cancel()

    def outcome(self) -> FutureOutcome:
        """A place for a value that arrives later."""
        return FutureOutcome(self._loop)

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Make the call after that time."""
        return self._loop.call_later(seconds, call)

    async def unless(self, stop: Promise, work: Awaitable[T]) -> T | None:
        """The work's result; None where the outcome comes first: then the work has been cancelled.

        The work goes on in the caller's task, as within `asyncio.timeout`: every pod with claims comes here.
        """
        assert isinstance(stop, FutureOutcome), "it comes from `outcome`"
        task = asyncio.current_task()
        assert task is not None, "only a task can wait"
        cancelled_before, stopped, over = task.cancelling(), False, False

        def cancel() -> None:
            nonlocal stopped
            if not over:
                stopped = True
                task.cancel()

        stop.then(cancel)
        try:
            result = await work
        except asyncio.CancelledError:
            if stopped and task.uncancel() <= cancelled_before:
                return None
            raise
        finally:
            over = True
        if stopped:
            task.uncancel()
            return None
        return result

    async def breathe(self) -> None:
        """Let everything else have its turn, in the midst of work that takes long."""
        await asyncio.sleep(0)

    async def all_of(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """Run side by side; the results in order."""
        if len(work) == 1:
            return [await work[0]]
        return list(await asyncio.gather(*work))


async def _logged(work: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await work
    except Exception:
        log.exception("background work failed name=%s", name)
