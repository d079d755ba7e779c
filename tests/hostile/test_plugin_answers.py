"""A sidecar that answers what it should not: each over a real connection."""

import asyncio
import logging
from types import SimpleNamespace

import grpc
import msgspec
import numpy as np
import pytest

from berth.evaluation.caching.answer_columns import MAX_REASONS, AnswerColumns, TooManyReasonsError
from berth.framework.status import Code, Status
from berth.out_of_tree.cluster_state import state_stream
from berth.out_of_tree.connections import connection
from berth.out_of_tree.connections.conditions import ConditionType
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.extender import wire
from berth.out_of_tree.extender.errors import ReplyError
from berth.out_of_tree.lifecycle.report import description
from berth.out_of_tree.limits import (
    LINES_AT_ONCE,
    REASON_BYTES,
    REFUSAL_BYTES,
    TABLE_BYTES,
    TRANSFERS_AT_ONCE,
)
from berth.out_of_tree.packing import hints_of
from berth.out_of_tree.transport.conversation import Conversation
from berth.out_of_tree.transport.rpc import RpcError
from berth_plugin_proto import common_pb2, identity_pb2, queueing_pb2, scheduling_pb2, state_pb2
from tests.unit.extender.test_wire_format import NODES, attempt
from tests.unit.extender.webhook import Webhook, client_of, serving
from tests.unit.out_of_tree.scripted import NAME, SUCCESS, Scripted, cycle, hosted, passing, until

UNSCHEDULABLE = common_pb2.CODE_UNSCHEDULABLE
CORE = identity_pb2.WatchedResource
ROOM = identity_pb2.EXTENSION_POINT_POST_FILTER


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Dial again soon: what is tested is that it happens, not when."""
    monkeypatch.setattr(connection, "LONGEST_BACKOFF_SECONDS", 0.01)


def turned_down(*texts, code=UNSCHEDULABLE):
    """What answers FilterScore with: the first reason for every node."""

    async def answer(request, _context):
        reasons = [common_pb2.Reason(code=code, text=text) for text in texts]
        return passing(request, verdicts=scheduling_pb2.Verdicts(all=1, reasons=reasons))

    return answer


async def reasons_after(answer):
    """The reasons that a filter keeps of that answer to FilterScore."""
    plugin = Scripted()
    plugin.replies["FilterScore"] = answer
    async with hosted(plugin) as harness:
        await harness.up()
        state = cycle()
        await harness.filter(state=state)
        return harness.plugin._answers(state).columns.reasons


async def failure_of(answer):
    """What a filter that is answered so fails with, and how often the circuit counts that."""
    plugin = Scripted()
    plugin.replies["FilterScore"] = answer
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(SidecarError) as failed:
            await harness.filter()
        return str(failed.value), harness.connection.breaker._failures


# Texts.


async def test_a_long_reason_is_cut():
    """A reason of a megabyte comes to stand in the pod's condition with a kilobyte of it."""
    [reason] = await reasons_after(turned_down("x" * 1_000_000))

    assert REASON_BYTES == len(reason.message.encode())
    assert reason.message.endswith("…")


async def test_many_long_reasons_share_their_room():
    """All reasons of an answer together are bounded."""
    reasons = await reasons_after(turned_down(*(f"{i} {'y' * 5000}" for i in range(255))))

    assert 255 == len(reasons)
    assert sum(len(each.message.encode()) for each in reasons) <= TABLE_BYTES


async def test_a_reason_holds_no_control_characters():
    """A reason can't begin a log line or a terminal's command."""
    [reason] = await reasons_after(turned_down('no\nI0101 fake="line"\x1b[2J'))

    assert 'no\\nI0101 fake="line"\\x1b[2J' == reason.message


async def test_a_message_of_ten_megabytes_is_not_read():
    """What is larger than a message may be is a failure as any other, before it is in memory.

    Two calls fail: where scores may be passed over, verdicts are asked for alone after both failed.
    """
    text, failures = await failure_of(turned_down("x" * 10_000_000))

    assert "RESOURCE_EXHAUSTED" in text
    assert 2 == failures


