"""Questions that are sent when they are put: what becomes of work that was begun, whatever it waits for."""

import asyncio

import pytest

from berth.out_of_tree.transport.eager_coroutine import begin
from berth.out_of_tree.transport.ttrpc import Answer


def an_answer():
    """One that has not come."""
    return Answer()


async def waiting_for(*futures):
    """What these come to, one after the other."""
    return [await future for future in futures]


async def test_work_that_waits_for_nothing_has_ended():
    """It can be awaited as any other."""
    work = begin(waiting_for(), at_once=True)

    assert (True, []) == (work.under_way, await work)


async def test_an_error_is_raised_where_the_work_is_awaited():
    """Not where it was begun."""

    async def broken():
        raise ValueError("no")

    work = begin(broken(), at_once=True)
    with pytest.raises(ValueError, match="no"):
        await work


async def test_work_goes_on_where_it_is_awaited():
    """With the answer that came meanwhile, and with later ones."""
    first, second = an_answer(), asyncio.get_running_loop().create_future()
    work = begin(waiting_for(first, second), at_once=True)
    first.set_result("one")
    asyncio.get_running_loop().call_soon(second.set_result, "two")

    assert ["one", "two"] == await work


@pytest.mark.parametrize("answered", [True, False])
async def test_cancelled_work_takes_an_answer_that_is_there(answered):
    """Work whose answer came goes on with it; other work is closed where it waits."""
    answer, came = an_answer(), []

    async def work():
        try:
            came.append(await answer)
        except BaseException as error:
            came.append(type(error))
            raise

    begun = begin(work(), at_once=True)
    if answered:
        answer.set_result("one")
    begun.cancel()

    assert ["one" if answered else GeneratorExit] == came


async def test_an_answer_may_be_awaited_by_others_too():
    """Each of them gets it."""
    shared = an_answer()
    work = begin(waiting_for(shared), at_once=True)
    other = asyncio.create_task(waiting_for(shared))
    await asyncio.sleep(0)
    awaited = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    shared.set_result("both")

    assert [["both"]] * 2 == [await awaited, await other]


async def test_work_that_waits_for_another_thing_than_an_answer_is_a_task():
    """It goes on by itself: what it has to send may take turns of the loop."""
    future = asyncio.get_running_loop().create_future()
    work = begin(waiting_for(future), at_once=True)
    future.set_result("sent")

    assert isinstance(work, asyncio.Task)
    assert ["sent"] == await work


async def test_work_may_be_left_to_the_next_turn():
    """What was to be sent before it is sent by then."""
    sent = []

    async def send(what):
        sent.append(what)

    work = begin(send("question"), at_once=False)
    await send("what comes first")
    await work

    assert ["what comes first", "question"] == sent


async def test_cancelled_work_ends_where_it_waits():
    """What it waited for is cancelled with it, so that nothing comes of it later."""
    answer, ended = an_answer(), []

    async def work():
        try:
            await answer
        finally:
            ended.append("work")

    begin(work(), at_once=True).cancel()

    assert (["work"], True) == (ended, answer.cancelled())


async def test_a_task_that_awaits_it_is_cancelled_as_with_any_coroutine():
    """The work sees the cancellation."""
    seen = []

    async def work():
        try:
            await an_answer()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.ensure_future(begin(work(), at_once=True))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert (["cancelled"], True) == (seen, task.cancelled())
