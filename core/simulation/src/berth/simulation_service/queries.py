"""Answers are made in threads, one at a time for each client, and in turns between clients.

query --> the client's queue --> a free thread --> steps, each in a turn --> answer
             |                        |
             full: BoundError         over its time, or the caller is gone: CutOffError at the next step
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from berth.framework.clock import Clock
from berth.simulation.placing.one_by_one import Pace
from berth.simulation_service.errors import CutOffError
from berth.simulation_service.limits import ServiceLimits, check
from berth.simulation_service.turns import RequestTurns

T = TypeVar("T")


class InThread(Protocol):
    """Makes one answer in a thread."""

    async def __call__(self, work: Callable[[Pace], T]) -> T:
        """What `work` gives, called with what paces its steps.

        Raises: CutOffError, and what `work` raises.
        """


@dataclass
class _Deadline:
    """When an answer is given up."""

    clock: Clock
    at: float
    gone: bool = False

    def check(self) -> None:
        """Raise where it is time. Raises: CutOffError."""
        if self.gone or self.clock.monotonic() >= self.at:
            raise CutOffError("the time for the answer is over; ask about fewer pods or shapes at once")


class Queries:
    """Makes answers beside the event loop that the server runs on."""

    def __init__(self, limits: ServiceLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._turns = RequestTurns()
        self._first: dict[str, asyncio.Lock] = {}
        """Of each client that asks; the request that is answered has it."""
        self._asking: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(limits.at_once, thread_name_prefix="simulation")

    @asynccontextmanager
    async def of(self, client: str) -> AsyncIterator[InThread]:
        """The client's only answer in the making, until the end of the block.

        Raises: BoundError.
        """
        check("requests at a time", self._asking[client] + 1, self._limits.waiting)
        self._asking[client] += 1
        try:
            async with self._first.setdefault(client, asyncio.Lock()):
                yield self._in_thread
        finally:
            self._asking[client] -= 1
            if not self._asking[client]:
                del self._asking[client], self._first[client]

    async def _in_thread(self, work: Callable[[Pace], T]) -> T:
        """What `work` gives, called in a thread with what paces its steps.

        Raises: CutOffError, and what `work` raises.
        """
        deadline = _Deadline(self._clock, self._clock.monotonic() + self._limits.request_seconds)

        @contextmanager
        def pace() -> Iterator[None]:
            deadline.check()
            with self._turns.turn():
                yield

        running = asyncio.get_running_loop().run_in_executor(self._threads, work, pace)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # The caller is gone. The thread ends at its next step; until then the client's turn is taken.
            deadline.gone = True
            await asyncio.wait([running])
            running.exception()
            raise

    def close(self) -> None:
        """Begin no more answers."""
        self._threads.shutdown(wait=False, cancel_futures=True)
