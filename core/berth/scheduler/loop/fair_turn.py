"""The scheduling loop's turn for what does not schedule: questions take it one after the other, and rarely.

question --> waits for other questions --> waits while pods wait and it was taken lately --> the loop's turn
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from berth.framework.clock import Clock

PODS_SHARE = 9
"""While pods wait, questions leave the loop this many times as long as the last one took."""
LOOK_SECONDS = 0.01
"""How often it is looked whether pods still wait."""


class FairTurn(AbstractAsyncContextManager[object]):
    """The `turn` of a loop for questions, whose number and cost clients choose.

    One question at a time waits for the turn, in the order they came, so that pods have it between any two.
    While `pods_wait` says so, questions together have at most a tenth of the loop's time.
    """

    def __init__(
        self, turn: AbstractAsyncContextManager[object], pods_wait: Callable[[], bool], clock: Clock
    ) -> None:
        self._turn = turn
        self._pods_wait = pods_wait
        self._clock = clock
        self._questions = asyncio.Lock()
        self._began = self._due = 0.0

    async def __aenter__(self) -> None:
        """Take the turn."""
        await self._questions.acquire()
        try:
            # Nothing says that no pod waits any more, and a question may well wait a moment longer.
            while (left := self._due - self._clock.monotonic()) > 0 and self._pods_wait():  # noqa: ASYNC110
                await asyncio.sleep(min(left, LOOK_SECONDS))
            await self._turn.__aenter__()
        except BaseException:
            self._questions.release()
            raise
        self._began = self._clock.monotonic()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        now = self._clock.monotonic()
        self._due = now + PODS_SHARE * (now - self._began)
        try:
            await self._turn.__aexit__(kind, error, trace)
        finally:
            self._questions.release()
