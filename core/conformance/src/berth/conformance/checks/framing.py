"""ttrpc: the calls of the second socket, where one is announced."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from berth.config.out_of_tree.sidecars import socket_path
from berth.conformance.answers import filtered, same
from berth.conformance.check import check, expect
from berth.conformance.checks.grouping import JUDGES, PROGRESS, PROPOSES, judged, occupied, proposed
from berth.conformance.checks.placing import GENERATES, SCORES, as_lists, generated, scored
from berth.conformance.errors import UnmetError
from berth.conformance.host_state import shown
from berth.conformance.subject import PluginUnderTest, brief, refused
from berth.out_of_tree.limits import MESSAGE_BYTES
from berth.out_of_tree.transport.rpc import RpcError
from berth.out_of_tree.transport.ttrpc import HEADER, REQUEST
from berth_plugin_proto import scheduling_pb2, ttrpc_pb2

CLAUSE = "ttrpc beside gRPC"
NEEDS = ("ttrpc_socket", "FILTER")
SERVICE = "berth.plugin.v1.SchedulingService"
CUT_OFF_SECONDS = 0.05


async def _scheduling(subject: PluginUnderTest) -> Any:
    return (await subject.over_ttrpc()).service("SchedulingService")


async def _placement(subject: PluginUnderTest) -> Any:
    return (await subject.over_ttrpc()).service("PlacementService")


async def _groups(subject: PluginUnderTest) -> Any:
    return (await subject.over_ttrpc()).service("GroupService")


async def _dialled(subject: PluginUnderTest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that may send bytes of any kind, until the check ends."""
    path = Path(socket_path(subject.options.address)).with_name(subject.capabilities.ttrpc_socket)
    reader, writer = await asyncio.open_unix_connection(path)
    subject.open.push_async_callback(_hang_up, writer)
    return reader, writer


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def _frame_or_end(subject: PluginUnderTest, reader: asyncio.StreamReader) -> bytes:
    """The message of the next frame; empty where the connection ends."""

    async def read() -> bytes:
        length, _, _, _ = HEADER.unpack(await reader.readexactly(HEADER.size))
        return await reader.readexactly(length)

    try:
        message: bytes = await subject.in_time(read(), "an answer, or the end of the connection")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    return message


@check("ttrpc/answer", "a call over ttrpc is answered", CLAUSE, needs=NEEDS)
async def answer(subject: PluginUnderTest) -> None:
    """The socket that was announced is served, beside the first and as private."""
    host = await shown(subject)
    came = await host.ask("Filter", subject.pods[0], stub=await _scheduling(subject))
    expect(came.HasField("status"), "an answer with a status", brief(came))


