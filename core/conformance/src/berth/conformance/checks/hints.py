"""QueueingHints: the table of events and pods, and events that help but are not said to."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import msgspec
import numpy as np

from berth.conformance.answers import filtered, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, shown
from berth.conformance.samples import Document, renamed
from berth.conformance.subject import PluginUnderTest, brief, readable, skip
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.connections.event_interest import actions_of_change, compiled
from berth.out_of_tree.packing import bits_of, hints_of
from berth.snapshot.columns.growing import Mask
from berth_plugin_proto import identity_pb2, queueing_pb2

CLAUSE = "Hints"
NEEDS = ("QUEUEING_HINTS",)
MANY_PODS, MANY_EVENTS = 19, 5
_node, _pod = decoder(Node), decode_pod


def event(
    resource: str, action: Any, old: Document | None, new: Document | None
) -> queueing_pb2.ClusterEvent:
    """A cluster event."""
    return queueing_pb2.ClusterEvent(
        resource=resource,
        action=action,
        old_object=None if old is None else msgspec.json.encode(old),
        new_object=None if new is None else msgspec.json.encode(new),
    )


def node_events(host: HostState) -> list[queueing_pb2.ClusterEvent]:
    """Some events about nodes."""
    nodes = host.nodes or host.subject.nodes()
    relabelled = {**nodes[0], "metadata": {**nodes[0]["metadata"], "labels": nodes[-1]["metadata"]["labels"]}}
    return [
        event("Node", identity_pb2.ACTION_TYPE_UPDATE_NODE_LABEL, nodes[0], relabelled),
        *(event("Node", identity_pb2.ACTION_TYPE_ADD, None, node) for node in nodes[: MANY_EVENTS - 1]),
    ]


async def _answer(
    host: HostState,
    pods: list[Document],
    events: list[queueing_pb2.ClusterEvent],
    *,
    with_object: bool = True,
) -> queueing_pb2.QueueingHintsResponse:
    refs = [host.call(pod, with_object=with_object).pod for pod in pods]
    request = queueing_pb2.QueueingHintsRequest(
        profile=host.subject.options.profile, events=events, pods=refs
    )
    seconds = host.subject.options.seconds
    answer: queueing_pb2.QueueingHintsResponse = readable(
        await host.subject.queueing.QueueingHints(request, timeout=seconds)
    )
    return answer


async def _table(host: HostState, pods: list[Document], events: list[queueing_pb2.ClusterEvent]) -> Mask:
    """Which events queue which pods."""
    answered = hints_of("under test", await _answer(host, pods, events), len(events), len(pods))
    if answered.size:
        host.subject.tried.answered("QueueingHints", answered)
    return answered


def _many(subject: PluginUnderTest) -> list[Document]:
    pods = subject.pods
    return [renamed(pods[i % len(pods)], f"waiting-{i}") for i in range(MANY_PODS)]


@check(
    "hints/table",
    "the table has a row for each event and a column for each pod",
    CLAUSE,
    needs=NEEDS,
)
async def table(subject: PluginUnderTest) -> None:
    """As hints, lists, bitmaps or one matrix."""
    host = await shown(subject)
    events = node_events(host)
    for count in (1, 8, MANY_PODS):
        await _table(host, _many(subject)[:count], events)


@check(
    "hints/nothing-asked",
    "a table without rows or columns is a table",
    CLAUSE,
    needs=NEEDS,
    after=("hints/table",),
)
async def nothing_asked(subject: PluginUnderTest) -> None:
    """Its answer is as empty."""
    host = await shown(subject)
    await _table(host, [], node_events(host))
    await _table(host, subject.pods, [])


@check(
    "hints/deterministic", "the same table has the same answer", CLAUSE, needs=NEEDS, after=("hints/table",)
)
async def deterministic(subject: PluginUnderTest) -> None:
    """Nothing happened between the two."""
    host = await shown(subject)
    events, pods = node_events(host), _many(subject)
    first = await _table(host, pods, events)
    same(first.tolist(), (await _table(host, pods, events)).tolist(), "the same table")


@check(
    "hints/one-by-one",
    "a hint is the same asked alone",
    CLAUSE,
    needs=NEEDS,
    after=(
        "hints/table",
        "hints/deterministic",
    ),
)
async def one_by_one(subject: PluginUnderTest) -> None:
    """Rows and columns do not know of one another."""
    host = await shown(subject)
    events, pods = node_events(host), subject.pods
    together = await _table(host, pods, events)
    alone = np.array([[(await _table(host, [pod], [each]))[0, 0] for pod in pods] for each in events])
    same(together.tolist(), alone.tolist(), "the table as asked at once")


@check(
    "hints/unknown-pods",
    "a pod whose object is not at hand is named and queued",
    CLAUSE,
    needs=NEEDS,
    after=("hints/table",),
)
async def unknown_pods(subject: PluginUnderTest) -> None:
    """Or the hint queues it anyway; it is not passed over."""
    host = await shown(subject)
    pods = [renamed(subject.pods[0], f"never-sent-{host.epoch}")]
    events = node_events(host)
    response = await _answer(host, pods, events, with_object=False)
    unknown = (
        bits_of("under test", response.unknown_pods, 1)[0] if response.HasField("unknown_pods") else False
    )
    queued = hints_of("under test", response, len(events), 1).all()
    expect(unknown or queued, "the pod among unknown_pods", brief(response))


@check(
    "hints/bad-object",
    "an event that can't be decoded is an error, or queues",
    CLAUSE,
    needs=NEEDS,
    after=("hints/table",),
)
async def bad_object(subject: PluginUnderTest) -> None:
    """The host takes an error for: queue them all."""
    host = await shown(subject)
    garbled = queueing_pb2.ClusterEvent(
        resource="Node", action=identity_pb2.ACTION_TYPE_ADD, new_object=b'{"metadata": ['
    )
    try:
        queued = await _table(host, subject.pods[:1], [garbled])
    except grpc.aio.AioRpcError as error:
        gone = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        expect(not gone, "an error, or a hint that queues", error.code().name)
    else:
        expect(queued.all(), "an error, or a hint that queues", "a hint that leaves the pod")


@check(
    "hints/no-miss",
    "an event that lets a rejected pod pass is announced, and not hinted away",
    CLAUSE,
    needs=("FILTER", "nodes"),
    after=(
        "hints/one-by-one",
        "sync/node-update",
    ),
)
async def no_miss(subject: PluginUnderTest) -> None:
    """Otherwise the pod waits for the five-minute flush."""
    host = await shown(subject)
    helped = 0
    for pod in subject.pods:
        before = await filtered(host, pod)
        for row, (node, changed) in enumerate(_changes(host)):
            if before[0] != "SUCCESS" or row >= len(before[2]) or not before[2][row]:
                continue
            await host.step(host.put_node(changed))
            after = await filtered(host, pod)
            if after[0] == "SUCCESS" and not after[2][row]:
                helped += 1
                await _is_queued(host, pod, node, changed)
            await host.step(host.put_node(node))
    if not helped:
        raise skip(
            "no change that the kit knows lets a rejected pod pass; give others with --pods and --nodes"
        )


def _changes(host: HostState) -> Iterator[tuple[Document, Document]]:
    """Each node, and itself with another's labels, room and taints."""
    nodes = list(host.nodes)
    for row, node in enumerate(nodes):
        other = nodes[(row + 1) % len(nodes)]
        metadata = {**node["metadata"], "labels": other["metadata"].get("labels", {})}
        yield node, {**node, "metadata": metadata, "spec": other.get("spec", {}), "status": other["status"]}


