"""Calls in ttrpc's frames: answered where they were read, and as over gRPC."""

import asyncio
import stat
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import numpy as np
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from berth.out_of_tree.transport.conversation import Conversation
from berth.out_of_tree.transport.rpc import RpcError
from berth.out_of_tree.transport.ttrpc import Ttrpc
from berth_plugin_proto import common_pb2, scheduling_pb2, ttrpc_pb2
from berth_sdk import Plugin, Server, Tracing, current_call
from berth_sdk.dispatch import Dispatch
from berth_sdk.session import Session
from berth_sdk.testing import Host, make_node, make_pod, running
from berth_sdk.ttrpc import HEADER, LONGEST_PATH, Connection
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS

SERVICE = "berth.plugin.v1.SchedulingService"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Red(Plugin):
    name = "red"

    def filter(self, _pod, node):
        return None if node.labels.get("colour") == "red" else "node(s) were not red"


class Slow(Plugin):
    name = "slow"

    def __init__(self):
        self.go = asyncio.Event()

    async def pre_filter(self, _pod):
        await self.go.wait()

    def filter(self, pod, _node):
        return None if current_call().key.uid == pod.uid else "another pod's call"


@asynccontextmanager
async def both_ways(plugin, **options):
    """A host that is connected over gRPC, and the scheduling service over ttrpc."""
    nodes = make_node("a", labels={"colour": "red"}), make_node("b")
    async with running(plugin, *nodes, **options) as host, dialled(host) as connection:
        yield host, connection.service("SchedulingService")


@asynccontextmanager
async def dialled(host):
    """A connection to the second socket."""
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_unix_connection(
        lambda: Ttrpc("under test"), await second_socket(host)
    )
    yield connection
    transport.close()


async def second_socket(host):
    """Where the plugin announces it."""
    name = (await host.handshake()).capabilities.ttrpc_socket
    return str(Path(host.address.removeprefix("unix:")).with_name(name))


def asking(host, **changes):
    """A request about a pod."""
    call = host.call(make_pod("p"))
    for field, value in changes.items():
        setattr(call, field, value)
    return scheduling_pb2.FilterRequest(call=call)


class Written:
    """A transport that keeps what is written."""

    def __init__(self):
        self.frames = []
        self.aborted = False

    def set_write_buffer_limits(self, high):
        self.high = high

    def write(self, data):
        self.frames.append(data)

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True


def frame(number=1, method="Filter", payload=b"", timeout_nano=0, **header):
    """A request as it travels."""
    message = ttrpc_pb2.TtrpcRequest(
        service=SERVICE, method=method, payload=payload, timeout_nano=timeout_nano
    ).SerializeToString()
    length, kind = header.get("length", len(message)), header.get("kind", 1)
    return HEADER.pack(length, number, kind, 0) + message


def connected(plugin):
    """A connection that was just made, its session and its transport."""
    session, transport = Session(plugin), Written()
    connection = Connection(Dispatch(session, Tracing("x", "1")), set())
    connection.connection_made(transport)
    return connection, session, transport


def statuses(transport):
    """Stream id and code of each answer."""
    found = []
    for data in transport.frames:
        _, number, _, _ = HEADER.unpack_from(data)
        response = ttrpc_pb2.TtrpcResponse.FromString(data[HEADER.size :])
        found.append((number, response.status.code))
    return found


async def test_an_answer_is_the_same_as_over_grpc():
    """Only the way differs."""
    async with both_ways(Red()) as (host, scheduling):
        request = asking(host)

        assert await host.scheduling.Filter(request) == await scheduling.Filter(
            request, timeout=PATIENCE_SECONDS
        )


async def test_a_call_that_need_not_wait_is_answered_where_it_was_read():
    """No turn of the loop lies between the two, and so no task."""
    connection, _, transport = connected(Red())
    request = scheduling_pb2.UnreserveRequest().SerializeToString()

    connection.data_received(frame(7, "Unreserve", request))

    assert [(7, 0)] == statuses(transport)


@pytest.mark.parametrize("size", [1, 3, 9, 10, 11, 64, 4096])
async def test_frames_come_in_pieces(size):
    """However the bytes are cut, each call is answered once and in order."""
    connection, _, transport = connected(Red())
    data = b"".join(frame(number, "Unreserve") for number in (1, 3, 5))

    for start in range(0, len(data), size):
        connection.data_received(data[start : start + size])

    assert [(1, 0), (3, 0), (5, 0)] == statuses(transport)


