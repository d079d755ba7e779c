"""Calls to a plugin that are sent when they are made, and awaited later.

    made --request written--> under way --awaited--> answered
                                  +------cancelled--> given up

So requests are under way while this process goes on, in the order in which they were made, and without a
task for each.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import ExitStack, suppress
from typing import Any, Generic, Protocol, TypeVar

from berth.out_of_tree.transport.ttrpc import Answer

T = TypeVar("T")


class Cancellable(Protocol):
    """Work that was started, and may be cancelled."""

    @property
    def under_way(self) -> bool:
        """Whether its request was written, or there is none to be written."""

    @property
    def answered(self) -> bool:
        """Whether the response has arrived."""

    def cancel(self) -> None:
        """Cancel it, if it has not ended."""


class SentCall(Generic[T]):
    """One call; `scopes` are its span and counters, which end with it.

    `read` awaits the response and decodes it. To be awaited once, or cancelled before.
    """

    __slots__ = ("_read", "_response", "_scopes")

    def __init__(
        self,
        response: Awaitable[Any],
        scopes: ExitStack,
        read: Callable[[Awaitable[Any]], Coroutine[Any, Any, T]],
    ) -> None:
        self._response = response
        self._scopes = scopes
        self._read = read

    def begin(self) -> None:
        """Send the request, in the event loop's next turn if it is not written already."""
        self._response = asyncio.ensure_future(self._response)

    @property
    def under_way(self) -> bool:
        """Whether the request was written, or could not be."""
        return isinstance(self._response, Answer) or self.answered

    @property
    def answered(self) -> bool:
        """Whether the response has arrived, or never will."""
        return isinstance(self._response, asyncio.Future) and self._response.done()

    def __await__(self) -> Generator[Any, Any, T]:
        """Read the answer."""
        with self._scopes:
            return (yield from self._read(self._response).__await__())

    def cancel(self) -> None:
        """Cancel the call, if its answer was not awaited."""
        if isinstance(self._response, asyncio.Future):
            self._response.cancel()
        elif isinstance(self._response, Coroutine):
            self._response.close()
        given_up = asyncio.CancelledError()
        self._scopes.__exit__(type(given_up), given_up, None)


class UnderWay(Generic[T]):
    """Work that awaits the answer to a call; to be awaited once, or cancelled before."""

    __slots__ = ("_call", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], call: Cancellable | None) -> None:
        self._work = work
        self._call = call

    @property
    def under_way(self) -> bool:
        """Whether the request was written, or there is none."""
        return self._call is None or self._call.under_way

    @property
    def answered(self) -> bool:
        """Whether the response has arrived."""
        return self._call is None or self._call.answered

    def __await__(self) -> Generator[Any, Any, T]:
        """Do the work."""
        return self._work.__await__()

    def cancel(self) -> None:
        """Cancel the work. A response that has arrived is still read, so that a failure is counted."""
        if self._call is not None and self._call.answered:
            with suppress(StopIteration, Exception):
                self._work.send(None)
        self._work.close()
        if self._call is not None:
            self._call.cancel()
