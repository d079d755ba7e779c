"""Questions that take the scheduling loop's turn: one after the other, rarely while pods wait, by user."""

import asyncio

import pytest

from berth.aggregated_api.errors import TooManyQuestionsError
from berth.scheduler.loop.fair_turn import (
    BURST_SECONDS,
    MAX_QUESTIONS,
    MAX_USERS,
    PODS_SHARE,
    USERS_SHARE,
    FairTurn,
)
from berth.testing.handles import ManualClock

QUESTIONS, SECONDS = 15, 0.1


class Desk:
    """A loop's turn on a clock of its own, and who had it."""

    def __init__(self, *, pods_wait):
        self.clock, self.turn, self.had_it = ManualClock(100.0), asyncio.Lock(), []
        self.pods_wait = pods_wait
        self.fair = FairTurn(self.turn, lambda: self.pods_wait, self.clock)

    async def question(self, user, seconds=SECONDS):
        with self.fair.question(user) as turn:
            async with turn:
                self.had_it.append(user)
                self.clock.seconds += seconds

    async def pod(self):
        async with self.turn:
            self.had_it.append("pod")

    async def asked(self, *users):
        """Begin these questions, each of which waits for the turn then."""
        tasks = []
        for user in users:
            tasks.append(asyncio.create_task(self.question(user)))
            await asyncio.sleep(0)
        return tasks


async def test_a_pod_waits_for_one_question_however_many_are_asked():
    desk = Desk(pods_wait=False)
    async with desk.turn:
        asked = await desk.asked(*map(str, range(QUESTIONS)))
        pod = asyncio.create_task(desk.pod())
        await asyncio.sleep(0)
    await asyncio.gather(*asked, pod)

    assert desk.had_it.index("pod") == 1


async def test_while_pods_wait_questions_have_a_tenth_of_the_time():
    desk = Desk(pods_wait=True)
    asked = await desk.asked(*map(str, range(QUESTIONS)))
    began = desk.clock.seconds
    while not all(task.done() for task in asked):
        await asyncio.sleep(0)
        if not desk.turn.locked():
            desk.clock.seconds += SECONDS / 10
    spent = QUESTIONS * SECONDS

    assert desk.clock.seconds - began >= (QUESTIONS - 2) / QUESTIONS * (1 + PODS_SHARE) * spent


async def test_who_gives_up_waiting_keeps_no_other_waiting():
    desk = Desk(pods_wait=False)
    async with desk.turn:
        first, second, third = await desk.asked("first", "second", "third")
        for task in (first, second):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    await third
    await desk.question("fourth")

    assert ["third", "fourth"] == desk.had_it


async def test_the_user_who_used_least_is_next():
    """Three more questions of one user do not come before another's that was asked later."""
    desk = Desk(pods_wait=False)
    async with desk.turn:
        asked = await desk.asked("many", "many", "many", "few")
    await asyncio.gather(*asked)

    assert ["many", "few", "many", "many"] == desk.had_it


async def test_more_questions_than_a_user_may_ask_at_once():
    """They are refused, with when to try again; those of others are not."""
    desk = Desk(pods_wait=False)
    async with desk.turn:
        asked = await desk.asked(*["many"] * MAX_QUESTIONS)
        with pytest.raises(TooManyQuestionsError) as refused:
            await desk.question("many")
        asked += await desk.asked("few")
    await asyncio.gather(*asked)

    assert 1 == refused.value.retry_seconds
    assert "few" in desk.had_it


@pytest.mark.parametrize(("pods_wait", "admitted"), [(True, False), (False, True)])
async def test_a_user_who_has_used_much_while_pods_wait(pods_wait, admitted):
    """It is charged to the user alone, and paid back with time."""
    desk = Desk(pods_wait=False)
    await desk.question("much", BURST_SECONDS + 1)
    desk.pods_wait = pods_wait
    if admitted:
        await desk.question("much")
        return
    with pytest.raises(TooManyQuestionsError) as refused:
        await desk.question("much")
    assert USERS_SHARE == refused.value.retry_seconds
    desk.clock.seconds += USERS_SHARE + PODS_SHARE * BURST_SECONDS
    for user in ("others", "much"):
        await desk.question(user)
        desk.clock.seconds += PODS_SHARE * SECONDS

    assert ["much", "others", "much"] == desk.had_it


@pytest.mark.parametrize("interruptible", [True, False])
async def test_a_pod_that_waits_interrupts(interruptible):
    """Between two steps of the question, where it may; it goes on once no pod waits."""
    desk = Desk(pods_wait=True)

    async def question():
        with desk.fair.question("user") as turn:
            async with turn:
                desk.had_it.append("first step")
                desk.clock.seconds += SECONDS
                if interruptible:
                    with turn.interruptible():
                        await turn.breathe()
                else:
                    await turn.breathe()
                assert desk.turn.locked()
                desk.had_it.append("last step")

    asking = asyncio.create_task(question())
    await asyncio.sleep(0)
    pod = asyncio.create_task(desk.pod())
    await pod
    desk.pods_wait = False
    await asking

    steps = ["first step", "last step"]
    steps.insert(1 if interruptible else 2, "pod")
    assert steps == desk.had_it
    assert not desk.turn.locked()


async def test_an_interrupted_question_that_is_given_up():
    """It leaves the turn to pods and to the next question."""
    desk = Desk(pods_wait=True)

    async def question():
        with desk.fair.question("user") as turn:
            async with turn:
                desk.clock.seconds += SECONDS
                with turn.interruptible():
                    await turn.breathe()

    asking = asyncio.create_task(question())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    desk.pods_wait = False
    await desk.question("next")

    assert ["next"] == desk.had_it


async def test_users_are_forgotten():
    """However many ask: those first who have used least."""
    desk = Desk(pods_wait=False)
    await desk.question("much", BURST_SECONDS + 1)
    for number in range(MAX_USERS + 5):
        await desk.question(f"user-{number}", 0.0)
    desk.pods_wait = True

    assert MAX_USERS == len(desk.fair._accounts)
    with pytest.raises(TooManyQuestionsError):
        await desk.question("much")
