"""Cycles that use more CPU than they may: how they end, and that others do not pay for them."""

import pytest

from berth.cycle.budgets import LEAST_SECONDS
from berth.framework.attempts.cycle_budget import TURN_SECONDS
from berth.framework.status import unschedulable
from berth.testing.builders import make_node
from tests.failures.reporting import reports
from tests.fakes import (
    Binds,
    Permits,
    PostFilters,
    PreFilters,
    Rejects,
    Reserves,
    Scores,
    framework,
    make_core,
    pending,
)

N1, N2 = make_node("n1"), make_node("n2")
SLOW = 2 * LEAST_SECONDS


def slow(plugin, method, clocks, seconds=SLOW, name="greedy"):
    """The plugin, whose method takes long for pods of that name."""
    usual = getattr(plugin, method)

    def takes_long(*arguments):
        if any(getattr(a, "name", "") == name for a in arguments):
            clocks[0].seconds += seconds
        return usual(*arguments)

    setattr(plugin, method, takes_long)
    return plugin


def scene(clocks, **points):
    w = make_core(framework(**{"bind": [Binds()], **points}), N1, N2)
    clocks.append(w.clock)
    return w


POINTS = {
    "pre_filter": lambda clocks: slow(PreFilters("Slow"), "pre_filter", clocks),
    "filter": lambda clocks: slow(Rejects("Slow"), "filter", clocks),
    "score": lambda clocks: slow(Scores("Slow", {}), "score", clocks),
    "reserve": lambda clocks: slow(Reserves("Slow"), "reserve", clocks),
    "permit": lambda clocks: slow(Permits("Slow"), "permit", clocks),
}


@reports("over-budget", log="`scheduling cycle exceeded its budget`, with the plugin; `pod held back`")
@pytest.mark.parametrize("point", POINTS)
async def test_a_slow_plugin_is_named(point, caplog):
    """The attempt ends with an error that names the budget and the plugin, and the pod is held back."""
    clocks = []
    w = scene(clocks, **{point: [POINTS[point](clocks)]})
    w.add_pod(pending("greedy"))
    info = await w.turn()

    assert "scheduling cycle exceeded its budget of 0.1s of CPU in Slow" == w.records[0].status.message
    assert "error" == w.records[0].result
    assert "scheduling cycle exceeded its budget pod=default/greedy" in caplog.text
    assert "pod held back pod=default/greedy" in caplog.text
    assert info.held_until >= w.clock.seconds + 100 * SLOW - 1
    assert not w.cache.is_assumed("default-greedy")


async def test_a_slow_post_filter_is_named():
    clocks = []
    rejects = Rejects("No", {"n1": unschedulable("no"), "n2": unschedulable("no")})
    w = scene(
        clocks,
        filter=[rejects],
        post_filter=[slow(PostFilters("Slow", unschedulable("no room")), "post_filter", clocks)],
    )
    w.add_pod(pending("greedy"))
    await w.turn()

    assert "scheduling cycle exceeded its budget of 0.1s of CPU in Slow" == w.records[0].status.message


async def test_others_are_scheduled_between_the_attempts_of_a_greedy_pod():
    """While one pod is held back, pods that come are bound at once, and it is tried again after its time."""
    clocks = []
    w = scene(clocks, filter=[slow(Rejects("Slow"), "filter", clocks)])
    w.add_pod(pending("greedy"))
    await w.turn()
    begun = w.clock.seconds
    tried = []
    for number in range(300):
        w.clock.seconds += 1
        w.queue.flush()
        w.add_pod(pending(f"p{number}"))
        while w.queue.ready():
            tried.append((await w.turn()).pod.name)

    assert [f"p{i}" for i in range(300)] == [name for name in tried if name != "greedy"]
    assert 1 <= tried.count("greedy") <= 3
    assert w.clock.seconds - begun <= 300 + 3 * SLOW


async def test_a_pod_of_another_namespace_is_not_held():
    clocks = []
    w = scene(clocks, filter=[slow(Rejects("Slow"), "filter", clocks)])
    w.add_pod(pending("greedy"))
    await w.turn()
    w.add_pod(pending("modest", namespace="other"))
    await w.turn()

    assert "scheduled" == w.records[-1].result


async def test_an_ordinary_cycle_reads_little_of_the_clock_and_takes_no_turns():
    """However many plugins: CPU is read at the ends of a stretch of work, not for each of them."""
    reads = []

    async def reads_of(count):
        reads.clear()
        w = scene([], filter=[Rejects(f"F{i}") for i in range(count)])
        used = w.clock.cpu
        budgets = w.schedule_one.failure.budgets
        budgets.clock = type(
            "Counting", (), {"monotonic": w.clock.monotonic, "cpu": lambda _: reads.append(1) or used()}
        )()
        w.add_pod(pending())
        info = w.queue.pop()
        cycle = w.schedule_one.schedule(info)
        with pytest.raises(StopIteration):
            cycle.send(None)  # it never waits
        w.background.run()
        return len(reads)

    assert await reads_of(1) == await reads_of(50) <= 4


async def test_a_long_cycle_gives_others_their_turn():
    """Between plugins, once enough work has added up."""
    turns = []
    clocks = []
    filters = [slow(Rejects(f"F{i}"), "filter", clocks, TURN_SECONDS * 1.5, "p0") for i in range(4)]
    w = scene(clocks, filter=filters)

    async def breathe():
        turns.append(w.clock.seconds)

    w.background.breathe = breathe
    w.add_pod(pending())
    await w.turn()

    assert 4 <= len(turns)
    assert "scheduled" == w.records[0].result