async def _is_queued(host: HostState, pod: Document, old: Document, new: Document) -> None:
    """Raises: UnmetError where the host would leave the pod."""
    before, after, waiting = (
        _node(msgspec.json.encode(old)),
        _node(msgspec.json.encode(new)),
        _pod(msgspec.json.encode(pod)),
    )
    actions = actions_of_change(before, after)
    covering = [
        each
        for each in compiled(host.subject.capabilities.events)
        if each.resource == "Node"
        and each.covers(actions, before, after, lambda _: b"")
        and each.concerns(waiting, after)
    ]
    name = f"{pod['metadata']['name']} on {old['metadata']['name']}"
    expect(
        covering, f"an announced event, since labels, room or taints let {name} pass", "none that covers it"
    )
    if not all(each.asks for each in covering) or not host.subject.offers("QUEUEING_HINTS"):
        return
    update = event("Node", identity_pb2.ACTION_TYPE_UPDATE, old, new)
    expect(
        (await _table(host, [pod], [update])).all(),
        f"a hint that queues, since it lets {name} pass",
        "a hint that leaves it",
    )


@check(
    "hints/side-by-side",
    "hints are answered beside calls",
    CLAUSE,
    needs=(*NEEDS, "FILTER"),
    after=(
        "hints/deterministic",
        "hints/table",
    ),
)
async def side_by_side(subject: PluginUnderTest) -> None:
    """They are asked while pods are scheduled."""
    host = await shown(subject)
    events = node_events(host)
    wanted = await _table(host, subject.pods, events)
    came, _ = await asyncio.gather(_table(host, subject.pods, events), filtered(host, subject.pods[0]))
    same(wanted.tolist(), came.tolist(), "the table as asked alone")
