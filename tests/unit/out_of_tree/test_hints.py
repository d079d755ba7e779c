"""Hints that a plugin is asked for: what it is sent, what its answers mean, and what becomes of the pods."""

import asyncio

import msgspec
import numpy as np
import pytest

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.queueing.object_events import NODE_ADD
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod import PodCondition
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.packing import hints_of
from berth.out_of_tree.queueing import hint_asker
from berth.out_of_tree.queueing.waiting_hints import requeue_event
from berth_plugin_proto import identity_pb2, queueing_pb2
from berth_sdk import testing as documents
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, Scripted, hosted, rejected, until

HINTS = identity_pb2.EXTENSION_POINT_QUEUEING_HINTS
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)


def asking(answer, **interest):
    """A plugin that is asked about new and relabelled nodes, and answers like that."""
    actions = [identity_pb2.ACTION_TYPE_ADD, identity_pb2.ACTION_TYPE_UPDATE_NODE_LABEL]
    events = [identity_pb2.EventInterest(resource="Node", actions=actions, ask_hint=True, **interest)]
    plugin = Scripted(identity_pb2.EXTENSION_POINT_FILTER, HINTS, events=events)

    async def reply(request, _context):
        return answer(request) if callable(answer) else answer

    plugin.replies["QueueingHints"] = reply
    return plugin


def all_of(request, *, queue):
    return queueing_pb2.QueueingHintsResponse(hints=[queueing_pb2.Hint(all=queue) for _ in request.events])


def node(harness, name="new", version="1", **fields):
    """A node that the watch has brought."""
    document = documents.make_node(name, **fields)
    document["metadata"]["resourceVersion"] = version
    return harness.host.nodes.decoding(decoder(Node))(msgspec.json.encode(document))


def waiting(harness, *names):
    """Pods that the plugin rejected."""
    return [rejected(harness.queue, harness.pod(name), NAME) for name in names]


def active(harness):
    return sorted(record.pod.name for record in harness.queue._sub_queues.active)


async def queued_for_a_node(plugin, *names, count=1):
    """Which of these pods a new node queues, once there are so many: the plugin had rejected all of them."""
    async with hosted(plugin) as harness:
        await harness.up()
        waiting(harness, *names)
        harness.queue.move_all(NODE_ADD, None, node(harness))
        await until(lambda: len(active(harness)) >= count)
        return active(harness)


def saying_no_after(release):
    """A plugin that says no, once that happened."""

    async def slow(request, _context):
        await release.wait()
        return all_of(request, queue=False)

    plugin = asking(None)
    plugin.replies["QueueingHints"] = slow
    return plugin


async def test_asked_once_for_all_pods():
    """One event and many pods are one call; the pods it names are queued, the others stay."""
    listed = queueing_pb2.Hint(listed=queueing_pb2.PodColumns(columns=[1]))
    plugin = asking(queueing_pb2.QueueingHintsResponse(hints=[listed]))

    assert ["b"] == await queued_for_a_node(plugin, "a", "b", "c")
    (request,) = plugin.requests("QueueingHints")
    assert [f"pod-default-{name}" for name in "abc"] == [ref.uid for ref in request.pods]
    (event,) = request.events
    assert ("Node", identity_pb2.ACTION_TYPE_ADD) == (event.resource, event.action)
    assert b'"name":"new"' in event.new_object
    assert not event.HasField("old_object")


@pytest.mark.parametrize(
    ("change", "queued"),
    [
        pytest.param({"conditions": (PodCondition("PodScheduled", "False"),)}, [], id="its own rejection"),
        pytest.param({"nominated_node_name": "n1"}, [], id="its own nomination"),
        pytest.param({"annotations": {"a": "b"}}, ["a"], id="annotations"),
        pytest.param({"resource_claim_statuses": ({"name": "c"},)}, ["a"], id="a claim"),
    ],
)
async def test_an_update_of_the_waiting_pod(change, queued):
    """It is tried again where it changed, not because its failed attempt was written to it."""
    async with hosted(asking(all_of)) as harness:
        await harness.up()
        (record,) = waiting(harness, "a")
        old = record.pod
        metadata, status = old.metadata, old.status
        if "annotations" in change:
            metadata = msgspec.structs.replace(metadata, **change)
        else:
            status = msgspec.structs.replace(status, **change)
        harness.queue.update(old, msgspec.structs.replace(old, metadata=metadata, status=status))

        assert queued == active(harness)


