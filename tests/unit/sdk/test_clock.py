"""A plugin's clock: the machine's until the scheduler says the time, and never one that jumps."""

import asyncio

import pytest

from berth_plugin_proto import state_pb2
from berth_sdk import Clock, Plugin
from berth_sdk.testing import make_node, make_pod, running
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS

NOON = 1_800_000_000.0


class Alarms(Plugin):
    """Turns pods down before a time, and writes down when its timers ran."""

    name = "alarms"
    uses_clock = True

    def __init__(self):
        self.rang = []

    def filter(self, pod, node):
        del pod, node
        return None if self.clock.now() >= NOON else "node(s) are closed before noon"

    def alarm(self, seconds, then=()):
        def ring():
            self.rang.append(self.clock.now())
            for each in then:
                self.alarm(each)

        return self.clock.after(seconds, ring)


@pytest.fixture
async def kit():
    plugin = Alarms()
    async with running(plugin, make_node("n")) as host:
        yield plugin, host


async def test_answers_follow_the_time_that_is_said(kit):
    """The clock stands at the scheduler's time, whatever the machine's is."""
    _, host = kit

    await host.set_time(NOON - 1)
    assert {"n"} == (await host.filter(make_pod("p"))).nodes.keys()
    await host.set_time(NOON)
    assert {} == (await host.filter(make_pod("p"))).nodes


async def test_each_timer_runs_at_its_own_time(kit):
    """Those that are due by then run in the order of their times, also those that one of them sets."""
    plugin, host = kit
    await host.set_time(NOON)
    plugin.alarm(60)
    plugin.alarm(10, then=[5, 500])
    plugin.alarm(20).cancel()

    assert NOON + 510 == await host.set_time(NOON + 100)
    assert [NOON + 10, NOON + 15, NOON + 60] == plugin.rang
    assert await host.set_time(NOON + 600) is None


async def test_a_timer_that_sets_itself_at_once_is_due_later(kit):
    """The time that a plugin asks for is always ahead of the one that it holds."""
    plugin, host = kit
    await host.set_time(NOON)
    plugin.alarm(0)

    assert await host.set_time(NOON) > NOON
    assert [] == plugin.rang


async def test_timers_outlive_the_stream(kit):
    """A stream that breaks takes nothing along: on the next one the host hears when to wake the plugin."""
    plugin, host = kit
    await host.set_time(NOON)
    plugin.alarm(60)

    await host.open()
    assert NOON + 60 == await host.set_time(NOON)
    for message in host.cluster.transfer(host.epoch):
        await host._stream.write(message)
    await host._acknowledged()
    await host.set_time(NOON + 60)
    assert [NOON + 60] == plugin.rang


@pytest.mark.parametrize("earlier", [NOON - 86400, NOON - 1])
async def test_another_count_keeps_what_is_left_of_timers(kit, earlier):
    """A time before the one that is held is that of another run: timers wait as long as they had to."""
    plugin, host = kit
    await host.set_time(NOON)
    plugin.alarm(60)

    assert earlier + 60 == await host.set_time(earlier)
    assert [] == plugin.rang


async def test_a_stream_without_time_gives_the_machines_back(kit):
    """After a simulation the plugin serves a scheduler, whose time is the machine's."""
    plugin, host = kit
    await host.set_time(NOON)
    rang = asyncio.Event()
    plugin.clock.after(0.001, rang.set)

    await host.sync()

    await asyncio.wait_for(rang.wait(), PATIENCE_SECONDS)
    assert plugin.clock.now() != NOON


@reports("sdk-timer-fails", log="`timer failed`, with a traceback; the others ring")
async def test_a_timer_that_fails_leaves_the_others(kit, caplog):
    """What it raises is logged."""
    plugin, host = kit
    await host.set_time(NOON)
    plugin.clock.after(1, lambda: 1 / 0)
    plugin.alarm(2)

    await host.set_time(NOON + 2)

    assert [NOON + 2] == plugin.rang
    assert "timer failed" in caplog.text


async def test_no_time_is_said_to_a_plugin_without_the_clock():
    """A plugin that has not announced it refuses the message as one that does not belong there."""
    plugin = Alarms()
    plugin.uses_clock = False
    async with running(plugin, make_node("n")) as host:
        answer = await host.send(state_pb2.SyncRequest(time=state_pb2.Time(unix_micros=1)))

    assert state_pb2.NACK_REASON_OUT_OF_ORDER == answer.nack.reason


@pytest.mark.parametrize("jump", [-86400.0, 86400.0], ids=["back", "forth"])
def test_a_jump_of_the_machines_clock_is_none_of_the_plugins(jump):
    """Durations are right, whatever is done to the machine's clock meanwhile."""
    wall, steady = [NOON], [100.0]
    clock = Clock(wall=lambda: wall[0], steady=lambda: steady[0])
    wall[0] += jump
    steady[0] += 5

    assert NOON + 5 == clock.now()


async def test_timers_of_the_machines_time_run_when_they_are_due():
    """Without a scheduler that says the time, the event loop wakes the plugin."""
    plugin, rang = Alarms(), asyncio.Event()
    plugin.clock.after(0.001, rang.set)

    async with running(plugin, make_node("n")):
        await asyncio.wait_for(rang.wait(), PATIENCE_SECONDS)
