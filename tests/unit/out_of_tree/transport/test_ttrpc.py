"""Calls over ttrpc, as the host makes them: which way they go, what becomes of them, and what ends it."""

import asyncio
from pathlib import Path

import grpc
import pytest

from berth.out_of_tree import limits
from berth.out_of_tree.errors import CallFailedError, LateError
from berth.out_of_tree.transport import ttrpc
from berth.out_of_tree.transport.rpc import RpcError
from berth.out_of_tree.transport.ttrpc import Ttrpc
from berth_plugin_proto import identity_pb2, scheduling_pb2, ttrpc_pb2
from tests.suite import PATIENCE_SECONDS
from tests.unit.out_of_tree.scripted import NAME, Scripted, cycle, hosted, passing, until

SECOND = "p.sock.ttrpc"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
POINTS = (
    identity_pb2.EXTENSION_POINT_FILTER,
    identity_pb2.EXTENSION_POINT_SCORE,
    identity_pb2.EXTENSION_POINT_QUEUEING_HINTS,
)


def scripted(**capabilities):
    """A plugin that serves both sockets and lets every node pass."""
    plugin = Scripted(*POINTS, ttrpc_socket=SECOND, **capabilities)
    plugin.replies["FilterScore"] = lets_pass
    return plugin


async def lets_pass(request, _context):
    return passing(request)


def refusing(code, text, reason=""):
    """An answer that says no."""
    status = ttrpc_pb2.TtrpcStatus(code=code.value[0], message=text)
    if reason:
        info = ttrpc_pb2.TtrpcErrorInfo(reason=reason, domain="berth")
        status.details.add(type_url="type.googleapis.com/something.Else", value=b"\xff")
        status.details.add(type_url=ERROR_INFO, value=info.SerializeToString())
    return ttrpc_pb2.TtrpcResponse(status=status)


async def test_calls_go_over_the_second_socket():
    """The call names its service and method, its deadline, and the trace that it belongs to."""
    plugin = scripted()
    async with hosted(plugin, timeout_seconds=5) as harness:
        await harness.up()
        await harness.filter(state=cycle())

    (frame,) = plugin.frames
    assert ("berth.plugin.v1.SchedulingService", "FilterScore") == (frame.service, frame.method)
    assert 0 < frame.timeout_nano <= 5 * 10**9
    assert ["traceparent"] == [each.key for each in frame.metadata]


async def test_a_plugin_that_announces_no_second_socket_is_asked_over_grpc():
    """It need not know of ttrpc."""
    plugin = Scripted(*POINTS)
    plugin.replies["FilterScore"] = lets_pass
    async with hosted(plugin) as harness:
        await harness.up()
        await harness.filter()

    assert [] == plugin.frames
    assert 1 == len(plugin.requests("FilterScore"))


async def test_a_failed_precondition_is_mended_and_the_call_repeated():
    """The reason stands in the status' ErrorInfo."""
    plugin, asked = scripted(), []

    async def not_configured(request, _context):
        asked.append(request)
        if len(asked) == 1:
            return refusing(grpc.StatusCode.FAILED_PRECONDITION, "who?", "NOT_CONFIGURED")
        return passing(request)

    plugin.replies["FilterScore"] = not_configured
    async with hosted(plugin) as harness:
        await harness.up()
        await harness.filter()

    assert [2, 2] == [len(asked), len(plugin.requests("Configure"))]


async def test_an_error_is_the_calls_failure():
    """With its code and its text; the connection stays."""
    plugin = scripted()

    async def broken(_request, _context):
        return refusing(grpc.StatusCode.INTERNAL, "on fire")

    plugin.replies["FilterScore"] = broken
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(CallFailedError, match="FilterScore failed: INTERNAL: on fire"):
            await harness.filter()
        assert 1 == harness.connection.starts


async def test_an_answer_that_comes_too_late_is_dropped():
    """The call failed at its deadline, and the next one is answered."""
    plugin, answered = scripted(), asyncio.Event()

    async def late(request, _context):
        await answered.wait()
        return passing(request)

    plugin.replies["FilterScore"] = late
    async with hosted(plugin, timeout_seconds=0.05) as harness:
        await harness.up()
        with pytest.raises(LateError):
            await harness.filter()
        answered.set()
        harness.allow()
        codes = await harness.filter()
        connection = harness.connection.stub("Filter")._connection

    assert [0, 0, 0] == codes.tolist()
    assert {} == connection._waiting


