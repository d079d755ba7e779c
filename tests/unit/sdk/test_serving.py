"""Sockets, health, tracing, and the two copies of the stubs."""

import asyncio
import json
import stat

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from berth_plugin_proto import queueing_pb2, scheduling_pb2
from berth_plugin_proto import scheduling_pb2 as core_pb2
from berth_sdk import AddressError, Plugin, SdkError, Server, Tracing, serve
from berth_sdk.dispatch import LONGEST_ERROR, failure_of
from berth_sdk.errors import ContractError, TraceError
from berth_sdk.serving import READINESS
from berth_sdk.testing import Host, make_node, make_pod, running
from berth_sdk.trace_file import FileSpanExporter
from berth_sdk.tracing import _otlp
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Passes(Plugin):
    name = "passes"

    def filter(self, _pod, _node):
        return None


async def health(host, service=""):
    stub = health_pb2_grpc.HealthStub(host.channel)
    return (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status


async def test_alive_before_ready(tmp_path):
    """Liveness is there from the start; readiness comes with configuration and state."""
    server = Server(Passes(), f"unix:{tmp_path}/x.sock")
    await server.start()
    host = Host(server.address)
    assert (SERVING, NOT_SERVING) == (await health(host), await health(host, READINESS))

    await host.connect()
    watch = health_pb2_grpc.HealthStub(host.channel).Watch(health_pb2.HealthCheckRequest(service=READINESS))
    async for answer in watch:
        if answer.status == SERVING:
            break
    watch.cancel()
    await host.close()
    await server.stop(0)


async def test_socket_is_shared(tmp_path, monkeypatch):
    """A socket that is shared, and its new directory, are open to the group and to no others."""
    monkeypatch.setenv("BERTH_PLUGIN_SOCKET_SHARED", "true")
    server = Server(Passes(), f"unix:{tmp_path}/new/x.sock")
    await server.start()
    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("new", "new/x.sock")]
    await server.stop(0)

    assert [0o750, 0o660] == modes


async def test_socket_is_private(tmp_path):
    """A new directory is the owner's alone, and so is the socket; both copies of a path work."""
    server = Server(Passes(), f"unix://{tmp_path}/new/x.sock")
    await server.start()
    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("new", "new/x.sock")]
    await server.stop(0)

    assert [0o700, 0o600] == modes
    assert not (tmp_path / "new/x.sock").exists()


async def test_a_dead_socket_is_replaced(tmp_path):
    """What a killed process left behind does not stand in the way."""
    address = f"unix:{tmp_path}/x.sock"
    first = Server(Passes(), address)
    await first.start()
    (tmp_path / "x.sock").rename(tmp_path / "dead.sock")
    await first.stop(0)
    (tmp_path / "dead.sock").rename(tmp_path / "x.sock")

    second = Server(Passes(), address)
    await second.start()
    try:
        _, writer = await asyncio.open_unix_connection(tmp_path / "x.sock")
        writer.close()
        assert (tmp_path / "x.sock").is_socket()
    finally:
        await second.stop(0)


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        pytest.param("127.0.0.1:0", "without certificates", id="plain TCP"),
        pytest.param("unix:{folder}/file", "no socket", id="a file"),
        pytest.param("unix:{folder}/file/x.sock", "exists|directory", id="no directory"),
    ],
)
async def test_addresses_that_are_not_served(tmp_path, address, complaint):
    """What can't or shouldn't be served is refused in words."""
    (tmp_path / "file").touch()
    server = Server(Passes(), address.format(folder=tmp_path))
    with pytest.raises(AddressError, match=complaint):
        await server.start()
    await server.stop(0)


def test_an_event_loop_that_there_is_not(tmp_path, monkeypatch):
    """Another name than those of the two loops is refused in words."""
    monkeypatch.setenv("BERTH_EVENT_LOOP", "trio")
    with pytest.raises(SdkError, match="BERTH_EVENT_LOOP: 'trio' is no event loop"):
        serve(Passes(), f"unix:{tmp_path}/x.sock")


async def test_an_address_in_use_is_refused(tmp_path):
    """A socket that is served is not taken over."""
    servers = [Server(Passes(), f"unix:{tmp_path}/x.sock") for _ in range(2)]
    await servers[0].start()
    with pytest.raises(AddressError, match="in use"):
        await servers[1].start()
    await servers[1].stop(0)
    assert (tmp_path / "x.sock").is_socket()
    await servers[0].stop(0)


async def test_spans_join_the_caller_s_trace():
    """Calls of a sampled trace get a span below the caller's; others get none."""
    exporter = InMemorySpanExporter()
    tracing = Tracing("passes", "1", [exporter])
    async with running(Passes(), make_node("n"), tracing=tracing) as host:
        host.once = True
        await host.filter(make_pod("untraced"))
        for flags in ("00", "01"):
            host.metadata = (("traceparent", f"00-{TRACE}-{PARENT}-{flags}"),)
            await host.filter(make_pod("traced"))
    (span,) = exporter.get_finished_spans()

    assert (int(TRACE, 16), int(PARENT, 16)) == (span.context.trace_id, span.parent.span_id)
    by_convention = {
        "rpc.system.name": "grpc",
        "rpc.method": "berth.plugin.v1.SchedulingService/Filter",
        "rpc.response.status_code": "OK",
    }
    counts = {"berth.nodes.passed": 1, "berth.nodes.rejected": 0}
    assert {"berth.plugin": "passes", "berth.generation": 1, **by_convention, **counts} == dict(
        span.attributes
    )