async def test_what_is_awaited_is_what_the_plugin_announced():
    """It registers for every event of pods and nodes; an explanation names what it declared, and its news."""
    async with hosted(asking(all_of)) as harness:
        before = [*harness.hints.awaited_by(NAME)]
        await harness.up()
        after = [*harness.hints.awaited_by(NAME)]

    added_or_relabelled = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    assert ClusterEvent(EventResource.POD, ActionType.ALL) in before
    assert [added_or_relabelled, requeue_event(NAME)] == after


async def test_both_versions_are_shown():
    """A changed object goes along as it was and as it is, byte by byte."""
    plugin = asking(lambda request: all_of(request, queue=True))
    async with hosted(plugin) as harness:
        await harness.up()
        waiting(harness, "a")
        old = node(harness, labels={"zone": "a"})
        new = node(harness, version="2", labels={"zone": "b"})
        harness.queue.move_all(NODE_LABEL, old, new)
        await until(lambda: active(harness))

    (event,) = plugin.requests("QueueingHints")[0].events
    assert [b'"zone":"a"' in event.old_object, b'"zone":"b"' in event.new_object] == [True, True]


async def test_a_burst_is_few_calls():
    """What happens while a question is on its way is asked together afterwards."""
    release = asyncio.Event()
    plugin = saying_no_after(release)
    async with hosted(plugin) as harness:
        await harness.up()
        waiting(harness, "a")
        for i in range(10):
            harness.queue.move_all(NODE_ADD, None, node(harness, f"m{i}"))
            await asyncio.sleep(0)
        await until(lambda: plugin.requests("QueueingHints"))
        release.set()
        await until(lambda: sum(len(r.events) for r in plugin.requests("QueueingHints")) == 10)

    assert len(plugin.requests("QueueingHints")) <= 2


async def test_unknown_pods_are_asked_about_again():
    """Pods that the plugin does not remember are sent whole, and only those."""

    def answer(request):
        if request.pods[0].HasField("object"):
            return queueing_pb2.QueueingHintsResponse(hints=[queueing_pb2.Hint(all=True)])
        return queueing_pb2.QueueingHintsResponse(hints=[queueing_pb2.Hint(all=False)], unknown_pods=b"\2")

    plugin = asking(answer)

    assert ["b"] == await queued_for_a_node(plugin, "a", "b")
    first, second = plugin.requests("QueueingHints")
    assert ([2, 1], ["b"]) == ([len(first.pods), len(second.pods)], [ref.name for ref in second.pods])


async def test_many_unknown_pods(monkeypatch):
    """Objects of pods go in as many calls as messages need, and each pod gets the answer about it."""
    monkeypatch.setattr(hint_asker, "MAX_POD_BYTES", 1)

    def answer(request):
        if request.pods[0].HasField("object"):
            return all_of(request, queue=request.pods[0].name != "b")
        return queueing_pb2.QueueingHintsResponse(hints=[queueing_pb2.Hint(all=False)], unknown_pods=b"\7")

    plugin = asking(answer)

    assert ["a", "c"] == await queued_for_a_node(plugin, "a", "b", "c", count=2)
    assert [3, 1, 1, 1] == [len(request.pods) for request in plugin.requests("QueueingHints")]


async def test_more_pods_than_a_call_is_about(monkeypatch):
    """They go in several calls, and each pod gets the answer about it."""
    monkeypatch.setattr(hint_asker, "MAX_PODS", 2)
    plugin = asking(lambda request: all_of(request, queue=len(request.pods) == 1))

    assert ["c"] == await queued_for_a_node(plugin, "a", "b", "c")
    assert [2, 1] == [len(request.pods) for request in plugin.requests("QueueingHints")]


async def test_too_many_events_for_a_slow_plugin(monkeypatch):
    """What finds no room behind the events that a plugin has yet to answer is worth an attempt."""
    monkeypatch.setattr(hint_asker, "MAX_WAITING", 2)
    release = asyncio.Event()
    async with hosted(saying_no_after(release)) as harness:
        await harness.up()
        waiting(harness, "a")
        for i in range(3):
            assert [] == active(harness)
            harness.queue.move_all(NODE_ADD, None, node(harness, f"m{i}"))
        assert ["a"] == active(harness)
        release.set()


