"""The scheduling loop's turn for what does not schedule: questions, whose number and cost users choose.

question --> admitted: its user asks few at once, and has used little of the loop's time while pods waited
--> waits for questions of users that have used less
--> waits while pods wait and a question had the turn lately
--> the loop's turn <--breathe--> pods that wait
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from math import ceil
from types import TracebackType

import msgspec

from berth.aggregated_api.errors import TooManyQuestionsError
from berth.framework.clock import Clock

PODS_SHARE = 9
"""While pods wait, questions leave the loop this many times as long as the last one took."""
USERS_SHARE = 20
"""A user is given one second of the loop in so many."""
BURST_SECONDS = 2.0
"""While pods wait, no question of a user is admitted that has used so much more than that."""
LONGEST_RETRY_SECONDS = 60
MAX_QUESTIONS = 4
"""Of one user at once."""
MAX_USERS = 1024
LOOK_SECONDS = 0.01
"""How often it is looked whether pods still wait."""


class _Account(msgspec.Struct, eq=False):
    """One user's questions: how many there are, which wait, and what they used of the loop's time lately."""

    questions: int = 0
    waiting: deque[asyncio.Future[None]] = msgspec.field(default_factory=deque)
    seconds: float = 0.0
    counted_at: float = 0.0

    def used(self, now: float) -> float:
        """What they have used and what the user was not given since. Units: seconds."""
        return max(self.seconds - (now - self.counted_at) / USERS_SHARE, 0.0)

    def charge(self, seconds: float, now: float) -> None:
        """So much more was used up to now."""
        self.seconds, self.counted_at = self.used(now) + seconds, now


class FairTurn:
    """The turn of a loop for questions.

    One question at a time waits for the turn, that of the user that has used least, so that pods have it
    between any two. While `pods_wait` says so, questions together have at most a tenth of the loop's time.
    """

    def __init__(
        self, turn: AbstractAsyncContextManager[object], pods_wait: Callable[[], bool], clock: Clock
    ) -> None:
        self.turn = turn
        self.pods_wait = pods_wait
        self.clock = clock
        self._accounts: dict[str, _Account] = {}
        self._taken = False
        self._due = 0.0

    @contextmanager
    def question(self, user: str) -> Iterator["UsersTurn"]:
        """The turn for one question of the user. Raises: TooManyQuestionsError."""
        now = self.clock.monotonic()
        account = self._accounts.setdefault(user, _Account(counted_at=now))
        if account.questions >= MAX_QUESTIONS:
            raise TooManyQuestionsError(f"{MAX_QUESTIONS} explanations for this user are being made", 1)
        over = account.used(now) - BURST_SECONDS
        if over > 0 and self.pods_wait():
            retry = min(ceil(over * USERS_SHARE), LONGEST_RETRY_SECONDS)
            raise TooManyQuestionsError("explanations for this user took long, and pods wait", retry)
        account.questions += 1
        try:
            yield UsersTurn(self, account)
        finally:
            account.questions -= 1
            if len(self._accounts) > MAX_USERS:
                self._forget(self.clock.monotonic())

    def _forget(self, now: float) -> None:
        """Forget the user who asks nothing and has used least."""
        idle = [user for user, account in self._accounts.items() if not account.questions]
        if idle:
            del self._accounts[min(idle, key=lambda user: self._accounts[user].used(now))]

    async def take(self, account: _Account) -> None:
        """Wait for the turn and take it."""
        if self._taken:
            await self._called(account)
        self._taken = True
        try:
            await self.resume()
        except BaseException:
            self.pass_on()
            raise

    async def _called(self, account: _Account) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        account.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                account.waiting.remove(place)
            else:
                self.pass_on()
            raise

    async def resume(self) -> None:
        """Take the loop's turn once pods that wait have had their share."""
        # Nothing says that no pod waits any more, and a question may well wait a moment longer.
        while (left := self._due - self.clock.monotonic()) > 0 and self.pods_wait():  # noqa: ASYNC110
            await asyncio.sleep(min(left, LOOK_SECONDS))
        await self.turn.__aenter__()

    async def pause(self, account: _Account, began: float) -> None:
        """Give the loop's turn back, held since then, and charge the user for it."""
        now = self.clock.monotonic()
        self._due = now + PODS_SHARE * (now - began)
        account.charge(now - began, now)
        await self.turn.__aexit__(None, None, None)

    def pass_on(self) -> None:
        """Call the next question: one of the user that has used least."""
        now = self.clock.monotonic()
        waiting = [account for account in self._accounts.values() if account.waiting]
        for account in sorted(waiting, key=lambda account: account.used(now)):
            for place in account.waiting:
                if not place.done():
                    account.waiting.remove(place)
                    place.set_result(None)
                    return
        self._taken = False


class UsersTurn(AbstractAsyncContextManager[object]):
    """The turn for one question, which takes it once or several times."""

    def __init__(self, fair: FairTurn, account: _Account) -> None:
        self._fair = fair
        self._account = account
        self._began: float | None = None
        """Since when the loop's turn is held, None while it is not."""
        self._interruptible = False

    async def __aenter__(self) -> None:
        """Take the turn."""
        await self._fair.take(self._account)
        self._began = self._fair.clock.monotonic()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        try:
            await self._pause()
        finally:
            self._fair.pass_on()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within this context pods that wait are scheduled whenever the question breathes."""
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    async def breathe(self) -> None:
        """Let everything else have its turn, and pods that wait theirs where that is allowed."""
        if not self._interruptible or not self._fair.pods_wait():
            await asyncio.sleep(0)
            return
        await self._pause()
        await self._fair.resume()
        self._began = self._fair.clock.monotonic()

    async def _pause(self) -> None:
        began, self._began = self._began, None
        if began is not None:
            await self._fair.pause(self._account, began)