async def test_a_long_error_is_cut():
    """The text of a gRPC error is bounded wherever it goes."""

    async def broken(_request, context):
        await context.abort(grpc.StatusCode.INTERNAL, "z" * 6000)

    text, _ = await failure_of(broken)

    assert len(text.encode()) <= REASON_BYTES


async def test_long_trailers_are_not_read():
    """Trailers that are larger than they may be fail the call, and the next one goes on."""
    plugin = Scripted()

    async def broken(_request, context):
        await context.abort(grpc.StatusCode.INTERNAL, "no", (("x-much", "y" * 50_000),))

    plugin.replies["FilterScore"] = broken
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(SidecarError, match="FilterScore failed: RESOURCE_EXHAUSTED"):
            await harness.filter()
        plugin.replies["FilterScore"] = turned_down("no")
        assert (await harness.filter()).all()


async def test_a_plugin_that_stops_reading(monkeypatch):
    """A plugin that takes nothing off the stream is hung up on, however large the next step is."""
    monkeypatch.setattr(state_stream, "ACK_SECONDS", 0.05)
    plugin = Scripted()

    async def deaf(requests, _context):
        yield state_pb2.SyncResponse(held=state_pb2.Held())
        async for request in requests:
            if request.HasField("commit"):
                yield state_pb2.SyncResponse(ack=state_pb2.Ack(generation=request.commit.generation))
                break
        await asyncio.Event().wait()

    plugin.sync = deaf
    async with hosted(plugin) as harness:
        await harness.up()
        harness.connection._state._feed._deltas.clear()
        harness.add_nodes(*(f"n{i}" for i in range(2000)))
        await until(lambda: "was not acknowledged within" in harness.connection.last_error)


async def test_a_hundred_thousand_reasons_of_a_status():
    """A status with more reasons than a pod's condition has room for breaks the contract."""

    async def answer(request, _context):
        return passing(request, status=common_pb2.Status(code=UNSCHEDULABLE, reasons=["r"] * 100_000))

    assert "100000 reasons, at most 16 are read" in (await failure_of(answer))[0]