def test_trace_file_lines(tmp_path):
    """A span is one line of JSON with OTLP's ids and numbers."""
    tracing = Tracing("passes", "1", [FileSpanExporter(tmp_path / "spans")])
    with tracing.span("call", [("traceparent", f"00-{TRACE}-{PARENT}-01")]) as span:
        span.set_attribute("nodes", 3)
    tracing.shutdown()
    line = json.loads((tmp_path / "spans").read_text())

    expected = {
        "traceId": TRACE,
        "parentSpanId": PARENT,
        "name": "call",
        "kind": 2,
        "attributes": {"nodes": 3},
    }
    assert expected == {key: line[key] for key in expected}
    assert ("passes", {"code": 0, "message": ""}) == (line["resource"]["service.name"], line["status"])
    assert 16 == len(line["spanId"])


@pytest.mark.parametrize(
    ("environment", "collects"),
    [
        pytest.param({}, False, id="nothing set"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True, id="collector"),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
            False,
            id="switched off",
        ),
    ],
)
def test_tracing_follows_the_environment(environment, collects, monkeypatch):
    """The standard variables decide whether spans are made."""
    monkeypatch.setattr("berth_sdk.tracing._otlp", lambda _: InMemorySpanExporter())
    tracing = Tracing.from_environment("passes", "1", environment)
    with tracing.span("call", [("traceparent", f"00-{TRACE}-{PARENT}-01")]) as span:
        assert collects == span.is_recording()
    tracing.shutdown()


def test_otlp_exporter_is_there():
    """The exporter can be made without a collector."""
    exporter = _otlp({})
    try:
        assert isinstance(exporter, SpanExporter)
    finally:
        exporter.shutdown()


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"BERTH_TRACE_FILE": "/nowhere/spans"}, id="no folder"),
        pytest.param(
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            },
            id="another protocol",
        ),
    ],
)
def test_traces_that_cannot_be_written(environment):
    """What the environment asks for in vain is said in words."""
    with pytest.raises(TraceError, match=r"/nowhere/spans|http/protobuf"):
        Tracing.from_environment("passes", "1", environment)


def test_both_copies_of_the_stubs_are_one_contract():
    """Core and SDK may live in one process: their stubs describe the same messages."""
    message = core_pb2.FilterResponse(generation=7)

    assert 7 == scheduling_pb2.FilterResponse.FromString(message.SerializeToString()).generation
    assert core_pb2.DESCRIPTOR.serialized_pb == scheduling_pb2.DESCRIPTOR.serialized_pb


async def test_unknown_method_is_unimplemented():
    """What the protocol doesn't have is refused by gRPC itself."""
    async with running(Passes(), make_node("n")) as host:
        call = host.channel.unary_unary("/berth.plugin.v1.SchedulingService/Guess")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(b"")

    assert grpc.StatusCode.UNIMPLEMENTED == refused.value.code()


async def test_stop_ends_streams(tmp_path):
    """A stop does not wait for streams that hosts leave open; each ends as it should, not in an error."""
    server = Server(Passes(), f"unix:{tmp_path}/x.sock")
    await server.start()
    host = Host(server.address)
    await host.connect()
    requeue = host.queueing.Requeue(queueing_pb2.RequeueRequest())
    converse = host.scheduling.Converse()
    await converse.write(scheduling_pb2.ConverseRequest(id=7))
    assert 7 == (await converse.read()).id
    sync = host._stream

    async with asyncio.timeout(PATIENCE_SECONDS):
        await server.stop(grace_seconds=3600)
        codes = [await call.code() for call in (sync, requeue, converse)]

    assert [grpc.StatusCode.OK] * 3 == codes
    await host.close()


async def test_a_stream_that_begins_as_the_server_stops_ends(tmp_path):
    """It was opened before the stop, and would hold it up for all of the grace."""
    server = Server(Passes(), f"unix:{tmp_path}/x.sock")
    await server.start()
    host = Host(server.address)
    await host.connect()
    server._stopping = True

    async with asyncio.timeout(PATIENCE_SECONDS):
        assert grpc.StatusCode.OK == await host.queueing.Requeue(queueing_pb2.RequeueRequest()).code()

    await host.close()
    await server.stop(0)


def test_an_error_that_trailers_do_not_hold():
    """Of a long error's text as much is sent as the host reads."""
    assert "x" * LONGEST_ERROR == failure_of(ContractError("x" * 100_000)).text


@reports("sdk-socket-open", log="`others may write to the socket's directory`")
async def test_a_directory_that_others_may_write_to(tmp_path, caplog):
    """Another user could put a socket of its own there: it is served, and said."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    server = Server(Passes(), f"unix:{folder}/x.sock")
    await server.start()
    await server.stop(0)

    assert f"others may write to the socket's directory path={folder}" in caplog.messages
