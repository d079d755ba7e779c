"""Concurrent calls of several plugins at one extension point: sidecars work while this process does."""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from inspect import isawaitable
from types import TracebackType
from typing import Generic, TypeVar

import numpy as np

from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.interface import MaybeAwaitable, Plugin
from berth.framework.status import PluginError

P = TypeVar("P", bound=Plugin)
A = TypeVar("A")


MAX_TURNS = 100
"""Max turns of the event loop for which the end of cancelled calls is waited for; they take a few."""


class _LetCallsBeSent:
    """Awaiting this yields to the event loop twice, in which requests to sidecars are sent."""

    def __await__(self) -> Generator[None, None, None]:
        yield
        yield


LET_CALLS_BE_SENT = _LetCallsBeSent()


class ConcurrentPluginCalls(Generic[P, A]):
    """Plugins' answers, to be read in the plugins' order; all sidecars are called before the first is read.

    While a sidecar is awaited, later plugins of this process are run. Leaving the context cancels calls whose
    answers were not read. A vector may be used without `read`, which takes longer than some filters do.
    """

    __slots__ = ("_ask", "_asked", "_error", "_plugins")

    def __init__(
        self,
        plugins: Sequence[P],
        ask: Callable[[P], MaybeAwaitable[A]],
        error: Callable[[P, Exception], PluginError],
    ) -> None:
        """`error` wraps an exception of a plugin in its extension point's message."""
        self._plugins, self._ask, self._error = plugins, ask, error
        self._asked: dict[str, MaybeAwaitable[A]] = {}

    async def __aenter__(self) -> "ConcurrentPluginCalls[P, A]":
        """Call the sidecars. Raises: PluginError."""
        for plugin in self._plugins:
            if not plugin.in_process:
                self._asked[plugin.name] = self._put(plugin)
        if any(not _is_under_way(answer) for answer in self._asked.values()):
            await LET_CALLS_BE_SENT
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asked:
            await end_unread(self._asked.values())

    def of(self, i: int) -> MaybeAwaitable[A]:
        """The answer of the plugin at that index, which `read` awaits if need be. Raises: PluginError."""
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
        """The plugin's answer, awaited if it is a sidecar's. Raises: PluginError."""
        if not isawaitable(answer):
            return answer
        try:
            return await answer
        except OverBudgetError:
            raise
        except Exception as error:
            raise self._error(self._plugins[i], error) from error


def _is_under_way(answer: MaybeAwaitable[A]) -> bool:
    """Whether the answer is there, or the request has been sent already."""
    return isinstance(answer, np.ndarray) or getattr(answer, "under_way", False)


async def end_unread(answers: Collection[object]) -> None:
    """Cancel calls whose answers are not going to be read, and wait until those of tasks have ended.

    A task ends some turns of the event loop after it was cancelled, and its call is open in the record
    until then: a record that is exported before has a span without an end.
    """
    drop_unread(answers)
    ending = [answer for answer in answers if hasattr(answer, "done")]
    for _ in range(MAX_TURNS):
        if all(answer.done() for answer in ending):
            break
        await LET_CALLS_BE_SENT


def drop_unread(answers: Iterable[object]) -> None:
    """Cancel calls whose answers are not going to be read."""
    for unread in answers:
        stop = getattr(unread, "cancel", None) or getattr(unread, "close", None)
        if stop is not None:
            stop()
