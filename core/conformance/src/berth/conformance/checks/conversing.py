"""Converse: all scheduling calls over one stream."""

import asyncio
from typing import Any

import grpc

from berth.conformance.answers import filtered, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import shown
from berth.conformance.subject import PluginUnderTest, brief, refused
from berth_plugin_proto import scheduling_pb2

CLAUSE = "Scheduling calls"
NEEDS = ("converse", "FILTER")


async def _answers(subject: PluginUnderTest, stream: Any, count: int) -> dict[int, str]:
    """The kinds of the next so many answers by their ids, in as many messages as the plugin likes."""
    answers: list[Any] = []
    while len(answers) < count:
        message = await subject.in_time(
            stream.read(), f"an answer on the stream after {len(answers)} of {count}"
        )
        expect(message is not grpc.aio.EOF, "a stream that goes on", "its end")
        answers += [message, *message.also]
    return {each.id: each.WhichOneof("answer") for each in answers}


@check(
    "converse/answer",
    "a call over the stream is answered",
    CLAUSE,
    needs=NEEDS,
)
async def answer(subject: PluginUnderTest) -> None:
    """By the message of its own kind, with the request's id."""
    host = await shown(subject)
    stream: Any = subject.scheduling.Converse()
    subject.open.callback(stream.cancel)
    request = scheduling_pb2.ConverseRequest(id=41, filter=host.request("Filter", subject.pods[0]))
    request.timeout.FromNanoseconds(int(subject.options.seconds * 1e9))
    await stream.write(request)
    came = await subject.in_time(stream.read(), "an answer on the stream")
    expect(came.id == 41 and came.WhichOneof("answer") == "filter", "a filter answer with id 41", brief(came))  # noqa: PLR2004


@check(
    "converse/same",
    "the stream's answers are those of calls of their own",
    CLAUSE,
    needs=NEEDS,
    after=("converse/answer",),
)
async def alike(subject: PluginUnderTest) -> None:
    """It is another way for the same calls."""
    host = await shown(subject)
    conversation = subject.conversation()
    for pod in subject.pods:
        same(
            await filtered(host, pod),
            await filtered(host, pod, stub=conversation),
            "the answer of a call of its own",
        )


@check(
    "converse/many",
    "many calls may be on the stream at once",
    CLAUSE,
    needs=NEEDS,
    after=(
        "calls/side-by-side",
        "converse/answer",
        "converse/same",
    ),
)
async def many(subject: PluginUnderTest) -> None:
    """Answers come in any order, each under its request's id."""
    host = await shown(subject)
    conversation, pods = subject.conversation(), subject.pods * 3
    apart = [await filtered(host, pod) for pod in pods]
    same(
        apart,
        await asyncio.gather(*(filtered(host, pod, stub=conversation) for pod in pods)),
        "the answers as one by one",
    )


@check(
    "converse/together",
    "calls that share a message are all answered",
    CLAUSE,
    needs=(*NEEDS, "converse_together"),
    after=("converse/answer", "converse/many"),
)
async def together(subject: PluginUnderTest) -> None:
    """Each under its own id, in as many messages as the plugin likes."""
    host = await shown(subject)
    stream: Any = subject.scheduling.Converse()
    subject.open.callback(stream.cancel)
    first, *others = (
        scheduling_pb2.ConverseRequest(id=number, filter=host.request("Filter", subject.pods[0]))
        for number in (7, 8, 9)
    )
    first.also.extend(others)
    await stream.write(first)
    kinds = await _answers(subject, stream, 1 + len(others))
    expect(kinds == dict.fromkeys((7, 8, 9), "filter"), "a filter answer each to 7, 8 and 9", kinds)


@check(
    "converse/refusal",
    "a refusal on the stream says why, and the stream goes on",
    CLAUSE,
    needs=NEEDS,
    after=(
        "converse/answer",
        "calls/unknown-epoch",
    ),
)
async def refusal(subject: PluginUnderTest) -> None:
    """As a CallError with code and reason."""
    host = await shown(subject)
    conversation = subject.conversation()
    call = host.ask("Filter", subject.pods[0], stub=conversation, of_call={"epoch": "never-used"})
    await refused(call, grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED", what="a call of an unknown epoch")
    await host.ask("Filter", subject.pods[0], stub=conversation)


@check(
    "converse/no-call",
    "a message without a call is answered with an error",
    CLAUSE,
    needs=NEEDS,
    after=("converse/answer",),
)
async def no_call(subject: PluginUnderTest) -> None:
    """The stream goes on."""
    host = await shown(subject)
    stream: Any = subject.scheduling.Converse()
    subject.open.callback(stream.cancel)
    await stream.write(scheduling_pb2.ConverseRequest(id=1))
    await stream.write(scheduling_pb2.ConverseRequest(id=2, filter=host.request("Filter", subject.pods[0])))
    kinds = await _answers(subject, stream, 2)
    expect(kinds == {1: "error", 2: "filter"}, "an error for 1 and an answer for 2", kinds)


@check(
    "converse/waiting",
    "a call that waits holds up no other on the stream",
    CLAUSE,
    needs=NEEDS,
    after=(
        "converse/answer",
        "calls/waits",
    ),
)
async def waiting(subject: PluginUnderTest) -> None:
    """It waits for the state stream."""
    host = await shown(subject)
    conversation = subject.conversation()
    coming = host.delta()
    first = asyncio.create_task(host.ask("Filter", subject.pods[0], stub=conversation))
    subject.open.callback(first.cancel)
    await asyncio.sleep(0)  # it is on the stream before the next one
    await host.ask("Filter", subject.pods[0], stub=conversation, of_call={"generation": 1})
    await host.stream.write(delta=coming)
    await host.stream.acked(coming.generation)
    await subject.in_time(first, "an answer once the step has come")
