"""grpc.health.v1: liveness, and readiness, which is something else."""

import asyncio

from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, shown
from berth.conformance.occupancy import READINESS, health
from berth.conformance.subject import PluginUnderTest
from berth_plugin_proto import state_pb2

CLAUSE = "Transport"
LOOK_SECONDS = 0.01


async def becomes(subject: PluginUnderTest, wanted: str) -> None:
    """Readiness follows the state, not at once. Raises: UnmetError where it does not."""
    came = ""
    try:
        async with asyncio.timeout(subject.options.seconds):
            while (came := await health(subject, READINESS)) != wanted:  # noqa: ASYNC110 - another process turns it
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        expect(met=False, expected=f"{wanted} under {READINESS}", came=came)


@check("health/live", "liveness is reported under the empty name", CLAUSE)
async def live(subject: PluginUnderTest) -> None:
    """A plugin that answers is alive, configured or not."""
    came = await health(subject, "")
    expect(came == "SERVING", "SERVING under the empty name", came)


@check("health/ready", "a plugin that is configured and synced is ready", CLAUSE)
async def ready(subject: PluginUnderTest) -> None:
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
async def not_ready(subject: PluginUnderTest) -> None:
    """After a Nack only a full transfer helps."""
    host: HostState = await shown(subject)
    await host.stream.write(delta=state_pb2.Delta(base_generation=90, generation=91, node_count=1))
    await host.stream.read()
    await becomes(subject, "NOT_SERVING")
    expect(
        await health(subject, "") == "SERVING", "SERVING under the empty name all the while", "another status"
    )
