"""Whether a scheduler uses the plugin already, and leaving it as if none ever had."""

from contextlib import suppress
from typing import Any

import grpc.aio

from berth.conformance.errors import UnmetError
from berth.conformance.host_state import Stream
from berth.conformance.subject import InUseError, PluginUnderTest
from berth_plugin_proto import state_pb2

READINESS = "berth.plugin.v1.SchedulingService"
STATUS = {b"": "UNKNOWN", b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING", b"\x08\x03": "SERVICE_UNKNOWN"}


async def health(subject: PluginUnderTest, service: str) -> str:
    """What the health service says; its two messages have one field each."""
    ask: Any = subject.channel.unary_unary("/grpc.health.v1.Health/Check")
    name = service.encode()
    request = bytes((0x0A, len(name))) + name if name else b""
    answer = await ask(request, timeout=subject.options.seconds)
    return STATUS.get(answer, repr(answer))


async def ensure_unused(subject: PluginUnderTest) -> None:
    """Ask for the plugin's readiness, which changes nothing in it.

    Raises: InUseError where it is configured and holds a cluster's state before this host gave it any.
    """
    try:
        came = await health(subject, READINESS)
    except grpc.aio.AioRpcError:
        return
    if came == "SERVING":
        raise InUseError(
            f"a scheduler uses the plugin at {subject.options.address}: it reports that it is configured and "
            "synced, and verifying replaces its arguments and its state; start another process of the plugin "
            "to verify, or give --in-use if the scheduler is gone"
        )


async def leave(subject: PluginUnderTest) -> None:
    """End the profile's use of the plugin and have it drop its state: it is free for the next host."""
    with suppress(grpc.aio.AioRpcError, UnmetError):
        async with subject.open:
            stream = await Stream(subject).opened()
            # A step from a generation that is not held: after its Nack nothing is held.
            gap = state_pb2.Delta(base_generation=(1 << 62), generation=(1 << 62) + 1)
            await stream.write(delta=gap)
            await stream.read()
        await subject.configure(removed=True, arguments=None)