async def test_a_call_waits_for_its_generation():
    """One that came before its step is answered after it, and holds up no other."""
    async with both_ways(Red()) as (host, scheduling):
        early = scheduling.Filter(
            asking(host, generation=host.cluster.generation + 1), timeout=PATIENCE_SECONDS
        )
        await scheduling.Filter(asking(host), timeout=PATIENCE_SECONDS)
        assert not early.done()
        host.cluster.put_node(make_node("c"))
        await host.update()

        assert host.cluster.generation == (await early).generation


async def test_a_function_that_waits_has_a_task_and_its_call():
    """What `current_call` says of a call is its own, though others are answered meanwhile."""
    plugin = Slow()
    async with both_ways(plugin) as (host, scheduling):
        waiting = scheduling.Filter(asking(host), timeout=PATIENCE_SECONDS)
        await scheduling.Unreserve(
            scheduling_pb2.UnreserveRequest(call=host.call(make_pod("other"))), timeout=PATIENCE_SECONDS
        )
        plugin.go.set()
        answer = await waiting

    assert not answer.verdicts.reasons


async def test_a_deadline_ends_a_call_that_waits():
    """The host need not be there to hear of it."""
    async with both_ways(Slow()) as (host, _):
        reader, writer = await asyncio.open_unix_connection(await second_socket(host))
        payload = asking(host).SerializeToString()
        writer.write(frame(payload=payload, timeout_nano=1))
        length, *_ = HEADER.unpack(await reader.readexactly(HEADER.size))
        answer = ttrpc_pb2.TtrpcResponse.FromString(await reader.readexactly(length))
        writer.close()

    assert grpc.StatusCode.DEADLINE_EXCEEDED.value[0] == answer.status.code


async def refusal(answer):
    with pytest.raises(RpcError) as refused:
        await answer
    return refused.value


async def test_a_refusal_says_why():
    """Code, reason and text are those of gRPC."""
    async with both_ways(Red()) as (host, scheduling):
        refused = await refusal(scheduling.Filter(asking(host, epoch="another"), timeout=PATIENCE_SECONDS))

    assert (grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED") == (refused.code, refused.reason)
    assert "another" in refused.text


@pytest.mark.parametrize(
    ("method", "payload", "code"),
    [
        pytest.param("Guess", b"", grpc.StatusCode.UNIMPLEMENTED, id="no such method"),
        pytest.param("Converse", b"", grpc.StatusCode.UNIMPLEMENTED, id="a stream"),
        pytest.param("Filter", b"\xff", grpc.StatusCode.INVALID_ARGUMENT, id="no message"),
        pytest.param("Filter", b"", grpc.StatusCode.FAILED_PRECONDITION, id="no profile"),
    ],
)
async def test_calls_that_are_refused_leave_the_connection_up(method, payload, code):
    """Each has its code, and the next call its answer."""
    connection, _, transport = connected(Red())

    connection.data_received(frame(1, method, payload) + frame(3, "Unreserve"))

    assert [(1, code.value[0]), (3, 0)] == statuses(transport)
    assert not transport.aborted


@reports("sdk-frame-wrong", log="`ttrpc connection ended`, with the cause")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(length=(4 << 20) + 1), id="too long"),
        pytest.param(frame(kind=2), id="a response"),
        pytest.param(frame(kind=3), id="a stream's data"),
        pytest.param(frame(number=2), id="an even stream"),
        pytest.param(HEADER.pack(3, 1, 1, 0) + b"\xff\xff\xff", id="no message"),
    ],
)
async def test_a_frame_that_does_not_belong_there_ends_the_connection(data, caplog):
    """There is no saying where the next one begins."""
    connection, _, transport = connected(Red())

    connection.data_received(data)

    assert transport.aborted
    assert [] == transport.frames
    assert 1 == caplog.text.count("ttrpc connection ended err=")


async def test_nothing_is_read_while_answers_pile_up():
    """A host that does not read is not read from."""
    connection, _, transport = connected(Red())

    connection.pause_writing()
    paused = transport.reads
    connection.resume_writing()

    assert (False, True) == (paused, transport.reads)


async def test_spans_are_the_hosts_children():
    """The trace context travels in the frame's metadata."""
    exporter = InMemorySpanExporter()
    tracing = Tracing("red", "1", [exporter])
    async with both_ways(Red(), tracing=tracing) as (host, scheduling):
        metadata = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)
        await scheduling.Filter(asking(host), timeout=PATIENCE_SECONDS, metadata=metadata)
        tracing.shutdown()

    assert [("red/Filter", int(PARENT, 16))] == [
        (span.name, span.parent.span_id) for span in exporter.get_finished_spans()
    ]