async def test_ever_new_reasons_end_the_cycle():
    """A plugin that brings up other reasons with each call is cut off before codes run out of numbers."""
    answers = AnswerColumns(3)
    tables = [
        tuple(Status(Code.UNSCHEDULABLE, (f"{i} {j}",)) for j in range(255))
        for i in range(MAX_REASONS // 255 + 1)
    ]
    codes = np.ones(3, dtype=np.uint8)

    for reasons in tables[:-1]:
        answers.numbered(codes, reasons)

    with pytest.raises(TooManyReasonsError, match=f"more than {MAX_REASONS} different reasons in one cycle"):
        answers.numbered(codes, tables[-1])


async def test_a_long_refusal_is_cut(caplog):
    """Ten thousand errors of Configure come to one line and one condition of bounded length."""
    plugin = Scripted()
    plugin.replies["Configure"] = identity_pb2.ConfigureResponse(errors=["e" * 300] * 10_000)
    with caplog.at_level(logging.WARNING):
        async with hosted(plugin) as harness:
            await until(lambda: harness.connection.refusal)
            await until(lambda: caplog.messages)
            [condition] = [
                each for each in harness.connection.conditions if each.kind is ConditionType.CONFIGURED
            ]

    assert "9984 further errors" in harness.connection.refusal or harness.connection.refusal.endswith("…")
    assert len(condition.message.encode()) <= REFUSAL_BYTES
    assert max(map(len, caplog.messages)) <= 2 * REASON_BYTES


async def test_a_plugin_that_fails_anew_all_the_time_fills_no_log(caplog):
    """A plugin that breaks the connection with another text each time is logged at a bounded rate."""
    plugin, turns = Scripted(), iter(range(10**9))

    async def greeting(_request, _context):
        return identity_pb2.HandshakeResponse(name=f"other-{next(turns)}", supported_versions=[1])

    plugin.replies["Handshake"] = greeting
    with caplog.at_level(logging.WARNING):
        async with hosted(plugin):
            await until(lambda: next(turns) > 3 * LINES_AT_ONCE)

    assert 0 < len(caplog.messages) <= LINES_AT_ONCE + 2


# The introduction.


@pytest.mark.parametrize(
    ("capabilities", "problem"),
    [
        pytest.param(
            {"state": [CORE(version="v1", resource="../../api/v1/secrets?x=")]},
            "not plural.version.group in DNS names",
            id="a path",
        ),
        pytest.param(
            {"state": [CORE(version="v1", resource="secrets")]}, "of the core group plugins see", id="secrets"
        ),
        pytest.param(
            {"state": [CORE(group="x.example", version="v1", resource=f"k{i}") for i in range(500)]},
            "500 kinds to watch, at most 32 are read",
            id="500 kinds",
        ),
        pytest.param(
            {"events": [identity_pb2.EventInterest(resource="Node")] * 10_000},
            "10000 event interests",
            id="events",
        ),
        pytest.param(
            {"pod_fields": identity_pb2.PodFields(paths=["/a" * 5000])},
            "no JSON pointer",
            id="deep pod field",
        ),
    ],
)
async def test_a_wish_that_is_refused(capabilities, problem):
    """A plugin that asks for what it can't have is not used, and nothing of it is asked of the API server."""
    resources = capabilities.pop("state", ())
    interest = identity_pb2.StateInterest(nodes=True, resources=resources)
    plugin, started = Scripted(state=interest, **capabilities), []
    async with hosted(plugin) as harness:
        harness.watch = lambda kind, _handler: started.append(kind)
        await until(lambda: harness.connection.refusal)

    assert problem in harness.connection.refusal
    assert [] == started


async def test_a_name_of_a_megabyte():
    """A plugin that has another name is refused with as much of that as a message has room for."""
    plugin = Scripted()
    plugin.replies["Handshake"] = identity_pb2.HandshakeResponse(
        name="n" * 200_000, supported_versions=[1] * 99
    )
    async with hosted(plugin) as harness:
        await until(lambda: harness.connection.refusal)

    assert len(harness.connection.refusal) < 1000


async def test_points_and_actions_of_no_known_kind():
    """Numbers that this host has no name for do not break the description of the plugin."""
    events = [identity_pb2.EventInterest(resource="Node", actions=[77])]
    plugin = Scripted(identity_pb2.EXTENSION_POINT_FILTER, 99, events=events)
    async with hosted(plugin) as harness:
        await harness.up()
        described = description(harness.host.versions[NAME], (), ())

    assert ["#99", "Filter"] == described["extensionPoints"]
    assert ["Node: #77"] == described["events"]


# What it asks to be written, and done.


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (
            {"labels": {"pod-template-hash": None}},
            "may not write pod-template-hash: it belongs to Kubernetes",
        ),
        ({"labels": {"app.kubernetes.io/name": "x"}}, "may not write app.kubernetes.io/name"),
        ({"annotations": {"team": "x"}}, "may not write team: name it under metadataKeys"),
        ({"annotations": {"scripted/a": "x" * 100_000}}, "bytes, at most 65536 are written"),
        ({"annotations": {f"scripted/{i}": "" for i in range(100)}}, "100 keys, at most 64 are written"),
        ({"labels": {"scripted/a": "x y"}}, "label 'scripted/a': a valid label must be"),
        ({"labels": {"scripted/": "x"}}, "'scripted/' is no key"),
        ({"annotations": {"a/b/c": "x"}}, "'a/b/c' is no key"),
    ],
)
async def test_a_patch_that_is_refused(patch, says):
    """What a plugin may not write fails the call, counts for its circuit, and names plugin and key."""
    plugin = Scripted()
    data = msgspec.json.encode(patch)
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(status=SUCCESS, metadata_patch=data)
    async with hosted(plugin) as harness:
        await harness.up()
        status = await harness.plugin.reserve(cycle(), harness.pod(), "n0")
        assert 1 == harness.connection.breaker._failures

    assert Code.ERROR is status.code
    assert f"plugin {NAME}: metadata patch" in status.message
    assert says in status.message
    assert [] == harness.writer.patches