@check(
    "ttrpc/same",
    "answers over ttrpc are those over gRPC",
    CLAUSE,
    needs=NEEDS,
    after=("ttrpc/answer",),
)
async def alike(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host, scheduling = await shown(subject), await _scheduling(subject)
    for pod in subject.pods:
        over_ttrpc = await filtered(host, pod, stub=scheduling)
        same(await filtered(host, pod), over_ttrpc, "the answer over gRPC")


@check(
    "ttrpc/many",
    "many calls may be on the connection at once",
    CLAUSE,
    needs=NEEDS,
    after=("calls/side-by-side", "ttrpc/same"),
)
async def many(subject: PluginUnderTest) -> None:
    """Answers come in any order, each on its request's stream."""
    host, scheduling, pods = await shown(subject), await _scheduling(subject), subject.pods * 3
    apart = [await filtered(host, pod) for pod in pods]
    together = await asyncio.gather(*(filtered(host, pod, stub=scheduling) for pod in pods))
    same(apart, together, "the answers as one by one")


@check(
    "ttrpc/deltas",
    "the deltas of a call over ttrpc are applied",
    CLAUSE,
    needs=NEEDS,
    after=("calls/deltas", "ttrpc/answer"),
)
async def deltas(subject: PluginUnderTest) -> None:
    """They spare the call a wait for the stream."""
    host, scheduling = await shown(subject), await _scheduling(subject)
    delta = host.delta()
    call = host.ask("Filter", subject.pods[0], stub=scheduling, of_call={"deltas": [delta]})
    await subject.in_time(call, "an answer to a call that carries its step")


@check(
    "ttrpc/refusal",
    "a refusal over ttrpc says why, and the connection goes on",
    CLAUSE,
    needs=NEEDS,
    after=("ttrpc/answer", "calls/unknown-epoch"),
)
async def refusal(subject: PluginUnderTest) -> None:
    """As google.rpc.Status with gRPC's code, and an ErrorInfo with the reason."""
    host, scheduling = await shown(subject), await _scheduling(subject)
    call = host.ask("Filter", subject.pods[0], stub=scheduling, of_call={"epoch": "never-used"})
    await refused(call, grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED", what="a call of an unknown epoch")
    await host.ask("Filter", subject.pods[0], stub=scheduling)


@check(
    "ttrpc/unknown-method",
    "an unknown method is UNIMPLEMENTED over ttrpc, and the connection goes on",
    CLAUSE,
    needs=NEEDS,
    after=("ttrpc/answer",),
)
async def unknown_method(subject: PluginUnderTest) -> None:
    """So that a later version of the protocol can add calls."""
    host, connection = await shown(subject), await subject.over_ttrpc()
    head = ttrpc_pb2.TtrpcRequest(service=SERVICE, method="NoSuchCall").SerializeToString()
    request, response = scheduling_pb2.FilterRequest(), scheduling_pb2.FilterResponse
    unknown = connection.send(head, request, response, subject.options.seconds, ())
    await refused(unknown, grpc.StatusCode.UNIMPLEMENTED, what="a method that there is not")
    await host.ask("Filter", subject.pods[0], stub=connection.service("SchedulingService"))


@check(
    "ttrpc/deadline",
    "a call over ttrpc that runs out of time holds up no other",
    CLAUSE,
    needs=NEEDS,
    after=("ttrpc/answer", "calls/waits"),
)
async def deadline(subject: PluginUnderTest) -> None:
    """It waits for a step that does not come; what it is answered, if anything, is too late."""
    host, scheduling = await shown(subject), await _scheduling(subject)
    request = host.request("Filter", subject.pods[0], of_call={"generation": host.generation + 1})
    waiting = scheduling.Filter(request, timeout=CUT_OFF_SECONDS)
    await host.ask("Filter", subject.pods[0], stub=scheduling)
    try:
        came = await waiting
    except RpcError:
        await host.ask("Filter", subject.pods[0], stub=scheduling)
        return
    raise UnmetError("no answer about a generation that is not held", brief(came))


@check(
    "ttrpc/broken-frame",
    "a frame that is none costs at most its own connection",
    CLAUSE,
    needs=NEEDS,
    after=("ttrpc/answer",),
)
async def broken_frame(subject: PluginUnderTest) -> None:
    """Another connection is answered meanwhile, and a new one afterwards."""
    host, beside = await shown(subject), await _scheduling(subject)
    broken = (
        HEADER.pack(3, 1, REQUEST, 0) + b"\xff\xff\xff",
        HEADER.pack(0, 1, 99, 0),
        HEADER.pack(0, 2, REQUEST, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    )
    for data in broken:
        _, writer = await _dialled(subject)
        with suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        await host.ask("Filter", subject.pods[0], stub=beside)
    await host.ask("Filter", subject.pods[0], stub=await _scheduling(subject))


@check(
    "ttrpc/large-frame",
    "a frame above 4 MiB is refused",
    CLAUSE,
    needs=NEEDS,
    after=("ttrpc/broken-frame",),
)
async def large_frame(subject: PluginUnderTest) -> None:
    """The connection ends, or the call is answered RESOURCE_EXHAUSTED; others are answered."""
    host, beside = await shown(subject), await _scheduling(subject)
    reader, writer = await _dialled(subject)
    size = MESSAGE_BYTES + 1
    writer.write(HEADER.pack(size, 1, REQUEST, 0) + bytes(size))
    if came := await _frame_or_end(subject, reader):
        status = ttrpc_pb2.TtrpcResponse.FromString(came).status
        code = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
        expect(status.code == code, "RESOURCE_EXHAUSTED, or the end of the connection", brief(status))
    await host.ask("Filter", subject.pods[0], stub=beside)


@check(
    "ttrpc/placements",
    "placements over ttrpc are those over gRPC",
    CLAUSE,
    needs=(*GENERATES, "ttrpc_socket"),
    after=("placements/deterministic", "ttrpc/answer"),
)
async def placements(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host = await shown(subject)
    _, first = await generated(host)
    _, again = await generated(host, stub=await _placement(subject))
    same(as_lists(first), as_lists(again), "the placements over gRPC")


@check(
    "ttrpc/placement-scores",
    "scores of placements over ttrpc are those over gRPC",
    CLAUSE,
    needs=(*SCORES, "ttrpc_socket"),
    after=("placement-scores/one-by-one", "ttrpc/answer"),
)
async def placement_scores(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host = await shown(subject)
    first = await scored(host, [0, 1])
    same(first, await scored(host, [0, 1], stub=await _placement(subject)), "the answer over gRPC")


@check(
    "ttrpc/placement-feasible",
    "verdicts on a group over ttrpc are those over gRPC",
    CLAUSE,
    needs=(*JUDGES, "ttrpc_socket"),
    after=("placement-feasible/answer", "ttrpc/answer"),
)
async def group_verdicts(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host = await shown(subject)
    first = await judged(host, PROGRESS)
    same(first, await judged(host, PROGRESS, stub=await _groups(subject)), "the answer over gRPC")


@check(
    "ttrpc/pod-group-post-filter",
    "proposals for a group over ttrpc are those over gRPC",
    CLAUSE,
    needs=(*PROPOSES, "ttrpc_socket"),
    after=("pod-group-post-filter/answer", "ttrpc/answer"),
)
async def group_proposals(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host = await occupied(subject)
    first = await proposed(host)
    same(first, await proposed(host, stub=await _groups(subject)), "the answer over gRPC")
