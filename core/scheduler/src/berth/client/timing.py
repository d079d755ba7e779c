"""Time and chance, passed in: pauses that grow, and the client-side rate limit."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from berth.framework.clock import Clock

Sleep = Callable[[float], Awaitable[None]]
After = Callable[[float, Callable[[], None]], "asyncio.TimerHandle"]


def after(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    """Make the call after that time, unless it is cancelled before."""
    return asyncio.get_running_loop().call_later(seconds, call)


def micro_time(seconds: float) -> str:
    """Seconds since the epoch as the API's MicroTime: `2026-01-02T03:04:05.000006Z`."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


@dataclass
class Backoff:
    """Pauses that grow by a factor up to a cap, each lengthened by up to `jitter` of itself.

    Units: seconds.
    """

    initial: float
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 1.0
    rng: Random = field(default_factory=Random)
    _next: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._next = self.initial

    def next(self) -> float:
        """The next pause."""
        base = self._next
        self._next = min(base * self.factor, self.cap)
        return base * (1.0 + self.jitter * self.rng.random())

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self._next = self.initial


class TokenBucket:
    """Let `qps` requests a second pass, and `burst` at once after a quiet time.

    Who reserves passes in the order of its reservation. A negative qps lets everything pass.
    """

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self.unlimited = qps < 0
        self._interval = 0.0 if qps <= 0 else 1.0 / qps
        self._slack = max(burst - 1, 0) * self._interval
        self._clock = clock
        self._next_free = float("-inf")

    def reserve(self) -> float:
        """How many seconds to wait for this request's turn, which is kept whether it is used or not.

        The limit errs on the slow side.
        """
        if self.unlimited:
            return 0.0
        now = self._clock.monotonic()
        turn = max(self._next_free, now - self._slack)
        self._next_free = turn + self._interval
        return max(turn - now, 0.0)