@reports("hints-fail", log="`hints failed, the pods are queued`, with the cause")
@pytest.mark.parametrize(
    "answer",
    [
        queueing_pb2.QueueingHintsResponse(),
        queueing_pb2.QueueingHintsResponse(hints=[queueing_pb2.Hint()]),
        b"\xff\xff",
    ],
)
async def test_an_error_means_queue(answer, caplog):
    """Whatever goes wrong with a question, the pods are tried again."""
    assert ["a", "b"] == await queued_for_a_node(asking(answer), "a", "b", count=2)
    assert "hints failed, the pods are queued err=plugin scripted: " in caplog.text


async def test_what_the_host_can_tell_is_not_asked():
    """A declared condition that fails keeps the pod where it is, without a call."""
    plugin = asking(None, label_selector="zone=b")
    async with hosted(plugin) as harness:
        await harness.up()
        waiting(harness, "a")
        harness.queue.move_all(NODE_ADD, None, node(harness))
        await asyncio.sleep(0)
        assert [] == active(harness)
        assert harness.plugin.caller.connection.ready

    assert [] == plugin.requests("QueueingHints")


@pytest.mark.parametrize(
    ("interest", "queued"),
    [
        ({"equal_labels": ["team"]}, ["same"]),
        ({"pod_label_names_object": "wants"}, ["named"]),
        ({"same_namespace": True}, []),
    ],
)
async def test_pods_that_belong_to_the_object(interest, queued):
    """Namespace, equal labels or a label with the object's name decide without a call."""
    actions = [identity_pb2.ACTION_TYPE_ADD]
    events = [identity_pb2.EventInterest(resource="Node", actions=actions, **interest)]
    async with hosted(Scripted(identity_pb2.EXTENSION_POINT_FILTER, events=events)) as harness:
        await harness.up()
        labels = {"same": {"team": "red"}, "other": {"team": "blue"}, "none": {}, "named": {"wants": "new"}}
        for name, theirs in labels.items():
            rejected(harness.queue, harness.pod(name, labels=theirs), NAME)
        harness.queue.move_all(NODE_ADD, None, node(harness, labels={"team": "red"}))

    assert queued == active(harness)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"matrix": b"\0"}, "1 bytes of hints for 2 x 9"),
        ({"matrix": b"\0" * 4, "hints": [queueing_pb2.Hint(all=True)]}, "both hints and a matrix"),
        ({"hints": [queueing_pb2.Hint(all=True)]}, "1 hints for 2 events"),
        ({"hints": [queueing_pb2.Hint(pods=b"\0")] * 2}, "1 bytes of bitmap for 9 entries"),
        (
            {"hints": [queueing_pb2.Hint(listed=queueing_pb2.PodColumns(columns=[9]))] * 2},
            "listed columns of 9 pods that are not ascending, or not there",
        ),
        ({"hints": [queueing_pb2.Hint()] * 2}, "a hint without an answer"),
    ],
)
def test_wrong_tables(fields, says):
    """A table that does not fit the question is refused with a text that says why."""
    with pytest.raises(ProtocolError, match=says):
        hints_of(NAME, queueing_pb2.QueueingHintsResponse(**fields), 2, 9)


def test_tables():
    """The three forms of an answer say the same."""
    wanted = np.zeros((2, 9), dtype=bool)
    wanted[0, [0, 8]] = wanted[1] = True
    packed = queueing_pb2.QueueingHintsResponse(matrix=b"\1\1\xff\1")
    rows = queueing_pb2.QueueingHintsResponse(
        hints=[
            queueing_pb2.Hint(listed=queueing_pb2.PodColumns(columns=[0, 8])),
            queueing_pb2.Hint(all=True),
        ]
    )
    bitmaps = queueing_pb2.QueueingHintsResponse(
        hints=[queueing_pb2.Hint(pods=b"\1\1"), queueing_pb2.Hint(pods=b"\xff\1")]
    )

    assert all((wanted == hints_of(NAME, each, 2, 9)).all() for each in (packed, rows, bitmaps))
