"""How often something may be done: pauses that grow with failures in a row, and a rate with a burst."""

from collections.abc import Callable
from math import inf
from random import Random
from typing import Final

import msgspec

MAX_GROWTHS: Final = 64
"""A pause grows no more often: all limits are reached by then, and no number overflows."""

ROUNDING: Final = 1e-3


class Backoff(msgspec.Struct, frozen=True):
    """Pauses after failures in a row: each `factor` times the one before, up to `longest`.

    With a source of chance a pause is lengthened by up to `jitter` of itself.

    Units: those of `initial` and `longest`, mostly seconds; whole numbers stay whole.
    """

    initial: float
    longest: float = inf
    factor: float = 2
    jitter: float = 0.0

    def pause(self, failures: int, rng: Random | None = None) -> float:
        """The pause after that many failures in a row; 0 after none."""
        if failures <= 0:
            return 0
        pause = min(self.initial * self.factor ** min(failures - 1, MAX_GROWTHS), self.longest)
        return pause if rng is None else pause * (1.0 + self.jitter * rng.random())


class Pauses:
    """The pauses of one backoff, one after the other."""

    def __init__(self, backoff: Backoff, rng: Random | None = None) -> None:
        self._backoff = backoff
        self._rng = rng
        self._failures = 0

    def next(self) -> float:
        """The pause after one more failure."""
        self._failures += 1
        return self._backoff.pause(self._failures, self._rng)

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self._failures = 0


class TokenBucket:
    """Lets `per_second` requests pass, and `burst` at once after a quiet time; a negative rate lets all pass.

    `monotonic` is a clock in seconds. The limit errs on the slow side.
    """

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float]) -> None:
        self.unlimited = per_second < 0
        self._interval = 0.0 if per_second <= 0 else 1.0 / per_second
        self._slack = max(burst - 1, 0) * self._interval
        self._monotonic = monotonic
        self._next_free = -inf

    def reserve(self, cost: float = 1.0) -> float:
        """How many seconds to wait for this request's turn, which is kept whether it is used or not.

        Turns come in the order of the reservations; the one after this waits for its `cost` in requests.
        """
        if self.unlimited:
            return 0.0
        now = self._monotonic()
        turn = max(self._next_free, now - self._slack)
        self._next_free = turn + cost * self._interval
        return max(turn - now, 0.0)

    def take(self) -> bool:
        """Whether a request may pass now; one that may not leaves the rate as it is."""
        if self.unlimited:
            return True
        now = self._monotonic()
        turn = max(self._next_free, now - self._slack)
        # The sum of a burst's intervals may be a rounding error more than their product.
        if turn - now > ROUNDING * self._interval:
            return False
        self._next_free = turn + self._interval
        return True
