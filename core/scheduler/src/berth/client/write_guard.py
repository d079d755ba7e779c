"""The right to write, asked right before a request leaves, and what became of the requests that left.

    Terms.begin ──► writes of work that was decided in this term pass while its lease is fresh
                       │
                       ├── answered: nothing of it can happen any more
                       └── open: cut, timed out, 5xx; may land for `landing_seconds` after it was sent

Called by: the transport (before and after a guarded request), the fence and the process's end, which wait
until nothing is open.
"""

import asyncio
import itertools
import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

from berth.framework.clock import Clock, SystemClock


def always() -> bool:
    """The right of a scheduler without leader election."""
    return True


class Terms:
    """The terms of one lease; `is_fresh` says whether it is held now."""

    def __init__(self, is_fresh: Callable[[], bool] = always) -> None:
        self.is_fresh = is_fresh
        self.number = 0

    def begin(self) -> None:
        """Refuse the writes of work that was decided before; the caller's belongs to the new term."""
        self.number += 1
        _TERM.set(_Term(self, self.number))


class _Term(NamedTuple):
    terms: Terms
    number: int

    def runs(self) -> bool:
        return self.number == self.terms.number and self.terms.is_fresh()


# The term in which the running work was decided; work inherits it from the scheduling turn that started it.
_TERM: ContextVar[_Term | None] = ContextVar("term", default=None)


class WriteGuard:
    """Says whether a write may leave, and keeps account of those that may yet take effect.

    Work is written by the right of its term, whichever lease that is of; `may_write` is for work of no term.

    `landing_seconds` bounds how long after its sending a write may take effect: the API server is asked to
    give up by then (`timeout`), and the connection is reset. Infinite where no other process waits for that.
    """

    def __init__(
        self,
        may_write: Callable[[], bool] = always,
        *,
        landing_seconds: float = math.inf,
        clock: Clock | None = None,
    ) -> None:
        self.landing_seconds = landing_seconds
        self._may_write = may_write
        self._clock = clock or SystemClock()
        self._closed = False
        self._numbers = itertools.count()
        self._lands_by: dict[int, float] = {}
        self._changed = asyncio.Event()

    def __call__(self) -> bool:
        """Whether what runs now may write now."""
        term = _TERM.get()
        return not self._closed and (self._may_write() if term is None else term.runs())

    def close(self) -> None:
        """Let no write leave any more."""
        self._closed = True

    def sent(self) -> int:
        """Note that a write leaves; the number stands for it."""
        number = next(self._numbers)
        self._lands_by[number] = self._clock.monotonic() + self.landing_seconds
        return number

    def ended(self, number: int, *, certain: bool) -> None:
        """Note that the write was answered with certainty, or that no certain answer to it will come."""
        # Without a bound there is nothing to wait for once the answer is lost.
        if certain or self.landing_seconds == math.inf:
            self._lands_by.pop(number, None)
            self._changed.set()
        else:
            self._forget_landed(self._clock.monotonic())

    async def settled(self, longest_seconds: float = math.inf) -> bool:
        """Wait until no write that left before can take effect any more; False where that takes longer."""
        # Another lease's writes go on meanwhile: later ones are not waited for.
        ends, left = self._clock.monotonic() + longest_seconds, frozenset(self._lands_by)
        while True:
            now = self._clock.monotonic()
            self._forget_landed(now)
            lands_by = max((self._lands_by[number] for number in left & self._lands_by.keys()), default=None)
            if lands_by is None:
                return True
            if now >= ends:
                return False
            await self._change_or(min(ends, lands_by) - now)

    def _forget_landed(self, now: float) -> None:
        self._lands_by = {number: by for number, by in self._lands_by.items() if by > now}

    async def _change_or(self, seconds: float) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(None if seconds == math.inf else seconds):
                await self._changed.wait()
        except TimeoutError:
            return
