"""Answers are made one at a time for each client, and in turns between clients."""

import asyncio
import threading

import pytest

from berth.framework.clock import SYSTEM_CLOCK
from berth.simulation_service.errors import CutOffError
from berth.simulation_service.limits import ServiceLimits
from berth.simulation_service.queries import Queries
from berth.simulation_service.turns import RequestTurns
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import eventually
from tests.unit.simulation_service.kit import FakeClock


@pytest.fixture
def queries():
    made = Queries(ServiceLimits(), SYSTEM_CLOCK)
    yield made
    made.close()


async def asked(queries, client, work):
    async with queries.of(client) as in_thread:
        return await in_thread(work)


async def test_a_long_answer_lets_others_pass(queries):
    """An answer that takes steps until another client has its own ends: the other had its turns."""
    other_is_done = threading.Event()
    begun = threading.Event()

    def long(pace):
        begun.set()
        steps = 0
        while not other_is_done.is_set():
            with pace():
                steps += 1
        return steps

    def short(pace):
        for _ in range(10):
            with pace():
                pass
        other_is_done.set()
        return "short"

    waiting = asyncio.create_task(asked(queries, "long", long))
    await asyncio.to_thread(begun.wait, 60)

    assert "short" == await asked(queries, "short", short)
    assert 0 <= await waiting


async def test_one_at_a_time_for_each_client(queries):
    """A client's second answer is begun once its first is there."""
    running, most = 0, 0

    def work(pace):
        nonlocal running, most
        running += 1
        most = max(most, running)
        with pace():
            running -= 1

    await asyncio.gather(*(asked(queries, "one", work) for _ in range(5)))

    assert 1 == most


async def test_the_time_of_an_answer_is_over():
    """An answer that takes too long is cut off at its next step."""
    clock = FakeClock()
    queries = Queries(ServiceLimits(request_seconds=10), clock)

    def work(pace):
        for _ in range(1000):
            with pace():
                clock.seconds += 1

    with pytest.raises(CutOffError):
        await asked(queries, "slow", work)
    queries.close()

    assert 1010 == clock.seconds


async def test_a_caller_that_goes_away(queries):
    """Its answer ends at the next step, and the client's next one is made."""
    begun, ended = threading.Event(), threading.Event()

    def endless(pace):
        try:
            while True:
                with pace():
                    begun.set()
        finally:
            ended.set()

    gone = asyncio.create_task(asked(queries, "one", endless))
    await asyncio.to_thread(begun.wait, 60)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone

    assert "next" == await asked(queries, "one", lambda _: "next")
    assert ended.is_set()


async def test_turns_are_given_in_order():
    """Who asked first has the next turn."""
    turns, order = RequestTurns(), []

    def take(name):
        with turns.turn():
            order.append(name)

    threads = [threading.Thread(target=take, args=(name,)) for name in "abc"]
    with turns.turn():
        for number, thread in enumerate(threads, 1):
            thread.start()
            await eventually(lambda number=number: turns.waiting == number)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)

    assert ["a", "b", "c"] == order
