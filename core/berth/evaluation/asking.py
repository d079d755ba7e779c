"""Asking several plugins at once: those in other processes work while this one does."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from inspect import isawaitable
from types import TracebackType
from typing import Generic, TypeVar

import numpy as np

from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import OverBudgetError
from berth.framework.interface import MaybeAwaitable, Plugin
from berth.framework.status import PluginError

P = TypeVar("P", bound=Plugin)
A = TypeVar("A")


class _LetOthersRun:
    """Awaited, it gives the loop two turns, in which what other processes are asked is sent."""

    def __await__(self) -> Generator[None, None, None]:
        yield
        yield


LET_OTHERS_RUN = _LetOthersRun()


class Answers(Generic[P, A]):
    """What plugins answer, to be read in their order: those in other processes are asked before the first.

    While one of these is awaited, the plugins of this process whose turn is later are asked. On leaving the
    context, what was asked and not read is cancelled. Vectors need not go through `read`: what that takes is
    more than many a filter.
    """

    __slots__ = ("_ask", "_asked", "_error", "_plugins")

    def __init__(
        self,
        plugins: Sequence[P],
        ask: Callable[[P], MaybeAwaitable[A]],
        error: Callable[[P, Exception], PluginError],
    ) -> None:
        """`error` makes of what a plugin raises what its extension point says of it."""
        self._plugins, self._ask, self._error = plugins, ask, error
        self._asked: dict[str, MaybeAwaitable[A]] = {}

    async def __aenter__(self) -> "Answers[P, A]":
        """Ask the plugins in other processes. Raises: PluginError."""
        for plugin in self._plugins:
            if not plugin.in_process:
                self._asked[plugin.name] = self._put(plugin)
        if any(not _is_under_way(answer) for answer in self._asked.values()):
            await LET_OTHERS_RUN
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        drop_unread(self._asked.values())

    def of(self, i: int) -> MaybeAwaitable[A]:
        """What the plugin at that place answers; `read` awaits it if need be. Raises: PluginError."""
        plugin = self._plugins[i]
        if not plugin.in_process:
            for later in self._plugins[i + 1 :]:
                if later.in_process and later.name not in self._asked:
                    self._asked[later.name] = self._put(later)
        answer = self._asked.pop(plugin.name, None) if self._asked else None
        return self._put(plugin) if answer is None else answer

    def _put(self, plugin: P) -> MaybeAwaitable[A]:
        try:
            return self._ask(plugin)
        except OverBudgetError:
            raise
        except Exception as error:
            raise self._error(plugin, error) from error

    async def read(self, i: int, answer: MaybeAwaitable[A]) -> A:
        """What an answer of that plugin comes to. Raises: PluginError."""
        if not isawaitable(answer):
            return answer
        try:
            return await answer
        except OverBudgetError:
            raise
        except Exception as error:
            raise self._error(self._plugins[i], error) from error


def _is_under_way(answer: MaybeAwaitable[A]) -> bool:
    """Whether the answer is there, or the question was sent when it was put."""
    return isinstance(answer, np.ndarray) or getattr(answer, "under_way", False)


async def bring(
    plugins: Sequence[P],
    attempt: Attempt,
    point: int,
    ask: Callable[[P], Awaitable[None]],
    error: Callable[[P, Exception], PluginError],
) -> None:
    """Have all these plugins in other processes bring what they are asked for, side by side.

    Raises: PluginError.
    """
    record = attempt.record
    answers = [(plugin, record.begin(plugin.name, point), ask(plugin)) for plugin in plugins]
    unread = list(answers)
    try:
        for plugin, mark, answer in answers:
            del unread[0]
            try:
                await answer
            except Exception as failure:
                raise error(plugin, failure) from failure
            record.end(mark)
    finally:
        drop_unread(answer for _, _, answer in answers)
        # One that failed has no end; the others were given up because of it.
        for _, mark, _ in unread:
            record.end(mark)


def drop_unread(answers: Iterable[object]) -> None:
    """Cancel these answers: they are not going to be read."""
    for unread in answers:
        stop = getattr(unread, "cancel", None) or getattr(unread, "close", None)
        if stop is not None:
            stop()
