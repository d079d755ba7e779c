"""Who schedules when: never before the fence is down, never after the lease is lost; and every way to end."""

import asyncio

import pytest

from berth.client.errors import LeaseLostError
from berth.scheduler.leading.leadership import Leadership
from tests.failures.reporting import reports


class Elector:
    """A lease that a test gives and takes."""

    def __init__(self, notes):
        self.notes, self.leading = notes, False
        self.given, self.lost = asyncio.Event(), asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()

    async def acquire(self):
        await self.given.wait()
        self.given.clear()
        self.leading = True
        self.notes.append("acquired")

    async def hold(self):
        await self.lost.wait()
        self.lost.clear()
        self.leading = False
        self.notes.append("lost")
        raise LeaseLostError("Leaderelection lost")

    async def release(self):
        await self.released.wait()
        self.leading = False
        self.notes.append("released")


class Loop:
    """A loop whose turn ends when the test says so."""

    def __init__(self, notes):
        self.notes, self.turn_over, self.stopping = notes, asyncio.Event(), False

    async def run(self):
        self.stopping = False
        self.notes.append("deciding")
        await self.turn_over.wait()
        self.turn_over.clear()
        self.notes.append("turn over")
        return self.stopping

    def stop(self):
        self.stopping = True


class Fence:
    def __init__(self, notes):
        self.notes, self.proven = notes, asyncio.Event()

    def begin_term(self, *, raised):
        self.notes.append("fence up" if raised else "no fence")

    async def lower(self):
        await self.proven.wait()
        self.notes.append("proven")


class Parts:
    """A leadership on parts that a test drives."""

    def __init__(self, *, elected=True, delayed=False):
        self.notes = []
        self.elector = Elector(self.notes) if elected else None
        self.loop, self.fence = Loop(self.notes), Fence(self.notes)
        self.leadership = Leadership(self.elector, self.loop, self.fence, self.prepare, delayed=delayed)
        self.running = asyncio.create_task(self.leadership.run())

    async def prepare(self):
        if "prepared" in self.notes:
            return False
        self.notes.append("prepared")
        return True

    async def leads(self):
        self.elector.given.set()
        self.fence.proven.set()
        await turns()

    async def end(self, *, settled=True):
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.leadership.release(settled=settled)


async def turns():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_fence_stands_between_lease_and_decision():
    parts = Parts()
    parts.elector.given.set()
    await turns()
    assert ["prepared", "acquired", "fence up"] == parts.notes
    parts.fence.proven.set()
    await turns()

    assert ["proven", "deciding"] == parts.notes[3:]
    await parts.end()


async def test_lists_begun_after_the_acquisition_need_no_fence():
    """With delayCacheUntilActive, the first time; not the next."""
    parts = Parts(delayed=True)
    await parts.leads()
    assert ["acquired", "prepared", "no fence", "proven", "deciding"] == parts.notes
    parts.elector.lost.set()
    await turns()
    parts.loop.turn_over.set()
    await parts.leads()

    assert ["lost", "turn over", "acquired", "fence up"] == parts.notes[5:9]
    await parts.end()


async def test_without_an_election_nothing_was_written_by_a_predecessor():
    parts = Parts(elected=False)
    parts.fence.proven.set()
    await turns()

    assert ["prepared", "no fence", "proven", "deciding"] == parts.notes
    await parts.end()


@reports("leader-steps-down", log="`stepped down, campaigning again`")
async def test_a_turn_ends_before_the_next_campaign(caplog):
    """Lost while leading: nothing is half done."""
    parts = Parts()
    await parts.leads()
    parts.elector.given.set()
    parts.elector.lost.set()
    await turns()
    assert "lost" == parts.notes[-1]
    parts.loop.turn_over.set()
    await turns()

    assert ["lost", "turn over", "acquired", "fence up"] == parts.notes[5:9]
    assert "stepped down, campaigning again" in caplog.text
    await parts.end()


async def test_a_lease_lost_behind_the_fence():
    """The proof is given up, nothing was decided, and the campaign goes on."""
    parts = Parts()
    parts.elector.given.set()
    await turns()
    parts.elector.lost.set()
    await turns()
    parts.elector.given.set()
    await turns()

    assert ["lost", "acquired", "fence up"] == parts.notes[3:]
    await parts.end()


async def test_the_lease_is_held_until_it_is_released():
    """A process that ends goes on renewing while what it sent is answered."""
    parts = Parts()
    await parts.leads()
    parts.running.cancel()
    await asyncio.gather(parts.running, return_exceptions=True)
    assert parts.elector.leading
    assert "turn over" not in parts.notes
    await parts.leadership.release(settled=True)

    assert "released" == parts.notes[-1]


async def test_a_lease_lost_at_the_end(caplog):
    """It is not given back, since it is another's; no error comes of it."""
    parts = Parts()
    await parts.leads()
    parts.running.cancel()
    await asyncio.gather(parts.running, return_exceptions=True)
    parts.elector.lost.set()
    await turns()
    await parts.leadership.release(settled=True)

    assert "released" not in parts.notes
    assert "stepped down" in caplog.text


async def test_a_lease_with_writes_under_way_runs_out(caplog):
    """Its successor may not begin before they can land no more."""
    parts = Parts()
    await parts.leads()
    await parts.end(settled=False)

    assert "released" not in parts.notes
    assert "lease not released, it will run out" in caplog.text


@reports("lease-not-released", log="`lease not released, it will run out`, with the cause")
async def test_a_release_that_is_not_answered(monkeypatch, caplog):
    monkeypatch.setattr("berth.scheduler.leading.leadership.RELEASE_SECONDS", 0.01)
    parts = Parts()
    await parts.leads()
    parts.elector.released.clear()
    await parts.end()

    assert "released" not in parts.notes
    assert "lease not released, it will run out err=no answer within 0" in caplog.text


async def test_cancelled_twice():
    """Nothing goes on, and nothing is reported as lost."""
    parts = Parts()
    await parts.leads()
    parts.running.cancel()
    await asyncio.sleep(0)
    parts.running.cancel()
    await asyncio.gather(parts.running, return_exceptions=True)
    await parts.leadership.release(settled=True)

    assert {asyncio.current_task()} == asyncio.all_tasks()


async def test_a_loop_that_breaks_breaks_the_leadership():
    class BrokenError(Exception):
        pass

    parts = Parts()

    async def broken():
        raise BrokenError

    parts.loop.run = broken
    await parts.leads()
    with pytest.raises(BrokenError):
        await parts.running
    await parts.leadership.release(settled=True)

    assert "released" == parts.notes[-1]
