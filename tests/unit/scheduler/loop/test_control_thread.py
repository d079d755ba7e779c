"""The thread beside the scheduling loop, and the election that it runs."""

import asyncio
import threading

import pytest

from berth.client.errors import LeaseLostError
from berth.scheduler.leading.campaign import Campaign
from berth.scheduler.loop.control_thread import ControlThread
from berth.scheduler.loop.loop_turns import LoopTurns
from tests.suite import PATIENCE_SECONDS


@pytest.fixture
async def control():
    async with ControlThread(LoopTurns(asyncio.get_running_loop())) as thread:
        yield thread


class Elector:
    """Wins at once, and renews until it is lost."""

    def __init__(self):
        self.leading = False
        self.done = []
        self.threads = set()
        self.renewing = threading.Event()
        self.lost = threading.Event()

    def is_fresh(self):
        return self.leading

    def is_healthy(self):
        return True

    async def acquire(self):
        self.note("acquired")
        self.leading = True

    async def hold(self):
        self.renewing.set()
        try:
            while not self.lost.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            await asyncio.sleep(0.001)
            self.note("renewed no longer")
            raise
        self.leading = False
        raise LeaseLostError("lost")

    async def release(self):
        self.note("released")
        self.leading = False

    def note(self, what):
        self.done.append(what)
        self.threads.add(threading.current_thread().name)


async def test_work_runs_in_the_thread(control):
    """Its result comes back, and so does what it raises."""

    async def work():
        return threading.current_thread().name

    async def breaks():
        raise LookupError("broken")

    assert "control" == await control.run(work())
    with pytest.raises(LookupError, match="broken"):
        await control.run(breaks())


async def test_cancelled_here_is_cancelled_there(control):
    """Whatever waits in the other loop ends with what waits for it here."""
    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def work():
        loop.call_soon_threadsafe(begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(control.run(work()))
    await begun.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert await asyncio.to_thread(ended.wait, 60)


async def test_the_thread_ends_when_left():
    """Nothing of it is left behind, work that still runs included."""
    async with ControlThread(LoopTurns(asyncio.get_running_loop())) as control:
        forever = asyncio.create_task(control.run(asyncio.Event().wait()))
        await asyncio.sleep(0)
    await asyncio.gather(forever, return_exceptions=True)

    assert forever.cancelled()
    assert "control" not in {thread.name for thread in threading.enumerate()}


async def test_the_lease_is_renewed_from_the_moment_it_is_won(control):
    """The scheduling loop may be in a long turn before it comes to hold it: here it stands still."""
    elector = Elector()
    campaign = Campaign(elector, control)
    acquiring = asyncio.create_task(campaign.acquire())
    await asyncio.sleep(0)

    assert elector.renewing.wait(PATIENCE_SECONDS)
    await acquiring
    assert campaign.leading
    assert campaign.is_fresh()
    await campaign.release()


async def test_a_lost_lease_is_seen_at_once(control):
    """By the guard as soon as the elector knows; by the one that holds when the loop comes round."""
    elector = Elector()
    campaign = Campaign(elector, control)
    await campaign.acquire()
    elector.lost.set()

    with pytest.raises(LeaseLostError):
        await campaign.hold()
    assert not campaign.is_fresh()
    assert ["acquired"] == elector.done


async def test_after_a_loss_it_campaigns_again(control):
    """The second term is renewed like the first."""
    elector = Elector()
    campaign = Campaign(elector, control)
    await campaign.acquire()
    elector.lost.set()
    with pytest.raises(LeaseLostError):
        await campaign.hold()
    elector.lost.clear()
    elector.renewing.clear()
    await campaign.acquire()

    assert elector.renewing.wait(PATIENCE_SECONDS)
    await campaign.release()
    assert ["acquired", "acquired", "renewed no longer", "released"] == elector.done


@pytest.mark.parametrize("held", [True, False])
async def test_release_comes_after_the_last_renewal(control, held):
    """One thing at a time, in the other thread, whether holding was cancelled before or had not begun."""
    elector = Elector()
    campaign = Campaign(elector, control)
    await campaign.acquire()
    await asyncio.to_thread(elector.renewing.wait, 60)
    if held:
        holding = asyncio.create_task(campaign.hold())
        await asyncio.sleep(0)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    await campaign.release()

    assert ["acquired", "renewed no longer", "released"] == elector.done
    assert {"control"} == elector.threads
