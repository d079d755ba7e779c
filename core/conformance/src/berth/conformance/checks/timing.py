"""The clock of a plugin that announces it: the time that is said counts, and the machine's does not."""

import asyncio
from typing import Any

import grpc.aio

from berth.conformance.answers import decided, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, configured
from berth.conformance.subject import PluginUnderTest, brief
from berth_plugin_proto import queueing_pb2, state_pb2

CLAUSE = "Time"
NOON_MICROS = 1_800_000_000_000_000
"""2027-01-15T08:00:00Z, which is no machine's time by chance."""
DAY_MICROS = 86_400_000_000
HELD_SECONDS = 1.2
"""How long the time stands still while the machine's passes: who counts seconds shows it."""


async def _said(host: HostState, unix_micros: int) -> state_pb2.TimeReached:
    """The plugin's answer to that time. Raises: UnmetError where it is none."""
    wanted = f"TimeReached of {unix_micros}"
    await host.stream.write(time=state_pb2.Time(unix_micros=unix_micros))
    answer = await host.stream.read(wanted)
    reached = answer.time_reached
    held = answer.WhichOneof("body") == "time_reached" and reached.unix_micros == unix_micros
    expect(held, wanted, brief(answer))
    if reached.HasField("wake_at_unix_micros"):
        expect(reached.wake_at_unix_micros > unix_micros, f"a timer after {unix_micros}", brief(answer))
    return reached


async def _in_time(subject: PluginUnderTest) -> HostState:
    """A host that has said the time before it shows anything."""
    await configured(subject)
    host = HostState(subject, subject.nodes())
    await host.stream.opened()
    await _said(host, NOON_MICROS)
    await host.transfer()
    return host


@check("time/reached", "a time that is said is held, an earlier one too", CLAUSE, needs=("clock",))
async def reached(subject: PluginUnderTest) -> None:
    """Before Begin and after, a day later and a day earlier; a timer that waits is named again."""
    host = await _in_time(subject)
    for unix_micros in (NOON_MICROS, NOON_MICROS + DAY_MICROS, NOON_MICROS - DAY_MICROS):
        first, again = await _said(host, unix_micros), await _said(host, unix_micros)
        expect(first == again, f"the same answer to the same time: {brief(first)}", brief(again))


@check(
    "time/answers",
    "answers follow the time that is said, not the machine's",
    CLAUSE,
    needs=("clock",),
    after=("time/reached",),
)
async def answers(subject: PluginUnderTest) -> None:
    """While the time stands still, every answer stays as it is; timers that are due run at once."""
    host = await _in_time(subject)
    before = [await decided(host, pod) for pod in subject.pods]
    await asyncio.sleep(HELD_SECONDS)
    what = (
        f"the answers as {HELD_SECONDS:g} s before, since the time stands still: read the SDK's clock alone"
    )
    same(before, [await decided(host, pod) for pod in subject.pods], what)


@check(
    "time/timers",
    "timers run by the time that is said, not the machine's",
    CLAUSE,
    needs=("clock", "REQUEUE"),
    after=("time/reached",),
)
async def timers(subject: PluginUnderTest) -> None:
    """While the time stands still, nothing is said that nothing asked for."""
    host = await _in_time(subject)
    stream: Any = subject.queueing.Requeue(queueing_pb2.RequeueRequest())
    subject.open.callback(stream.cancel)
    for pod in subject.pods:
        await decided(host, pod)
    last = (await _said(host, NOON_MICROS)).last_requeue
    try:
        async with asyncio.timeout(HELD_SECONDS):
            while (message := await stream.read()) is not grpc.aio.EOF:
                late = f"nothing on Requeue after number {last}, since the time stands still: "
                expect(message.number <= last, late + "set timers by the SDK's clock alone", brief(message))
    except TimeoutError:
        return
    expect(met=False, expected="a requeue stream that stays open", came="its end")
