"""What may be written, and how long what was sent may yet take effect."""

import asyncio
import math

import pytest

from berth.client.errors import DeadlineError
from berth.client.write_guard import Terms, WriteGuard
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import answer, raw_server, read_request, silent_later, transport_to


async def test_a_write_belongs_to_the_term_in_which_it_was_decided():
    """Work that was started in an earlier term writes no more, whatever the lease; work of no term does."""
    guard, terms = WriteGuard(), Terms()
    go_on = asyncio.Event()

    async def term():
        terms.begin()
        return asyncio.create_task(decided())

    async def decided():
        before = guard()
        await go_on.wait()
        return before, guard()

    first = await asyncio.create_task(term())
    await asyncio.sleep(0)
    second = await asyncio.create_task(term())
    await asyncio.sleep(0)
    go_on.set()

    assert [(True, False), (True, True)] == [await first, await second]
    assert guard()


async def test_work_is_written_by_the_lease_that_it_was_decided_under():
    """What was decided for one shard passes by no other's lease; work of no term needs them all."""
    held = {"a": True, "b": False}
    guard = WriteGuard(lambda: all(held.values()))

    async def decided(shard):
        Terms(lambda: held[shard]).begin()
        return await asyncio.create_task(written())

    async def written():
        return guard()

    assert [True, False] == [await asyncio.create_task(decided(shard)) for shard in "ab"]
    assert not guard()
    held["b"] = True
    assert guard()


async def test_writes_that_leave_later_are_not_waited_for(clock):
    """Another shard goes on writing while a term's earlier writes settle."""
    guard = WriteGuard(landing_seconds=5.0, clock=clock)
    write = guard.sent()
    settling = asyncio.create_task(guard.settled())
    await asyncio.sleep(0)
    guard.sent()
    guard.ended(write, certain=True)

    assert await settling
    assert not await guard.settled(0.0)


def test_nothing_leaves_a_closed_guard():
    guard = WriteGuard()
    guard.close()

    assert not guard()


async def test_an_answered_write_is_settled(clock):
    guard = WriteGuard(landing_seconds=5.0, clock=clock)
    write = guard.sent()
    assert not await guard.settled(0.0)
    guard.ended(write, certain=True)

    assert await guard.settled(0.0)


async def test_a_write_in_doubt_is_open_until_it_can_land_no_more(clock):
    guard = WriteGuard(landing_seconds=5.0, clock=clock)
    guard.ended(guard.sent(), certain=False)
    clock.seconds += 4.9
    assert not await guard.settled(0.0)
    clock.seconds += 0.1

    assert await guard.settled(0.0)


async def test_without_a_bound_a_lost_answer_is_not_waited_for():
    guard = WriteGuard(landing_seconds=math.inf)
    guard.ended(guard.sent(), certain=False)

    assert await guard.settled(0.0)


async def test_the_answer_wakes_what_waits_for_it():
    guard = WriteGuard()
    write = guard.sent()
    waiting = asyncio.create_task(guard.settled())
    await asyncio.sleep(0)
    guard.ended(write, certain=True)

    assert await waiting


@pytest.mark.parametrize(("status", "settled"), [(201, True), (409, True), (500, False), (504, False)])
async def test_which_answers_are_certain(status, settled):
    """An error of the server leaves open whether the write takes effect later."""
    asked = []

    async def serve(reader, writer):
        while True:
            asked.append(await read_request(reader))
            writer.write(answer(status))

    guard = WriteGuard(landing_seconds=100.0)
    async with raw_server(serve) as server, transport_to(server.url) as transport:
        response = await transport.request("POST", "/x", guard=guard)

        assert (status, settled) == (response.status, await guard.settled(0.0))
        assert asked[0][0].startswith(b"POST /x?timeout=100000ms ")


async def test_an_unanswered_write_is_given_up_when_it_may_land_no_more():
    """The answer is awaited no longer than that, however long the caller would wait."""
    guard = WriteGuard(landing_seconds=0.01)
    async with raw_server(silent_later) as server, transport_to(server.url) as transport:
        await transport.request("GET", "/")
        with pytest.raises(DeadlineError):
            await transport.request("POST", "/", guard=guard, timeout_seconds=3600)


async def test_a_cancelled_write_is_in_doubt():
    guard = WriteGuard(landing_seconds=100.0)
    async with raw_server(silent_later) as server, transport_to(server.url) as transport:
        await transport.request("GET", "/")
        writing = asyncio.create_task(transport.request("POST", "/", guard=guard))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await guard.settled(0.0):  # noqa: ASYNC110 - no event says that a request is on its way
                await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])

        assert not await guard.settled(0.0)