async def test_a_deeply_nested_patch():
    """A patch that is nested a thousand times is no patch, and no crash."""
    plugin = Scripted()
    patch = b'{"labels":' * 5000 + b"{}" + b"}" * 5000
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(status=SUCCESS, metadata_patch=patch)
    async with hosted(plugin) as harness:
        await harness.up()
        status = await harness.plugin.reserve(cycle(), harness.pod(), "n0")

    assert "metadata patch: " in status.message


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"nominated_node_name": "x" * 100_000}, "which is not there"),
        ({"nominated_node_name": "n1", "victim_uids": ["pod-default-v"] * 1000}, "as a victim twice"),
        ({"nominated_node_name": "n1", "victim_uids": ["y" * 100_000]}, "which is on no node"),
        ({"victim_uids": ["pod-default-v"]}, "victims without success and a node"),
    ],
)
async def test_room_that_can_not_be_made(reply, says):
    """A node that is not there is not written to the pod, and no pod is evicted twice."""
    plugin = Scripted(ROOM)
    plugin.replies["PostFilter"] = scheduling_pb2.PostFilterResponse(status=SUCCESS, **reply)
    diagnosis = SimpleNamespace(
        node_names=("n0", "n1", "n2"), absent=SimpleNamespace(reasons=()), rejections=(), single={}
    )
    async with hosted(plugin, policy={"postFilter": "Fail"}) as harness:
        harness.cache.add_pod(harness.pod("v", node_name="n1"))
        harness.step()
        await harness.up()
        result = await harness.plugin.post_filter(cycle(), harness.pod(), diagnosis)

    assert len(result.status.message.encode()) <= REASON_BYTES + len("...")
    assert says in result.status.message or result.status.message.endswith("…")


# Floods.


async def test_nacks_without_end():
    """A plugin that wants the state again and again is hung up on, and does not get it any more."""
    plugin, begun = Scripted(), []

    async def never_content(requests, _context):
        yield state_pb2.SyncResponse(held=state_pb2.Held())
        async for request in requests:
            if request.HasField("begin"):
                begun.append(request)
            if request.HasField("commit"):
                yield state_pb2.SyncResponse(ack=state_pb2.Ack(generation=request.commit.generation))
                yield state_pb2.SyncResponse(nack=state_pb2.Nack(message="again\n" * 1000))

    plugin.sync = never_content
    async with hosted(plugin) as harness:
        await until(lambda: "wants the whole state more than" in harness.connection.last_error)

    assert TRANSFERS_AT_ONCE <= len(begun) <= TRANSFERS_AT_ONCE + 1


async def test_steps_that_are_never_acknowledged(monkeypatch):
    """A plugin that takes steps and says nothing of them is hung up on."""
    monkeypatch.setattr(state_stream, "ACK_SECONDS", 0.05)
    plugin = Scripted()

    async def silent(requests, _context):
        yield state_pb2.SyncResponse(held=state_pb2.Held())
        async for request in requests:
            if request.HasField("commit"):
                yield state_pb2.SyncResponse(ack=state_pb2.Ack(generation=request.commit.generation))

    plugin.sync = silent
    async with hosted(plugin) as harness:
        await harness.up()
        harness.add_nodes("n9")
        await until(lambda: "was not acknowledged within" in harness.connection.last_error)


class Flood:
    """A stream that brings answers to calls that were not made."""

    def __init__(self, *messages):
        self._messages = iter(messages)

    def Converse(self):  # noqa: N802 - as in the generated stub
        return self

    async def read(self):
        return next(self._messages)


