"""Questions that are sent when they are put, and whose answers are awaited later.

    begun at once --request written in ttrpc's frame--> goes on in the task that awaits it
                  --waits for anything else-----------> a task of its own
    begun later ------- with the loop's next turn ----> a task of its own

A task begins with the loop's next turn and ends with another: the question would leave one turn later, and
its answer be taken one turn later.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from berth.out_of_tree.transport.ttrpc import Answer

T = TypeVar("T")


class Begun(Generic[T]):
    """Work that ran up to its first wait; to be awaited once, or cancelled before."""

    __slots__ = ("_error", "_result", "_waits_for", "_work")

    _result: T

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work: Coroutine[Any, Any, T] | None = work
        self._waits_for: Any = None
        self._error: BaseException | None = None
        self._step(work.send, None)

    @property
    def under_way(self) -> bool:
        """Whether it has ended, or waits for a plugin that has its question."""
        return self._work is None or isinstance(self._waits_for, Answer)

    def __await__(self) -> Generator[Any, Any, T]:
        """Go on from where it waits."""
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
        """End it where it waits. An answer that is there is taken: a failure counts as what it was."""
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
    """The future, None for a turn of the loop, as one that a task is about to take note of, or not."""
    if future is not None:
        future._asyncio_future_blocking = awaited  # noqa: SLF001 - how asyncio tells `await` from `yield`
    return future


def begin(work: Coroutine[Any, Any, T], *, at_once: bool) -> "Begun[T] | asyncio.Task[T]":
    """The work, begun now or with the loop's next turn; it raises where it is awaited, if it is."""
    if at_once:
        begun = Begun(work)
        if begun.under_way:
            return begun
        work = _ended(begun)
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_looked_at)
    return task


async def _ended(begun: Begun[T]) -> T:
    return await begun


def _looked_at(task: "asyncio.Future[Any]") -> None:
    """An answer that is not awaited any more fails without a word."""
    if not task.cancelled():
        task.exception()
