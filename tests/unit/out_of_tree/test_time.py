"""A host with a time of its own says it to plugins that use the clock, and hears when to wake them."""

import pytest

from berth_plugin_proto import state_pb2
from berth_sdk import sync
from tests.unit.out_of_tree.scripted import until
from tests.unit.replay.kit import NAME, Teams, at_work

NOON_MICROS = 1_800_000_000_000_000


class Clocked(Teams):
    """A plugin that uses the clock."""

    uses_clock = True


async def test_a_connection_that_is_lost_begins_with_the_time():
    """The plugin holds the host's time before anything else, and its timers are those that it had."""
    plugin = Clocked()
    async with at_work(plugin, "n0") as harness:
        connection = harness.host.connections[NAME]
        await connection.reach(NOON_MICROS)
        plugin.clock.after(60, lambda: None)

        connection.disconnect("a test")
        await until(lambda: connection.starts == 2)

        assert NOON_MICROS == plugin.clock.now() * 1_000_000
        reached = await connection.reach(NOON_MICROS)
        assert NOON_MICROS + 60_000_000 == reached.wake_at_unix_micros


async def test_a_plugin_without_the_clock_is_said_nothing():
    """It goes on as it did before there was one."""
    async with at_work(Teams(), "n0") as harness:
        connection = harness.host.connections[NAME]

        assert await connection.reach(NOON_MICROS) is None
        assert 1 == connection.starts


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param({"unix_micros": 1}, "holds time 1, ", id="another time"),
        pytest.param(
            {"unix_micros": NOON_MICROS, "wake_at_unix_micros": NOON_MICROS},
            "wants to be woken at",
            id="a timer that is due already",
        ),
    ],
)
async def test_an_answer_that_is_none_ends_the_connection(monkeypatch, answer, said):
    """The text says what was wrong, and a call that waits for the time does not wait for ever."""
    async with at_work(Clocked(), "n0") as harness:
        connection = harness.host.connections[NAME]
        wrong = state_pb2.SyncResponse(time_reached=state_pb2.TimeReached(**answer))
        monkeypatch.setattr(sync.Stream, "_time", lambda _stream, _micros: wrong)

        assert await connection.reach(NOON_MICROS) is None
        await until(lambda: said in connection.last_error)
