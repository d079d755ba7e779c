"""Calls that leave when they are made: what becomes of them where they are awaited, or given up."""

import asyncio
from contextlib import ExitStack

import pytest

from berth.out_of_tree.transport.sent_call import SentCall, UnderWay
from berth.out_of_tree.transport.ttrpc import Answer


class Call:
    """A call whose answer the test gives, and what it noted: what was read, and how its scope ended."""

    def __init__(self, response=None):
        self.response = Answer() if response is None else response
        self.read, self.ended = [], []
        scopes = ExitStack()
        scopes.push(lambda kind, _error, _trace: self.ended.append(kind))
        self.sent = SentCall(self.response, scopes, self._read)

    async def _read(self, response):
        self.read.append(await response)
        return self.read[-1]

    def worked_on(self):
        """Work on its answer."""

        async def work():
            return f"work on {await self.sent}"

        return UnderWay(work(), self.sent)


async def test_an_answer_is_read_where_it_is_awaited():
    """The request is under way before, and the scope ends with the answer."""
    call = Call()
    work = call.worked_on()
    under_way = work.under_way, work.answered
    asyncio.get_running_loop().call_soon(call.response.set_result, "one")

    assert "work on one" == await work
    assert ((True, False), ["one"], [None]) == (under_way, call.read, call.ended)


async def test_an_error_is_raised_where_the_answer_is_awaited():
    """Not where the call was made; the scope sees it."""
    call = Call()
    call.response.set_exception(ValueError("no"))
    work = call.worked_on()
    with pytest.raises(ValueError, match="no"):
        await work

    assert [ValueError] == call.ended


@pytest.mark.parametrize("answered", [True, False])
async def test_a_call_that_is_given_up_takes_an_answer_that_is_there(answered):
    """One whose answer came is read; any other ends, and its response is cancelled."""
    call = Call()
    if answered:
        call.response.set_result("one")
    call.worked_on().cancel()

    assert (["one"] if answered else []) == call.read
    assert [None if answered else asyncio.CancelledError] == call.ended
    assert call.response.cancelled() is not answered


async def test_a_failure_that_is_there_counts_though_the_call_is_given_up():
    """The scope sees the failure, not that it was given up."""
    call = Call()
    call.response.set_exception(ValueError("no"))
    call.worked_on().cancel()

    assert [ValueError] == call.ended


async def test_a_request_that_is_not_written_at_once_is_sent_in_the_next_turn():
    """As over gRPC: awaiting the answer is not what sends it."""
    sent = []

    async def response():
        sent.append("request")
        return "one"

    call = Call(response())
    call.sent.begin()
    before = call.sent.under_way
    await asyncio.sleep(0)

    assert (False, ["request"]) == (before, sent)
    assert "one" == await call.sent


async def test_a_task_that_awaits_an_answer_is_cancelled_as_with_any_coroutine():
    """The scope sees the cancellation, and nothing comes of the response later."""
    call = Call()
    task = asyncio.ensure_future(call.worked_on())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert (True, [asyncio.CancelledError], True) == (task.cancelled(), call.ended, call.response.cancelled())