async def test_the_second_socket_is_as_private_as_the_first(tmp_path):
    """It is announced by its name, and gone with the server."""
    server = Server(Red(), f"unix:{tmp_path}/x.sock")
    await server.start()
    host = Host(server.address)
    second = tmp_path / (await host.handshake()).capabilities.ttrpc_socket
    mode = stat.S_IMODE(second.stat().st_mode)
    await host.close()
    await server.stop(0)

    assert ("x.sock.ttrpc", 0o600) == (second.name, mode)
    assert not second.exists()


class Held(Plugin):
    """Its PreEnqueue lasts until it is let go."""

    name = "held"

    def __init__(self):
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def pre_enqueue(self, _pod):
        self.begun.set()
        await self.go.wait()


async def test_both_sockets_stop_at_once(tmp_path):
    """A call that runs over gRPC does not keep the second socket open, and still ends."""
    plugin = Held()
    server = Server(plugin, f"unix:{tmp_path}/x.sock")
    await server.start()
    host = Host(server.address)
    await host.connect()
    second = tmp_path / "x.sock.ttrpc"
    asking = asyncio.create_task(host.pre_enqueue(make_pod("p")))
    await plugin.begun.wait()
    stopping = asyncio.create_task(server.stop(60))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while second.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.001)
    open_calls = (asking.done(), stopping.done())
    plugin.go.set()
    await asking
    await stopping
    await host.close()

    assert (False, False) == open_calls


@reports("sdk-path-too-long", log="`ttrpc is not served, the path is too long`; gRPC is")
async def test_a_path_that_is_too_long_for_a_second_socket(tmp_path, caplog):
    """The plugin serves gRPC, and announces that alone."""
    folder = tmp_path / ("x" * (LONGEST_PATH - len(str(tmp_path)) - len("/" + "/x.sock")))
    server = Server(Red(), f"unix:{folder}/x.sock")
    await server.start()
    host = Host(server.address)
    announced = (await host.handshake()).capabilities
    await host.close()
    await server.stop(0)

    assert not announced.HasField("ttrpc_socket")
    assert f"ttrpc is not served, the path is too long path={folder}/x.sock.ttrpc" in caplog.messages


class Patient(Plugin):
    """Waits a moment, under a timeout of its own."""

    name = "patient"

    async def pre_filter(self, _pod):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.sleep(0)

    async def filter_nodes(self, _pod, nodes):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return np.ones(len(nodes), np.bool_)


@pytest.mark.parametrize("over", ["ttrpc", "a stream"])
async def test_what_waits_has_a_task_of_its_own(over):
    """A timeout of the author's ends that call's waiting and nothing else."""
    async with both_ways(Patient()) as (host, scheduling), conversing(host) as conversation:
        way = scheduling if over == "ttrpc" else conversation
        answers = await asyncio.gather(
            *(way.Filter(asking(host), timeout=PATIENCE_SECONDS) for _ in range(5))
        )

    assert [common_pb2.CODE_SUCCESS] * 5 == [each.status.code for each in answers]


@asynccontextmanager
async def conversing(host):
    """The scheduling service over one gRPC stream."""
    conversation = Conversation(host.scheduling, together=True)
    reading = asyncio.create_task(conversation.run())
    yield conversation
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


async def test_calls_of_a_stream_that_need_not_wait_have_no_task():
    """They are answered as they are read, those of one message together."""
    async with both_ways(Red()) as (host, _), conversing(host) as conversation:
        await conversation.Filter(asking(host), timeout=PATIENCE_SECONDS)
        made = []
        asyncio.get_running_loop().set_task_factory(noting(made))
        await asyncio.gather(*(conversation.Filter(asking(host), timeout=PATIENCE_SECONDS) for _ in range(9)))
        asyncio.get_running_loop().set_task_factory(None)

    assert made
    assert not [name for name in made if "Server._reply" in name]


def noting(made):
    """What makes tasks, and notes of what."""

    def factory(loop, coroutine, **options):
        made.append(coroutine.__qualname__)
        return asyncio.Task(coroutine, loop=loop, **options)

    return factory


class Broken(Dispatch):
    """A mock of a bug: none of the SDK's is known."""

    async def call(self, *_):
        raise LookupError("a bug")


@reports("sdk-call-breaks", log="`call failed`, with a traceback")
async def test_a_call_that_breaks(caplog):
    """The host learns its type alone; where it broke is in the plugin's own log."""
    connection, transport = Connection(Broken(Session(Red()), Tracing("x", "1")), set()), Written()
    connection.connection_made(transport)
    connection.data_received(frame(1, "Filter"))

    assert [(1, grpc.StatusCode.UNKNOWN.value[0])] == statuses(transport)
    assert "call failed call=Filter" in caplog.text
    assert "LookupError: a bug" in caplog.text
