"""PreEnqueue and Requeue: what lets pods into the queue, and brings them back."""

import asyncio
from typing import Any

import grpc.aio

from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, configured, shown
from berth.conformance.subject import PluginUnderTest, brief
from berth.out_of_tree.packing import status_of
from berth_plugin_proto import common_pb2 as pb
from berth_plugin_proto import queueing_pb2

ALLOWED = {
    pb.CODE_SUCCESS,
    pb.CODE_UNSCHEDULABLE,
    pb.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
    pb.CODE_PENDING,
    pb.CODE_ERROR,
}
LISTEN_SECONDS = 0.1


@check(
    "pre-enqueue/answer",
    "PreEnqueue lets the pod in or not",
    "Scheduling calls",
    needs=("PRE_ENQUEUE",),
)
async def pre_enqueue(subject: PluginUnderTest) -> None:
    """It neither skips nor waits."""
    host = await shown(subject)
    for pod in subject.pods:
        response = await host.ask("PreEnqueue", pod)
        status_of("under test", response.status)
        expect(
            response.status.code in ALLOWED,
            "SUCCESS, an unschedulable code, PENDING or ERROR",
            brief(response),
        )


@check(
    "pre-enqueue/without-state",
    "PreEnqueue needs no state",
    "Scheduling calls",
    needs=("PRE_ENQUEUE",),
    after=("pre-enqueue/answer",),
)
async def without_state(subject: PluginUnderTest) -> None:
    """Epoch and generation are not checked."""
    await configured(subject)
    host = HostState(subject, subject.nodes(), "never-shown")
    await host.ask("PreEnqueue", subject.pods[0], of_call={"generation": 77})


@check("requeue/stays-open", "the requeue stream stays open", "Hints", needs=("REQUEUE",))
async def stays_open(subject: PluginUnderTest) -> None:
    """The host takes its end for the end of the plugin."""
    stream: Any = subject.queueing.Requeue(queueing_pb2.RequeueRequest())
    subject.open.callback(stream.cancel)
    try:
        async with asyncio.timeout(LISTEN_SECONDS):
            while (message := await stream.read()) is not grpc.aio.EOF:
                expect(message.WhichOneof("action"), "an action", brief(message))
    except TimeoutError:
        return
    expect(met=False, expected="a stream that stays open", came="its end")


@check(
    "requeue/again",
    "the requeue stream can be opened again",
    "Hints",
    needs=("REQUEUE",),
    after=("requeue/stays-open",),
)
async def again(subject: PluginUnderTest) -> None:
    """After a lost connection the host does."""
    await stays_open(subject)
    await stays_open(await subject.another())
