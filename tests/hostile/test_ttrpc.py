"""Plugins that send what is no answer on their ttrpc socket: the connection ends in words, others stay."""

import asyncio

import pytest

from berth.out_of_tree import limits
from berth.out_of_tree.errors import CallFailedError, SidecarError
from berth.out_of_tree.transport.ttrpc import HEADER, REQUEST, RESPONSE, TtrpcFrames
from berth_plugin_proto import ttrpc_pb2
from tests.hostile.work import growth, kept_bytes
from tests.unit.out_of_tree.scripted import framed, hosted, until
from tests.unit.out_of_tree.transport.test_ttrpc import asked, connected, scripted

MORE_THAN_LINEAR = 1.2
NOTHING = ttrpc_pb2.TtrpcResponse()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of", id="another protocol"),
        pytest.param(HEADER.pack(limits.MESSAGE_BYTES + 1, 1, RESPONSE, 0), "4194305 bytes", id="too long"),
        pytest.param(HEADER.pack(0xFFFFFFFF, 1, RESPONSE, 0), "4294967295 bytes", id="endless"),
        pytest.param(HEADER.pack(0, 1, REQUEST, 0), "type 1", id="a request"),
        pytest.param(HEADER.pack(0, 1, 3, 0), "type 3", id="a stream's data"),
        pytest.param(HEADER.pack(3, 1, RESPONSE, 0) + b"\xff\xff\xff", "Error parsing", id="no message"),
        pytest.param(framed(3, NOTHING), "not made", id="of a call that comes later"),
        pytest.param(framed(2, NOTHING), "not made", id="of an even stream"),
        pytest.param(framed(1, NOTHING) * 2, "not made", id="twice"),
    ],
)
async def test_what_ends_the_connection(data, says):
    """It says why, to the calls that wait as well."""
    connection, wire = connected()
    asked(connection)

    connection.data_received(data)

    assert wire.aborted
    assert says in str(connection.ended.result())


@pytest.mark.parametrize(
    "data",
    [b"garbage of many kinds", HEADER.pack(0xFFFFFFFF, 1, RESPONSE, 0), framed(99, NOTHING)],
    ids=["garbage", "endless", "unknown"],
)
async def test_the_plugin_is_greeted_again_and_asked(data):
    """One bad frame costs one connection; what it was asked fails in words."""
    plugin = scripted()

    async def broken(reader, writer):
        await reader.readexactly(HEADER.size)
        plugin.on_ttrpc = None
        writer.write(data)
        await reader.read()

    plugin.on_ttrpc = broken
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(CallFailedError, match="on its ttrpc socket"):
            await harness.filter()
        await until(lambda: harness.connection.starts == 2 and harness.connection.ready)

        assert [0, 0, 0] == (await harness.filter()).tolist()


async def test_half_a_frame_holds_up_its_own_plugin_alone():
    """Calls run out of time, and after three the host hangs up; a plugin beside it is asked all the while."""
    stalls, other = scripted(), scripted()

    async def half(reader, writer):
        await reader.readexactly(HEADER.size)
        writer.write(HEADER.pack(1000, 1, RESPONSE, 0) + b"half")
        await asyncio.Event().wait()

    stalls.on_ttrpc = half
    async with hosted(stalls, timeout_seconds=0.05) as harness, hosted(other) as beside:
        await harness.up()
        await beside.up()
        for _ in range(3):
            with pytest.raises(SidecarError):
                await harness.filter()
            assert [0, 0, 0] == (await beside.filter()).tolist()

        assert "3 calls in a row were not answered" in harness.connection.last_error


async def test_a_plugin_that_never_reads_is_hung_up_on():
    """What it was not sent is bounded (unit/out_of_tree/transport/test_ttrpc.py); it is greeted again."""
    plugin = scripted()

    async def never(_reader, _writer):
        await asyncio.Event().wait()

    plugin.on_ttrpc = never
    async with hosted(plugin, timeout_seconds=0.05) as harness:
        await harness.up()
        for _ in range(3):
            with pytest.raises(SidecarError):
                await harness.filter()

        assert "3 calls in a row were not answered" in harness.connection.last_error


def in_bytes(size):
    """A frame of that many bytes, brought one at a time."""
    data, frames = HEADER.pack(size, 1, RESPONSE, 0) + bytes(size), TtrpcFrames(RESPONSE)
    return lambda: [found for at in range(len(data)) for found in frames.feed(data[at : at + 1])]


def test_a_frame_byte_by_byte():
    """Work grows with the bytes, not with their square."""
    assert growth(in_bytes, 2_000) < MORE_THAN_LINEAR


def test_no_more_than_a_frame_is_kept():
    """What is not whole is kept once, and what was whole is not."""
    frames = TtrpcFrames(RESPONSE)
    whole, half = HEADER.pack(1000, 1, RESPONSE, 0) + bytes(1000), HEADER.pack(1000, 1, RESPONSE, 0)

    def feed():
        for _ in range(1000):
            list(frames.feed(half))
            list(frames.feed(whole[HEADER.size :]))
        list(frames.feed(half))

    assert kept_bytes(feed, times=1) < len(whole)
