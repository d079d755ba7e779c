"""The scheduling loop as other threads see it: how long its current turn has taken, and what it answers.

A turn is what the event loop does before it comes round again: callbacks of watches, a pod's cycle up to its
next await. A loop that answers late is busy, and not dead, until a turn has taken `LONGEST_TURN_SECONDS`.

Called by: control_thread.py, which asks the loop whether it came round; health, election and the pages that
need the scheduling loop's objects.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from berth.framework.clock import SYSTEM_CLOCK
from berth.serving.errors import LoopBusyError

LOOK_SECONDS = 0.25
LONGEST_TURN_SECONDS = 60.0
"""The longest turns known (a first list, a preemption over the largest clusters) take seconds.

A minute is far beyond them, so that no working scheduler is restarted; a cluster whose leader hangs for good
waits this long and the lease's duration for the next one.
"""
ANSWER_SECONDS = 30.0
"""How long a request waits for the scheduling loop: clients get their answer before the bound is reached."""

T = TypeVar("T")


class LoopTurns:
    """Follows one event loop from outside of it. `busy_seconds` and `hangs` may be asked in any thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        longest_seconds: float = LONGEST_TURN_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        monotonic: Callable[[], float] = SYSTEM_CLOCK.monotonic,
    ) -> None:
        self.loop = loop
        self._longest = longest_seconds
        self._answer_seconds = answer_seconds
        self._monotonic = monotonic
        self._asked_at: float | None = None

    async def watch(self) -> None:
        """Ask the loop again and again whether it comes round; to be run by another loop."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Ask once, unless the last question is still open."""
        if self._asked_at is None:
            self._asked_at = self._monotonic()
            self.loop.call_soon_threadsafe(self._came_round)

    def _came_round(self) -> None:
        self._asked_at = None

    def busy_seconds(self) -> float:
        """How long the current turn has taken at least; it may have begun up to `LOOK_SECONDS` before."""
        # Read once: the loop's thread may come round at any moment.
        asked_at = self._asked_at
        return 0.0 if asked_at is None else self._monotonic() - asked_at

    def hangs(self) -> bool:
        """Whether the current turn has taken longer than any turn may."""
        return self.busy_seconds() > self._longest

    def check(self) -> str:
        """The health check `schedulingLoop`."""
        return f"{self.note()}, more than {self._longest:.0f} s" if self.hangs() else ""

    def note(self) -> str:
        """How busy the loop is, in words."""
        return f"the current turn has taken {self.busy_seconds():.1f} s"

    def tell(self, call: Callable[[], None]) -> None:
        """Have the loop make the call when it comes round."""
        self.loop.call_soon_threadsafe(call)

    async def ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work` returns, run by the scheduling loop; what it raises is raised.

        Raises: LoopBusyError where the loop does not answer in time; the work is cancelled then.
        """
        answer = asyncio.run_coroutine_threadsafe(work(), self.loop)
        try:
            async with asyncio.timeout(self._answer_seconds) as deadline:
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            if not deadline.expired():
                raise
            waited = f"no answer from the scheduling loop within {self._answer_seconds:.0f} s"
            raise LoopBusyError(f"{waited}: {self.note()}") from None