@pytest.mark.parametrize("further", [0, 100_000])
async def test_answers_to_nothing(further):
    """A stream on which there are more answers than calls is ended by the first."""
    answer = scheduling_pb2.ConverseResponse(id=1)
    answer.also.extend([scheduling_pb2.ConverseResponse()] * further)
    talk = Conversation(Flood(answer))

    with pytest.raises(RpcError, match="answers to calls that were not made"):
        await talk.run()


async def test_an_answer_that_never_comes_is_forgotten():
    """A call without an answer leaves nothing behind once its time is up."""
    plugin = Scripted()

    async def never(_request, _context):
        await asyncio.Event().wait()

    plugin.replies["FilterScore"] = never
    async with hosted(plugin, timeout_seconds=0.05) as harness:
        await harness.up()
        with pytest.raises(SidecarError, match="not answered in time"):
            await harness.filter()
        assert 1 == harness.connection._late


# Vectors.


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"verdicts": scheduling_pb2.Verdicts(each=b"\0" * 1_000_000)}, "1000000 verdicts for 3 nodes"),
        ({"verdicts": scheduling_pb2.Verdicts(all=2**32 - 1)}, "is not in the table of 0"),
        ({"verdicts": scheduling_pb2.Verdicts(each=b"\0\1\0")}, "reason code 1 is not in the table of 0"),
        ({"generation": 2**62}, "it holds generation"),
        ({"generation": -1}, "answered for generation -1"),
        ({"status": common_pb2.Status(code=99)}, "status code 99 means nothing"),
    ],
)
async def test_vectors_that_can_not_be(changes, says):
    """A vector of another length, a code without a reason, or a number of no meaning fails the call."""

    async def answer(request, _context):
        return passing(request, **changes)

    text, failures = await failure_of(answer)

    assert says in text
    assert 1 == failures


def test_listed_columns_without_end():
    """More columns than there are pods are refused before they are looked at."""
    listed = queueing_pb2.Hint(listed=queueing_pb2.PodColumns(columns=range(1_000_000)))

    with pytest.raises(ProtocolError, match="1000000 listed columns of 3 pods"):
        hints_of("p", queueing_pb2.QueueingHintsResponse(hints=[listed]), 1, 3)


# HTTP extenders.


async def test_an_extenders_reply_without_end():
    """A reply that is larger than any answer to the question is not read to its end."""
    async with (
        serving(Webhook(filter={"NodeNames": ["x" * 10_000_000]})) as webhook,
        client_of(webhook, filterVerb="filter", nodeCacheCapable=True) as client,
    ):
        with pytest.raises(ReplyError, match="answers filter with more than"):
            await client.filter(attempt(), NODES)


async def test_an_extender_names_a_victim_again_and_again():
    """A pod is evicted once, however often an extender names it."""
    victim = {"Pods": [{"UID": "uid-v"}] * 1000}
    there = {"uid-v": SimpleNamespace(pod="v")}
    nodes = SimpleNamespace(row_of={"n0": 0}, pods=[there])
    async with client_of(SimpleNamespace(url="http://127.0.0.1:1/"), preemptVerb="preempt") as client:
        answer = wire.preempt_reply(msgspec.json.encode({"NodeNameToMetaVictims": {"n0": victim}}))
        victims = client._victims(SimpleNamespace(nodes=nodes), "n0", answer["n0"])

    assert ("v",) == victims.pods


def test_an_extenders_texts_are_cut():
    """Why a node does not pass is bounded, and so is the extender's error."""
    reply = wire.filter_reply(msgspec.json.encode({"FailedNodes": {"n0": "x" * 100_000}}), by_name=True)
    with pytest.raises(ReplyError) as failed:
        wire.bind_reply(msgspec.json.encode({"Error": "y" * 100_000}))

    assert REASON_BYTES == len(reply.failed["n0"].encode())
    assert REASON_BYTES == len(str(failed.value).encode())


def test_an_extenders_scores_wrap_around():
    """Scores of one node that come twice add up as Go's int64 does, and fit into a column."""
    entry = {"Host": "n0", "Score": 2**63 - 1}

    assert {"n0": -2} == wire.prioritize_reply(msgspec.json.encode([entry, entry]))
