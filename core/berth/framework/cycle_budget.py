"""The CPU that one scheduling cycle may use, and its way of letting everything else have its turn.

    cycle --timed--> steps of the cycle, each measured --+-- worked(plugin): between plugins; past the budget
                                                         |     the cycle ends with an error
                                                         +-- go_on(plugin): within a search, which ends with
                                                         |     what it has found
                                                         +-- may_go_on(plugin): within a step of a search
                                                               that cannot give others their turn

CPU that other tasks use while the cycle waits for something is not the cycle's. How large budgets are is in
cycle/budgets.py; why, in docs/decisions/0020-cycle-budget.md.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from berth.framework.status import SUCCESS, Status, failed

TURN_SECONDS = 0.005
"""After so much work everything else has its turn."""
LONGEST_TURN_SECONDS = 0.25
"""What cannot be interrupted may use that much of its budget at once."""

T = TypeVar("T")


class OverBudgetError(Exception):
    """The cycle used more CPU than it may; the text says how much that is, and which plugin was at work."""

    def __init__(self, limit_seconds: float, where: str) -> None:
        super().__init__(f"scheduling cycle exceeded its budget of {limit_seconds:.3g}s of CPU in {where}")


class BudgetClock(Protocol):
    """The two times that a meter reads."""

    def monotonic(self) -> float:
        """Seconds that only ever grow; cheap to read."""

    def cpu(self) -> float:
        """CPU seconds of this thread; never more than `monotonic` says have passed."""


class CycleMeter:
    """What one cycle has used of its budget, counted while it runs under `timed`.

    A search that finds the budget used up keeps what it found; for the cycle to make something of that, it
    may use as much again.
    """

    __slots__ = (
        "_allowed_seconds",
        "_clock",
        "_look_at",
        "_resumed_at",
        "_used_before",
        "breathe",
        "exceeded_in",
        "limit_seconds",
        "pods",
        "settled",
    )

    def __init__(
        self,
        limit_seconds: float,
        clock: BudgetClock,
        breathe: Callable[[], Awaitable[None]],
        pods: int = 1,
    ) -> None:
        self.limit_seconds = limit_seconds
        self.pods = pods
        """How many pods the cycle decides on."""
        self.exceeded_in = ""
        """Which plugin was at work when the budget was used up; empty while it is not."""
        self.settled = False
        """Whether what was used has been put to somebody's account."""
        self.breathe = breathe
        """Lets everything else have its turn."""
        self._allowed_seconds = limit_seconds
        self._clock = clock
        self._used_before = 0.0
        self._resumed_at = 0.0
        self._look_at = inf

    @property
    def used_seconds(self) -> float:
        """The CPU that the cycle has used."""
        running = self._clock.cpu() - self._resumed_at if self._look_at < inf else 0.0
        return self._used_before + running

    def worked(self, where: str) -> bool:
        """Whether others are due their turn, now that `where` has done some work; `breathe` gives it to them.

        Raises: OverBudgetError.
        """
        due = self._due()
        if due and self._spent(where):
            raise OverBudgetError(self.limit_seconds, where)
        return due

    def verdict(self, where: str) -> Status:
        """The same as a status, for work that is not to be interrupted by turns."""
        if self._due() and self._spent(where):
            return failed(OverBudgetError(self.limit_seconds, where))
        return SUCCESS

    async def go_on(self, where: str) -> bool:
        """Whether a search may go on, after everything else has had its turn if that was due."""
        if self.exceeded_in:
            return False
        if self._due():
            if self._ends(where):
                return False
            await self.breathe()
        return True

    def may_go_on(self, where: str) -> bool:
        """Whether a step of a search may go on that keeps everything else waiting for its turn."""
        return not self.exceeded_in and not (self._due() and self._ends(where, LONGEST_TURN_SECONDS))

    def timed(self, work: Coroutine[Any, Any, T]) -> "Timed[T]":
        """The work as an awaitable whose CPU is counted, as far as it is used by the work itself."""
        return Timed(work, self)

    def resume(self) -> None:
        """The cycle runs from now on."""
        self._resumed_at = self._clock.cpu()
        self._look_at = self._clock.monotonic() + TURN_SECONDS

    def pause(self) -> None:
        """The cycle waits, or has ended."""
        self._used_before = self.used_seconds
        self._look_at = inf

    def _due(self) -> bool:
        """Whether the cycle has run for long enough; CPU is read only once that much time has passed."""
        now = self._clock.monotonic()
        if now < self._look_at:
            return False
        ran = self._clock.cpu() - self._resumed_at
        self._look_at = now + max(TURN_SECONDS - ran, 0.0)
        return ran >= TURN_SECONDS

    def _ends(self, where: str, longest_turn_seconds: float = inf) -> bool:
        """Whether a search is over; the cycle may then use as much again."""
        if self._clock.cpu() - self._resumed_at > longest_turn_seconds:
            self.exceeded_in = where
        over = bool(self.exceeded_in) or self._spent(where)
        if over:
            self._allowed_seconds += self.limit_seconds
        return over

    def _spent(self, where: str) -> bool:
        over = self.used_seconds > self._allowed_seconds
        if over:
            self.exceeded_in = self.exceeded_in or where
        return over


class Timed(Generic[T]):
    """Work whose every step is measured."""

    __slots__ = ("_meter", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], meter: CycleMeter) -> None:
        self._work = work
        self._meter = meter

    def __await__(self) -> Generator[Any, Any, T]:
        steps, meter = self._work.__await__(), self._meter
        step, argument = steps.send, None
        while True:
            meter.resume()
            try:
                waits_for = step(argument)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                meter.pause()
            try:
                step, argument = steps.send, (yield waits_for)
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - cancellation, too, is for the work to handle
                step, argument = steps.throw, error


class _NoTime:
    """A clock that stands still."""

    def monotonic(self) -> float:
        """The beginning."""
        return 0.0

    def cpu(self) -> float:
        """None used."""
        return 0.0


async def _no_turn() -> None:
    """Nothing else waits for a turn."""


UNMETERED = CycleMeter(inf, _NoTime(), _no_turn)
"""For what is no scheduling cycle, such as plugins that are asked alone."""
