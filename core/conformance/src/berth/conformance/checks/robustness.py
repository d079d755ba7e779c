"""What goes wrong around calls: garbage, lost connections, traces, the end."""

import asyncio
import secrets
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import msgspec

from berth.conformance.answers import filtered, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, shown
from berth.conformance.subject import PluginUnderTest, fails, skip
from berth_plugin_proto import scheduling_pb2

NEEDS = ("FILTER",)
LOOK_SECONDS = 0.02
STOP_SECONDS = 30.0
"""What Kubernetes gives a pod by default before it kills it."""
SERVICE = "/berth.plugin.v1.SchedulingService"


@check(
    "robust/garbage",
    "bytes that are no message are an error of that call",
    "Scheduling calls",
    needs=NEEDS,
)
async def garbage(subject: PluginUnderTest) -> None:
    """The plugin goes on."""
    host = await shown(subject)
    call: Any = subject.channel.unary_unary(f"{SERVICE}/Filter")
    await fails(call(b"\xff\xff\xff\xff", timeout=subject.options.seconds), "bytes that are no message")
    await host.ask("Filter", subject.pods[0])


@check(
    "robust/empty-request",
    "a request without a head is an error of that call",
    "Scheduling calls",
    needs=NEEDS,
)
async def empty_request(subject: PluginUnderTest) -> None:
    """The plugin goes on."""
    host = await shown(subject)
    call = subject.scheduling.Filter(scheduling_pb2.FilterRequest(), timeout=subject.options.seconds)
    await fails(call, "a request without a head")
    await host.ask("Filter", subject.pods[0])


