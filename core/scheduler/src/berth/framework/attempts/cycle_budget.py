"""The CPU that one scheduling cycle may use, and its way of letting everything else have its turn.

    cycle --timed--> steps of the cycle, each measured --+-- worked(plugin): between plugins; past the budget
                                                         |     the cycle ends with an error
                                                         +-- go_on(plugin): within a search, which ends with
                                                         |     what it has found
                                                         +-- may_go_on(plugin): within a step of a search
                                                         |     that cannot give others their turn
                                                         +-- turn(): between pods of a group whose decision
                                                               is made, which has no budget

CPU that other tasks use while the cycle waits for something is not the cycle's. How large budgets are is in
cycle/budgets.py; why, in docs/decisions/0020-cycle-budget.md.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from berth.framework.status import SUCCESS, Status, failed
from berth.objects.pods.pod import Pod

TURN_SECONDS = 0.005
"""After so much work everything else has its turn."""
READ_SECONDS = 0.002
"""Work that took less counts for as long as it took, and CPU is read once in so much time: a reading is a
system call, and many a cycle takes no longer than some of them."""
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


class CpuTime:
    """The CPU of this thread, read no oftener than budgets need; shared by the meters of one scheduler."""

    __slots__ = ("_known", "_known_at", "clock")

    def __init__(self, clock: BudgetClock) -> None:
        self.clock = clock
        self._known = 0.0
        self._known_at = -inf

    def lately(self, now: float) -> float:
        """What had been used at most `READ_SECONDS` before now, in monotonic seconds."""
        if now - self._known_at >= READ_SECONDS:
            self._known, self._known_at = self.clock.cpu(), now
        return self._known

    def since(self, before: float, began: float, now: float) -> float:
        """At most what was used since a moment: what had been used lately then, and when that was."""
        passed = now - began
        return passed if passed < READ_SECONDS else min(passed, self.clock.cpu() - before)


class CycleMeter:
    """What one cycle has used of its budget, counted while it runs under `timed`.

    A search that finds the budget used up keeps what it found; for the cycle to make something of that, it
    may use as much again.
    """

    __slots__ = (
        "_allowed_seconds",
        "_aside_from",
        "_cpu",
        "_look_at",
        "_looked_at",
        "_monotonic",
        "_resumed_at",
        "_resumed_with",
        "_used_before",
        "breathe",
        "exceeded_in",
        "limit_seconds",
        "little_seconds",
        "others_seconds",
        "pods",
        "settled",
    )

    def __init__(
        self,
        limit_seconds: float,
        cpu: CpuTime,
        breathe: Callable[[], Awaitable[None]],
        pods: Sequence[Pod] = (),
        little_seconds: float = inf,
    ) -> None:
        self.limit_seconds = limit_seconds
        self.little_seconds = little_seconds
        """A cycle that used more than that is a long one."""
        self.pods = pods
        """The pods that the cycle decides on."""
        self.exceeded_in = ""
        """Which plugin was at work when the budget was used up; empty while it is not."""
        self.settled = False
        """Whether what was used has been charged to an account."""
        self.breathe = breathe
        """Lets everything else have its turn."""
        self.others_seconds: dict[str, float] = {}
        """CPU of the cycle by namespace whose placed pods caused it: it is no part of the cycle's budget."""
        self._aside_from: float | None = None
        self._allowed_seconds = limit_seconds
        self._cpu = cpu
        self._monotonic = cpu.clock.monotonic
        self._used_before = 0.0
        self._resumed_at = self._resumed_with = self._looked_at = 0.0
        self._look_at = inf

    @property
    def used_seconds(self) -> float:
        """The CPU that the cycle has used of its budget."""
        if self._aside_from is not None:
            return self._aside_from
        if self._look_at == inf:
            return self._used_before
        return self._used_before + self._ran(self._cpu.clock.monotonic())

    @contextmanager
    def on_account_of(self, namespaces: Mapping[str, int]) -> Iterator[None]:
        """Charge what is done in this context to the namespaces, in these proportions, and not to the pod.

        What takes no longer than `READ_SECONDS` is left to the pod.
        """
        before = self.used_seconds
        self._aside_from = before
        try:
            yield
        finally:
            self._aside_from = None
            seconds, total = self.used_seconds - before, sum(namespaces.values())
            if seconds > READ_SECONDS and total:
                self._used_before -= seconds
                for namespace, share in namespaces.items():
                    charged = self.others_seconds.get(namespace, 0.0) + seconds * share / total
                    self.others_seconds[namespace] = charged

    def worked(self, where: str) -> bool:
        """Whether others are due their turn, now that `where` has done some work; `breathe` gives it to them.

        Raises: OverBudgetError.
        """
        # Called after each plugin of each pod, so that hardly anything is done while nothing is due.
        self._looked_at = now = self._monotonic()
        if now < self._look_at or not self._due_at(now):
            return False
        if self._spent(where):
            raise OverBudgetError(self.limit_seconds, where)
        return True

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

    async def turn(self) -> None:
        """Let everything else have its turn if that is due; for work without a budget."""
        if self._due():
            await self.breathe()

    def may_go_on(self, where: str) -> bool:
        """Whether a step of a search may go on that keeps everything else waiting for its turn."""
        return not self.exceeded_in and not (self._due() and self._ends(where, LONGEST_TURN_SECONDS))

    def timed(self, work: Coroutine[Any, Any, T]) -> "Timed[T]":
        """The work as an awaitable whose CPU is counted, as far as it is used by the work itself."""
        return Timed(work, self)

    def resume(self) -> None:
        """The cycle runs from now on."""
        now = self._cpu.clock.monotonic()
        self._resumed_at, self._resumed_with = now, self._cpu.lately(now)
        self._look_at = now + TURN_SECONDS

    def pause(self) -> None:
        """The cycle waits, or has ended."""
        self._used_before += self._ran(self._cpu.clock.monotonic())
        self._look_at = inf

    def _ran(self, now: float) -> float:
        """The CPU used since the cycle was resumed, or a little more."""
        return self._cpu.since(self._resumed_with, self._resumed_at, now)

    def _due(self) -> bool:
        """Whether the cycle has run for long enough; CPU is read only once that much time has passed."""
        self._looked_at = now = self._monotonic()
        return now >= self._look_at and self._due_at(now)

    def _due_at(self, now: float) -> bool:
        """The same, at a moment when CPU is to be read."""
        ran = self._ran(now)
        self._look_at = now + max(TURN_SECONDS - ran, 0.0)
        return ran >= TURN_SECONDS

    def _ends(self, where: str, longest_turn_seconds: float = inf) -> bool:
        """Whether a search is over; the cycle may then use as much again."""
        if self._ran(self._looked_at) > longest_turn_seconds:
            self.exceeded_in = where
        over = bool(self.exceeded_in) or self._spent(where)
        if over:
            self._allowed_seconds += self.limit_seconds
        return over

    def _spent(self, where: str) -> bool:
        if self._aside_from is not None:
            return False
        over = self._used_before + self._ran(self._looked_at) > self._allowed_seconds
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


UNMETERED = CycleMeter(inf, CpuTime(_NoTime()), _no_turn)
"""For what is no scheduling cycle, such as plugins that are asked alone."""
