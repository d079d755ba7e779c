"""The loop: one turn at a time, and none that is cut in two."""

import asyncio
from types import SimpleNamespace

import pytest

from berth.scheduler.loop.scheduling_loop import SchedulingLoop, follow
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import ManualClock
from tests.fakes import Binds, framework, make_core, pending
from tests.suite import PATIENCE_SECONDS

N1 = make_node("n1")


class Slow:
    """A scheduling cycle that takes until it is asked to go on."""

    def __init__(self):
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.scheduled = []

    async def schedule(self, info):
        self.began.set()
        await self.go_on.wait()
        self.scheduled.append(info.pod.name)


@pytest.fixture
def parts():
    w = make_core(framework(bind=[Binds()]), N1)
    slow = Slow()
    core = SimpleNamespace(
        queue=w.queue,
        cache=w.cache,
        snapshot=w.schedule_one.snapshot,
        schedule_one=slow,
        ask_ahead=lambda: None,
    )
    return w, slow, new_loop(core, w)


def profile_name(record):
    return record.pod.spec.scheduler_name


def new_loop(core, w, **options):
    options = {"turn": asyncio.Lock(), **options}
    return SchedulingLoop(core, clock=ManualClock(w.clock.wall()), ready=w.ready, **options)


async def test_plugins_are_asked_ahead_while_no_pod_is_ready(parts):
    """Not while one is: its own turn asks what it needs."""
    w, slow, _ = parts
    asked, has_asked = [], asyncio.Event()

    def ask_ahead():
        asked.append(list(slow.scheduled))
        has_asked.set()

    core = SimpleNamespace(queue=w.queue, schedule_one=slow, ask_ahead=ask_ahead)
    slow.go_on.set()
    loop = new_loop(core, w)
    for name in ("p0", "p1"):
        w.add_pod(pending(name))
    running = asyncio.create_task(loop.run())
    await has_asked.wait()
    loop.stop()
    await running

    assert [["p0", "p1"]] == asked


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
    async with asyncio.timeout(PATIENCE_SECONDS):
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


async def test_loops_of_two_shards_share_what_wakes_them():
    """Each pops its own pods, and is woken by a pod of either."""
    profile = framework(bind=[Binds()])
    w = make_core(profile, N1, profiles={"a": profile, "b": profile}, shard_of=profile_name)
    slow, turn = Slow(), asyncio.Lock()
    slow.go_on.set()
    core = SimpleNamespace(queue=w.queue, schedule_one=slow, ask_ahead=lambda: None)
    loops = [new_loop(core, w, turn=turn, shard=shard) for shard in "ab"]
    running = [asyncio.create_task(loop.run()) for loop in loops]
    await asyncio.sleep(0)
    w.add_pod(pending("p0", scheduler_name="b"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await slow.began.wait()
    loops[1].stop()
    await running[1]
    w.add_pod(pending("p1", scheduler_name="b"))
    w.add_pod(pending("p2", scheduler_name="a"))
    slow.began.clear()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await slow.began.wait()
    loops[0].stop()
    await running[0]

    assert ["p0", "p2"] == slow.scheduled
    assert w.queue.ready("b")


async def test_pods_wait_while_the_turn_is_taken(parts):
    w, slow, loop = parts
    slow.go_on.set()
    w.add_pod(pending("p0"))
    async with loop._turn:
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [] == slow.scheduled
    await slow.began.wait()
    loop.stop()
    await running


async def test_the_snapshot_follows_while_no_loop_schedules(parts, monkeypatch):
    """A replica that does not lead keeps no ever growing list of what it has not taken over."""
    monkeypatch.setattr("berth.scheduler.loop.scheduling_loop.FOLLOW_SECONDS", 0)
    w, _, _ = parts
    snapshot = w.schedule_one.snapshot
    w.cache.add_pod(make_pod(node_name="n1"))
    following = asyncio.create_task(follow(SimpleNamespace(cache=w.cache, snapshot=snapshot), asyncio.Lock()))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "n1" not in snapshot.row_of:  # noqa: ASYNC110 - looks at a table, which has no event
            await asyncio.sleep(0)
    following.cancel()

    assert [1] == snapshot.pod_count.tolist()
    assert [] == w.cache.node_info("n1").unseen