@check(
    "robust/unknown-method",
    "a call that is not served is UNIMPLEMENTED",
    "Order of calls",
    after=("handshake/answered",),
)
async def unknown_method(subject: PluginUnderTest) -> None:
    """A later version's call must not harm this one's plugin."""
    call: Any = subject.channel.unary_unary(f"{SERVICE}/NoSuchCall")
    code = await fails(call(b"", timeout=subject.options.seconds), "a call that does not exist")
    expect(code is grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED", code.name)


@check(
    "robust/unknown-fields",
    "fields of a later version are passed over",
    "Scheduling calls",
    needs=NEEDS,
)
async def unknown_fields(subject: PluginUnderTest) -> None:
    """A later version adds fields and changes the meaning of none."""
    host = await shown(subject)
    request = host.request("Filter", subject.pods[0])
    call: Any = subject.channel.unary_unary(
        f"{SERVICE}/Filter", response_deserializer=scheduling_pb2.FilterResponse.FromString
    )
    later = request.SerializeToString() + b"\xfa\x3e\x05later"
    plain = await subject.scheduling.Filter(request, timeout=subject.options.seconds)
    same(
        plain.verdicts,
        (await call(later, timeout=subject.options.seconds)).verdicts,
        "the answer without the new field",
    )


@check("robust/large-request", "requests of more than 4 MiB are taken", "Transport", needs=NEEDS)
async def large_request(subject: PluginUnderTest) -> None:
    """Calls grow with the cluster and its objects; only Sync stays below."""
    host = await shown(subject)
    pod = subject.pods[0]
    metadata = {
        **pod["metadata"],
        "annotations": {**pod["metadata"].get("annotations", {}), "note": "x" * (5 << 20)},
    }
    await host.ask("Filter", {**pod, "metadata": metadata})


@check(
    "robust/two-connections",
    "calls come over any connection",
    "Transport",
    needs=NEEDS,
)
async def two_connections(subject: PluginUnderTest) -> None:
    """The state is the process's, not the connection's."""
    host = await shown(subject)
    other = await subject.another()
    same(
        await filtered(host, subject.pods[0]),
        await filtered(host, subject.pods[0], stub=other.scheduling),
        "the same answer",
    )


@check(
    "robust/lost-connection",
    "a connection that is lost in a call leaves the plugin in order",
    "Order of calls",
    needs=NEEDS,
    after=("calls/waiting-blocks-no-other",),
)
async def lost_connection(subject: PluginUnderTest) -> None:
    """The host begins at the handshake again."""
    other = await subject.another()
    host = await HostState(other, subject.nodes()).shown()
    waiting = asyncio.create_task(host.ask("Filter", subject.pods[0], of_call={"generation": 99}))
    await host.ask("Filter", subject.pods[0])
    await other.channel.close()
    with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        await waiting
    again = await subject.shake_hands()
    expect(again.name == subject.introduction.name, "the same plugin", again.name)
    await (await shown(subject)).ask("Filter", subject.pods[0])


@check(
    "trace/context",
    "trace context is taken as W3C gives it",
    "Transport",
    needs=NEEDS,
    after=("ttrpc/answer",),
)
async def context(subject: PluginUnderTest) -> None:
    """A call with it is answered, sampled or not."""
    host = await shown(subject)
    for flags in ("00", "01"):
        metadata = (
            ("traceparent", f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-{flags}"),
            ("tracestate", "kit=1"),
        )
        for way in await _ways(subject):
            await host.ask("Filter", subject.pods[0], stub=way, metadata=metadata)


async def _ways(subject: PluginUnderTest) -> list[Any]:
    """The scheduling service over gRPC, and over ttrpc where that is announced."""
    if not subject.offers("ttrpc_socket"):
        return [subject.scheduling]
    return [subject.scheduling, (await subject.over_ttrpc()).service("SchedulingService")]


@check(
    "trace/malformed",
    "trace context that can't be read fails no call",
    "Transport",
    needs=NEEDS,
    after=("ttrpc/answer",),
)
async def malformed(subject: PluginUnderTest) -> None:
    """Tracing never costs an answer."""
    host = await shown(subject)
    for text in ("", "garbage", "00-0-0-00", f"ff-{'0' * 32}-{'0' * 16}-01"):
        for way in await _ways(subject):
            await host.ask("Filter", subject.pods[0], stub=way, metadata=(("traceparent", text),))


@check(
    "trace/spans",
    "the plugin's spans are children of the host's",
    "Transport",
    needs=NEEDS,
    after=("trace/context",),
)
async def spans(subject: PluginUnderTest) -> None:
    """One trace has a pod's whole way."""
    if subject.options.trace_file is None:
        raise skip("no --trace-file: start the plugin with BERTH_TRACE_FILE and name the same file")
    host = await shown(subject)
    trace, parent = secrets.token_hex(16), secrets.token_hex(8)
    await host.ask("Filter", subject.pods[0], metadata=(("traceparent", f"00-{trace}-{parent}-01"),))
    try:
        async with asyncio.timeout(subject.options.span_seconds):
            while not (found := _spans_of(subject, trace)):  # noqa: ASYNC110 - another process writes
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        expect(met=False, expected=f"a span of trace {trace}", came="none")
    expect(any(parent in line for line in found), f"a span whose parent is {parent}", found[0][:200])


def _spans_of(subject: PluginUnderTest, trace: str) -> list[str]:
    """The lines of the file that belong to that trace."""
    file = subject.options.trace_file
    if file is None or not file.exists():
        return []
    return [line for line in file.read_text().splitlines() if trace in line and msgspec.json.decode(line)]


@check("stop/ends", "the plugin ends when it is asked to", "Transport")
async def ends(subject: PluginUnderTest) -> None:
    """On SIGTERM, streams that are open notwithstanding, and then nothing answers."""
    if subject.options.stop is None:
        raise skip("no --pid: the kit does not know which process to end")
    await shown(subject)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await subject.options.stop()
    except TimeoutError:
        expect(met=False, expected=f"the end of the process within {STOP_SECONDS:g} s", came="nothing")
    try:
        await subject.shake_hands()
    except grpc.aio.AioRpcError:
        return
    expect(met=False, expected="no server at the address", came="an answer")
