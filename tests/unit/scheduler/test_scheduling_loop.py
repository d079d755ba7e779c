"""The loop: one turn at a time, and none that is cut in two."""

import asyncio
from types import SimpleNamespace

import pytest

from berth.scheduler.scheduling_loop import SchedulingLoop
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import ManualClock
from tests.fakes import Binds, framework, pending, world

N1 = make_node("n1")


class Slow:
    """A scheduling cycle that takes until it is told to go on."""

    def __init__(self):
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.scheduled = []

    async def schedule(self, info):
        self.began.set()
        await self.go_on.wait()
        self.scheduled.append(info.pod.name)


@pytest.fixture
def parts():
    w = world(framework(bind=[Binds()]), N1)
    slow = Slow()
    core = SimpleNamespace(queue=w.queue, cache=w.cache, snapshot=w.schedule_one.snapshot, schedule_one=slow)
    return w, slow, SchedulingLoop(core, clock=ManualClock(w.clock.now()), ready=w.ready)


async def test_a_stop_lets_the_turn_end(parts):
    """The pod that is being scheduled is scheduled to its end, the next one is left in the queue."""
    w, slow, loop = parts
    w.add_pod(pending("p0"))
    w.add_pod(pending("p1"))
    running = asyncio.create_task(loop.run())
    await slow.began.wait()
    loop.stop()
    await asyncio.sleep(0)
    assert not running.done()

    slow.go_on.set()
    await running
    assert ["p0"] == slow.scheduled
    assert w.queue.record("default", "p1") is not None


async def test_a_loop_that_was_stopped_runs_again(parts):
    w, slow, loop = parts
    slow.go_on.set()
    first = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.stop()
    await first

    w.add_pod(pending("p0"))
    second = asyncio.create_task(loop.run())
    await slow.began.wait()
    loop.stop()
    await second
    assert ["p0"] == slow.scheduled


async def test_a_pod_that_comes_wakes_the_loop(parts):
    w, slow, loop = parts
    slow.go_on.set()
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    w.add_pod(pending("p0"))
    async with asyncio.timeout(10):
        await slow.began.wait()
    loop.stop()
    await running

    assert ["p0"] == slow.scheduled


async def test_a_loop_that_breaks_says_so(parts):
    w, slow, loop = parts

    async def breaks(_info):
        raise ValueError("boom")

    slow.schedule = breaks
    w.add_pod(pending("p0"))
    with pytest.raises(ValueError, match="boom"):
        await loop.run()


async def test_whoever_holds_the_turn_keeps_pods_waiting(parts):
    w, slow, loop = parts
    slow.go_on.set()
    w.add_pod(pending("p0"))
    async with loop.turn:
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [] == slow.scheduled
    await slow.began.wait()
    loop.stop()
    await running


async def test_the_snapshot_follows_while_nobody_schedules(parts, monkeypatch):
    """A replica that does not lead keeps no ever growing list of what it has not taken over."""
    monkeypatch.setattr("berth.scheduler.scheduling_loop.FOLLOW_SECONDS", 0)
    w, _, loop = parts
    snapshot = w.schedule_one.snapshot
    w.cache.add_pod(make_pod(node_name="n1"))
    following = asyncio.create_task(loop.follow())
    async with asyncio.timeout(10):
        while "n1" not in snapshot.row_of:  # noqa: ASYNC110 - looks at a table, which has no event
            await asyncio.sleep(0)
    following.cancel()

    assert [1] == snapshot.pod_count.tolist()
    assert [] == w.cache.node_info("n1").unseen
