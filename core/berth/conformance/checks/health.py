"""grpc.health.v1: liveness, and readiness, which is something else."""

import asyncio
from typing import Any

from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, shown
from berth.conformance.subject import Subject
from berth_plugin_proto import state_pb2

CLAUSE = "Transport"
READINESS = "berth.plugin.v1.SchedulingService"
STATUS = {b"": "UNKNOWN", b"\x08\x01": "SERVING", b"\x08\x02": "NOT_SERVING", b"\x08\x03": "SERVICE_UNKNOWN"}
LOOK_SECONDS = 0.01


async def status(subject: Subject, service: str) -> str:
    """What the health service says; its two messages have one field each."""
    ask: Any = subject.channel.unary_unary("/grpc.health.v1.Health/Check")
    name = service.encode()
    request = bytes((0x0A, len(name))) + name if name else b""
    answer = await ask(request, timeout=subject.options.seconds)
    return STATUS.get(answer, repr(answer))


async def becomes(subject: Subject, wanted: str) -> None:
    """Readiness follows the state, not at once. Raises: UnmetError where it does not."""
    came = ""
    try:
        async with asyncio.timeout(subject.options.seconds):
            while (came := await status(subject, READINESS)) != wanted:  # noqa: ASYNC110 - another process turns it
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        expect(met=False, expected=f"{wanted} under {READINESS}", came=came)


@check("health/live", "liveness is reported under the empty name", CLAUSE)
async def live(subject: Subject) -> None:
    """A plugin that answers is alive, configured or not."""
    came = await status(subject, "")
    expect(came == "SERVING", "SERVING under the empty name", came)


@check("health/ready", "a plugin that is configured and synced is ready", CLAUSE)
async def ready(subject: Subject) -> None:
    """Readiness is what a rollout waits for."""
    await shown(subject)
    await becomes(subject, "SERVING")


@check(
    "health/not-ready",
    "a plugin that holds nothing is not ready",
    CLAUSE,
    after=(
        "sync/gap",
        "sync/nothing-held",
        "health/live",
        "health/ready",
        "sync/gap",
    ),
)
async def not_ready(subject: Subject) -> None:
    """After a Nack only a full transfer helps."""
    host: HostState = await shown(subject)
    await host.stream.write(delta=state_pb2.Delta(base_generation=90, generation=91, node_count=1))
    await host.stream.read()
    await becomes(subject, "NOT_SERVING")
    expect(
        await status(subject, "") == "SERVING", "SERVING under the empty name all the while", "another status"
    )
