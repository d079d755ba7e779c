"""Coroutines that run at once up to their first await, so that a request is sent before it is awaited.

    begun at once --request written to the ttrpc socket--> continues in the task that awaits it
                  --awaits anything else-----------------> continues in a task of its own
    begun later ------- in the loop's next turn ---------> a task of its own

A task starts in the event loop's next turn and ends in another one: a request would be sent one turn later,
and its response read one turn later.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from berth.out_of_tree.transport.ttrpc import Answer

T = TypeVar("T")


class EagerCoroutine(Generic[T]):
    """A coroutine that ran up to its first await; to be awaited once, or cancelled before."""

    __slots__ = ("_error", "_result", "_waits_for", "_work")

    _result: T

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work: Coroutine[Any, Any, T] | None = work
        self._waits_for: Any = None
        self._error: BaseException | None = None
        self._step(work.send, None)

    @property
    def under_way(self) -> bool:
        """Whether it has ended, or its request has been sent."""
        return self._work is None or isinstance(self._waits_for, Answer)

    def __await__(self) -> Generator[Any, Any, T]:
        """Continue the coroutine."""
        while (work := self._work) is not None:
            waits_for = self._waits_for
            if waits_for is not None and waits_for.done():
                self._step(work.send, None)
                continue
            try:
                yield _marked(waits_for, awaited=True)
            except BaseException as error:  # noqa: BLE001 - the work's to handle, a cancellation above all
                self._step(work.throw, error)
            else:
                self._step(work.send, None)
        if self._error is not None:
            raise self._error
        return self._result

    def cancel(self) -> None:
        """Cancel it. A response that has arrived is still read, so that a failure is counted."""
        if self._work is not None and self._waits_for is not None and self._waits_for.done():
            self._step(self._work.send, None)
        work, self._work = self._work, None
        if work is not None:
            self._waits_for.cancel()
            work.close()

    def _step(self, step: Callable[[Any], Any], value: Any) -> None:
        """Run up to the next wait."""
        try:
            self._waits_for = _marked(step(value), awaited=False)
        except StopIteration as done:
            self._work, self._waits_for, self._result = None, None, done.value
        except BaseException as error:  # noqa: BLE001 - raised where the work is awaited
            self._work, self._waits_for, self._error = None, None, error


def _marked(future: Any, *, awaited: bool) -> Any:
    """The future marked as yielded by a coroutine, as asyncio.Task expects it; None is a bare yield."""
    if future is not None:
        future._asyncio_future_blocking = awaited  # noqa: SLF001 - how asyncio tells `await` from `yield`
    return future


def begin(work: Coroutine[Any, Any, T], *, at_once: bool) -> "EagerCoroutine[T] | asyncio.Task[T]":
    """Start the coroutine, now or in the loop's next turn; its exception is raised where it is awaited."""
    if at_once:
        begun = EagerCoroutine(work)
        if begun.under_way:
            return begun
        work = _ended(begun)
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_looked_at)
    return task


async def _ended(begun: EagerCoroutine[T]) -> T:
    return await begun


def _looked_at(task: "asyncio.Future[Any]") -> None:
    """Retrieve the exception of a cancelled call, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()