async def test_the_plugin_is_greeted_again_where_the_second_socket_breaks():
    """Both sockets are one connection; calls that wait fail at once."""
    plugin = scripted()

    async def hangs(_request, _context):
        plugin.writers[-1].close()
        await asyncio.Event().wait()

    plugin.replies["FilterScore"] = hangs
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(CallFailedError, match="its ttrpc socket was closed"):
            await harness.filter()
        await until(lambda: harness.connection.starts == 2)
        plugin.replies["FilterScore"] = lets_pass
        await until(lambda: harness.connection.ready)
        assert [0, 0, 0] == (await harness.filter()).tolist()


async def test_a_second_socket_that_others_may_write_to_is_not_dialled():
    """It is looked at as the first one is."""
    plugin = scripted()
    async with hosted(plugin) as harness:
        await harness.up()
        Path(harness.connection.spec.address.removeprefix("unix:")).with_name(SECOND).chmod(0o666)
        harness.connection.disconnect("to dial anew")
        await until(lambda: "others may write" in harness.connection.last_error)

        assert not harness.connection.ready


@pytest.mark.parametrize(
    "name", ["../p.sock", "a/b", ".hidden", "", "another.sock", "x" * 65], ids=lambda name: name[:12]
)
async def test_names_that_are_no_file_beside_the_first(name):
    """The plugin is refused with a message."""
    plugin = Scripted(*POINTS)
    plugin.capabilities.ttrpc_socket = name
    plugin.replies["Handshake"].capabilities.CopyFrom(plugin.capabilities)
    plugin.capabilities.ClearField("ttrpc_socket")
    async with hosted(plugin) as harness:
        await until(lambda: harness.connection.refusal)

    assert "its ttrpc socket is not the name of a file" in harness.connection.refusal


# -- the connection by itself -----


class Wire:
    """The other end, where nothing is read."""

    def __init__(self):
        self.written = []
        self.aborted = False

    def set_write_buffer_limits(self, high):
        self.high = high

    def write(self, data):
        self.written.append(data)

    def abort(self):
        self.aborted = True


def connected():
    """A connection that was just made, and its transport."""
    connection, wire = Ttrpc(NAME), Wire()
    connection.connection_made(wire)
    return connection, wire


def asked(connection, **fields):
    """A call's answer in future."""
    request = scheduling_pb2.ReserveRequest(**fields)
    return connection.service("SchedulingService").Reserve(request, timeout=PATIENCE_SECONDS)


async def refusal(answer):
    with pytest.raises(RpcError) as refused:
        await answer
    return refused.value


async def test_stream_ids_are_odd_and_grow():
    """As ttrpc's clients have them."""
    connection, wire = connected()
    for _ in range(3):
        asked(connection)

    assert [1, 3, 5] == [ttrpc.HEADER.unpack_from(frame)[1] for frame in wire.written]


async def test_no_more_requests_than_a_bound_are_unanswered():
    """What is beyond fails at once."""
    connection, wire = connected()
    for _ in range(limits.UNANSWERED):
        asked(connection)
    refused = await refusal(asked(connection))

    assert (grpc.StatusCode.RESOURCE_EXHAUSTED, limits.UNANSWERED) == (refused.code, len(wire.written))


async def test_nothing_is_written_to_a_plugin_that_does_not_read():
    """Until it has read some of it."""
    connection, wire = connected()
    connection.pause_writing()
    refused = await refusal(asked(connection))
    connection.resume_writing()
    asked(connection)

    assert (grpc.StatusCode.RESOURCE_EXHAUSTED, 1) == (refused.code, len(wire.written))


async def test_calls_fail_once_the_connection_ended():
    """Those that wait, and those that come."""
    connection, _ = connected()
    waiting = asked(connection)
    connection.connection_lost(ConnectionResetError("reset"))
    codes = [(await refusal(each)).code for each in (waiting, asked(connection))]

    assert [grpc.StatusCode.UNAVAILABLE] * 2 == codes


async def test_calls_fail_once_the_host_hung_up():
    """They do not wait for the other end to notice."""
    connection, wire = connected()
    waiting = asked(connection)
    connection.close()
    codes = [(await refusal(each)).code for each in (waiting, asked(connection))]

    assert [grpc.StatusCode.UNAVAILABLE] * 2 == codes
    assert (1, True) == (len(wire.written), wire.aborted)


async def test_a_caller_that_went_away_is_forgotten_with_the_answer():
    """An answer that is not awaited any more is no error."""
    connection, wire = connected()
    asked(connection).cancel()
    connection.data_received(ttrpc.HEADER.pack(0, 1, ttrpc.RESPONSE, 0))

    assert ({}, False) == (connection._waiting, wire.aborted)
