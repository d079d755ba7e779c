"""What plugins are sent of the cluster, and what they say about the queue."""

import msgspec
import pytest

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.cluster_event import EventResource, QueueingHint
from berth.framework.status import Code, Status, failed
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.cluster_state import state_feed
from berth.out_of_tree.connections.event_interest import compiled
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_node, make_pod
from berth_plugin_proto import identity_pb2, queueing_pb2, scheduling_pb2, state_pb2
from berth_sdk import testing as documents
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, PROFILE, Harness, Scripted, hosted, rejected, until

GPU = "example.com/gpu"


@pytest.fixture
def harness(tmp_path):
    """A host that has not been started, with three nodes, which the plugin was sent."""
    found = Harness(tmp_path / "p.sock")
    found.add_nodes("n0", "n1", "n2")
    assert list(feed_of(found).transfer())
    return found


def feed_of(harness):
    return harness.plugin.caller.feed


def narrowed(harness, **interest):
    """The feed of a plugin with that interest, which was sent the whole state."""
    feed = feed_of(harness)
    feed.narrow(identity_pb2.StateInterest(**interest))
    assert list(feed.transfer())
    return feed


def changes(delta):
    return [change.WhichOneof("change") for change in delta.changes]


def test_steps_follow_rows(harness):
    """A removed node's row is taken by the last one, and later steps count on that."""
    harness.cache.remove_node(harness.cache.node_info("n0").node)
    harness.add_nodes("n3")

    (delta,) = feed_of(harness).since(1)
    assert ["node_remove", "node_upsert"] == changes(delta)
    assert (0, "n0") == (delta.changes[0].node_remove.index, delta.changes[0].node_remove.name)
    assert (2, 3) == (delta.changes[1].node_upsert.index, delta.node_count)
    assert ["n2", "n1", "n3"] == harness.snapshot.names


def test_nothing_is_kept_for_a_plugin_that_holds_nothing(tmp_path):
    """Until it was sent the whole state there is no step to tell, and then all of it is the newest."""
    harness = Harness(tmp_path / "p.sock")
    harness.add_nodes("n0", "n1")
    harness.cache.remove_node(harness.cache.node_info("n0").node)
    harness.add_nodes("n2")
    feed = feed_of(harness)

    assert (2, None) == (feed.generation, feed.since(1))
    *_, last = feed.transfer()
    assert (2, 2, []) == (last.commit.generation, last.commit.node_count, feed.since(2))
    harness.add_nodes("n3")
    (delta,) = feed.since(2)
    assert (2, "n3") == (delta.changes[0].node_upsert.index, delta.changes[0].node_upsert.name)


def test_a_step_that_is_no_matter_to_the_plugin(harness):
    """It makes no generation: calls go on to ask about the one that the plugin holds."""
    feed = narrowed(harness, nodes=True)
    harness.cache.add_pod(harness.pod().placed_on("n0"))
    harness.step()

    assert (1, []) == (feed.generation, feed.since(1))


def test_what_is_held_of_other_wishes(harness):
    """No step leads from it to what the plugin wants now: it is sent the whole state."""
    feed = feed_of(harness)
    assert [] == feed.since(1)
    feed.narrow(identity_pb2.StateInterest(nodes=True))

    assert (1, None) == (feed.generation, feed.since(1))


def test_pod_stages(harness):
    """An assumed pod comes with its attempt, its placed form without a removal in between."""
    pod = harness.pod().placed_on("n1")
    feed_of(harness).reserving(pod.uid, 3)
    harness.cache.assume_pod(pod)
    harness.step()
    harness.cache.add_pod(pod)
    harness.step()

    stages = [delta.changes[0].pod_upsert for delta in feed_of(harness).since(1)]
    assert [
        (state_pb2.POD_STAGE_ASSUMED, 3),
        (state_pb2.POD_STAGE_PLACED, 0),
    ] == [(upsert.stage, upsert.attempt) for upsert in stages]


def test_a_pod_that_a_planner_makes_up_has_an_object(harness):
    """A pod on trial that no API server knows is shown by what is known of it."""
    made_up = make_pod("made-up").placed_on("n1")
    harness.cache.try_pod(harness.snapshot, 1, PodInfo(made_up))

    upsert = feed_of(harness).since(1)[-1].changes[0].pod_upsert
    assert "made-up" == msgspec.json.decode(upsert.object)["metadata"]["name"]


def test_a_pod_that_goes_before_the_next_step(harness):
    """A plugin that was asked to hold something for it sees it come and go."""
    held, other = (harness.pod(name).placed_on("n1") for name in ("held", "other"))
    feed_of(harness).reserving(held.uid, 3)
    harness.cache.assume_pod(held)
    harness.cache.add_pod(other)
    for pod in (held, other):
        harness.cache.remove_pod(pod)
        harness.host.pods.drop(pod.uid)
    harness.step()

    (delta,) = feed_of(harness).since(1)
    assert ["pod_upsert", "pod_remove", "pod_remove"] == changes(delta)
    came = delta.changes[0].pod_upsert
    assert (held.uid, "n1", state_pb2.POD_STAGE_ASSUMED, 3) == (
        came.uid,
        came.node_name,
        came.stage,
        came.attempt,
    )
    assert b'"held"' in came.object
    assert held.uid == delta.changes[1].pod_remove.uid


def test_a_pod_is_reserved_again(harness):
    """What an attempt left behind does not stay: after the pod's first step nothing is known of it."""
    pod = harness.pod().placed_on("n1")
    feed_of(harness).reserving(pod.uid, 1)
    harness.cache.assume_pod(pod)
    harness.step()
    harness.cache.forget_pod(pod)
    harness.step()
    harness.cache.assume_pod(pod)
    harness.step()

    removal, again = feed_of(harness).since(2)
    assert (["pod_remove"], ["pod_upsert"]) == (changes(removal), changes(again))
    assert 0 == again.changes[0].pod_upsert.attempt


@pytest.mark.parametrize(
    ("without_status", "changed", "sent", "noted"),
    [
        pytest.param(False, {"phase": "Running"}, ["pod_upsert"], ["n1"], id="status"),
        pytest.param(True, {"phase": "Running"}, [], [], id="status, not wanted"),
        pytest.param(True, {"annotations": {"a": "b"}}, ["pod_upsert"], ["n1"], id="annotations"),
        pytest.param(True, {"labels": {"a": "b"}}, ["pod_upsert"], ["n1"], id="labels"),
    ],
)
def test_another_version_of_a_pod(harness, without_status, changed, sent, noted):
    """It is sent, and its node noted, unless nothing changed that the plugin wants."""
    narrowed(harness, nodes=True, pods=True, pods_without_status=without_status)
    pod = harness.pod().placed_on("n1")
    harness.cache.add_pod(pod)
    harness.step()
    position = feed_of(harness).touched.end
    metadata, status = pod.metadata, pod.status
    if "phase" in changed:
        status = msgspec.structs.replace(status, **changed)
    else:
        metadata = msgspec.structs.replace(metadata, **changed)
    harness.cache.update_pod(pod, msgspec.structs.replace(pod, metadata=metadata, status=status))
    harness.step()

    assert sent == [change for delta in feed_of(harness).since(2) for change in changes(delta)]
    assert noted == [harness.snapshot.names[row] for row in feed_of(harness).touched.since(position)]


def test_a_pod_that_is_placed_is_sent_without_its_status_too(harness):
    """From assumed to placed is no change of the status alone."""
    narrowed(harness, nodes=True, pods=True, pods_without_status=True)
    pod = harness.pod().placed_on("n1")
    harness.cache.assume_pod(pod)
    harness.step()
    harness.cache.add_pod(pod)
    harness.step()

    stages = [delta.changes[0].pod_upsert.stage for delta in feed_of(harness).since(1)]
    assert [state_pb2.POD_STAGE_ASSUMED, state_pb2.POD_STAGE_PLACED] == stages


def test_patched_pod(harness):
    """After a metadata patch the next step brings the assumed pod again."""
    pod = harness.pod().placed_on("n1")
    harness.cache.assume_pod(pod)
    harness.step()
    harness.plugin.caller.around.patched(pod, {"annotations": {"gpu": "1"}})
    harness.add_nodes("n3")

    last = feed_of(harness).since(2)[-1]
    assert ["node_upsert", "pod_upsert"] == changes(last)
    assert b'"gpu":"1"' in last.changes[1].pod_upsert.object


def test_transfer_after_a_pod_was_deleted(harness):
    """A pod whose bytes went before the next step is left out of the whole state."""
    for name in ("stays", "goes"):
        harness.cache.add_pod(harness.pod(name).placed_on("n0"))
    harness.step()
    gone = next(info for info in harness.snapshot.pods[0].values() if info.pod.metadata.name == "goes")
    harness.host.pods.drop(gone.uid)

    (chunk, _) = feed_of(harness).transfer()
    pods = [change.pod_upsert for change in chunk.chunk.changes if change.HasField("pod_upsert")]

    assert [b"stays"] == [name for pod in pods for name in (b"stays", b"goes") if name in pod.object]
    assert all(pod.object for pod in pods)


def test_large_step(harness, monkeypatch):
    """A step too large for a message goes out as a transfer, in chunks."""
    monkeypatch.setattr(state_feed, "MAX_DELTA_BYTES", 1000)
    monkeypatch.setattr(state_feed, "CHUNK_BYTES", 1000)
    harness.add_nodes(*(f"m{i}" for i in range(20)))

    bodies = [request.WhichOneof("body") for request in feed_of(harness).transfer()]
    assert feed_of(harness).since(1) is None
    assert [] == feed_of(harness).since(2)
    assert bodies[-1] == "commit"
    assert bodies.count("chunk") > 3


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({"nodes": True, "pods": True}, (3, 2), id="everything"),
        pytest.param({"nodes": True}, (3, 0), id="nodes"),
        pytest.param({"pods": True}, (0, 2), id="pods"),
        pytest.param({"nodes": True, "pods": True, "pod_resources": [GPU]}, (3, 1), id="pods with GPUs"),
    ],
)
def test_interest(harness, wanted, expected):
    """A plugin is sent what it asked for, and counted the nodes that it is sent."""
    narrowed(harness, **wanted)
    harness.cache.add_pod(harness.pod("plain").placed_on("n0"))
    harness.cache.add_pod(harness.pod("gpu", requests={GPU: "1"}).placed_on("n0"))
    harness.step()

    *chunks, commit = feed_of(harness).transfer()
    sent = [change.WhichOneof("change") for each in chunks for change in each.chunk.changes]
    assert expected == (sent.count("node_upsert"), sent.count("pod_upsert"))
    counts = {delta.node_count for delta in feed_of(harness).since(1)}
    assert expected[0] == commit.commit.node_count
    assert counts == ({expected[0]} if wanted.get("pods") else set())


def interested(harness, **interest):
    """The hint for updates of nodes, by a plugin that declared one interest."""
    harness.connection.starts = 1
    harness.connection.interests = compiled([identity_pb2.EventInterest(resource="Node", **interest)])
    return hint_for_nodes(harness)


def hint_for_nodes(harness):
    """The plugin's hint function for nodes."""
    registered = {str(each.event.resource): each.hint for each in harness.plugin.events_to_register()}
    return registered[EventResource.NODE]


UPDATED = [identity_pb2.ACTION_TYPE_UPDATE]
POD = decode_pod(msgspec.json.encode(documents.make_pod("waiting")))


@pytest.mark.parametrize(
    ("interest", "hint"),
    [
        pytest.param({"actions": UPDATED}, QueueingHint.QUEUE, id="any update"),
        pytest.param({"actions": [identity_pb2.ACTION_TYPE_DELETE]}, QueueingHint.SKIP, id="other action"),
        pytest.param({"actions": UPDATED, "label_selector": "zone=b"}, QueueingHint.QUEUE, id="selected"),
        pytest.param({"actions": UPDATED, "label_selector": "zone!=b"}, QueueingHint.SKIP, id="not selected"),
        pytest.param(
            {"actions": UPDATED, "label_selector": "zone in (a, b)"}, QueueingHint.QUEUE, id="one of"
        ),
        pytest.param(
            {"actions": UPDATED, "label_selector": "zone notin (b)"}, QueueingHint.SKIP, id="none of"
        ),
        pytest.param({"actions": UPDATED, "label_selector": "zone > a"}, QueueingHint.QUEUE, id="unread"),
        pytest.param(
            {"actions": UPDATED, "changed_fields": ["/metadata/labels/zone"]},
            QueueingHint.QUEUE,
            id="changed",
        ),
        pytest.param(
            {"actions": UPDATED, "changed_fields": ["/metadata/labels/other"]}, QueueingHint.SKIP, id="same"
        ),
        pytest.param(
            {"actions": UPDATED, "changed_fields": ["/metadata/managedFields"]},
            QueueingHint.QUEUE,
            id="a field that is not decoded",
        ),
    ],
)
def test_hints(harness, interest, hint):
    """Declared conditions are evaluated here; what is unknown counts as worth an attempt."""
    old, new = (make_node("n9", labels={"zone": zone}) for zone in "ab")
    assert isinstance(new, Node)

    assert hint is interested(harness, **interest)(POD, old, new)


def test_hint_of_a_stranger(harness):
    """Until a plugin has introduced itself its pods are queued at every event."""
    assert QueueingHint.QUEUE is hint_for_nodes(harness)(POD, None, make_node("n0"))


@pytest.mark.parametrize(
    ("action", "activated"),
    [
        ({"requeue_all": queueing_pb2.AllRejected()}, ["mine", "mine-too"]),
        ({"requeue": queueing_pb2.PodSet(uids=["pod-default-mine", "pod-default-other"])}, ["mine"]),
        ({}, []),
    ],
)
def test_requeue(harness, action, activated):
    """A plugin brings back the pods that it rejected, all or some, and no other plugin's."""
    for name, rejector in {"mine": NAME, "mine-too": NAME, "other": "X"}.items():
        rejected(harness.queue, harness.pod(name), rejector)
    harness.host._on_requeue(harness.connection, queueing_pb2.RequeueResponse(**action))

    assert activated == [record.pod.name for record in iter(harness.queue.pop, None)]


def fit_error(*plugins):
    diagnosis = Diagnosis(["n0"], unschedulable_plugins=set(plugins))
    return Status(Code.UNSCHEDULABLE, error=FitError(diagnosis, 1))


@pytest.mark.parametrize(
    ("result", "status", "outcome", "rejected"),
    [
        ("scheduled", Status(), scheduling_pb2.CYCLE_OUTCOME_BOUND, False),
        ("unschedulable", fit_error(NAME, "X"), scheduling_pb2.CYCLE_OUTCOME_UNSCHEDULABLE, True),
        ("unschedulable", fit_error("X"), scheduling_pb2.CYCLE_OUTCOME_UNSCHEDULABLE, False),
        ("error", failed("broken"), scheduling_pb2.CYCLE_OUTCOME_FAILED, False),
    ],
)
async def test_cycle_done(result, status, outcome, rejected):
    """At the end of an attempt the plugin hears how it ended, and whether that was its own doing."""
    plugin = Scripted()
    async with hosted(plugin) as harness:
        await harness.up()
        record = CycleRecord(
            harness.pod(), PROFILE, 4, b"t" * 16, b"s" * 8, 0, 0, 0, status=status, result=result
        )
        for _, work in harness.host.cycles_done(record):
            await work
        await until(lambda: plugin.requests("CycleDone"))

    (reported,) = plugin.requests("CycleDone")
    assert (outcome, rejected, 4) == (
        reported.outcome,
        reported.rejected_by_plugin,
        reported.call.pod.attempt,
    )


@reports("plugins-late", log="`scheduling without plugins that are not there yet`, with their names")
async def test_plugins_that_are_late(harness, caplog):
    """The first pods wait for them only so long, and the log says for whom they waited in vain."""
    await harness.host.settle(0.0)

    assert [f"scheduling without plugins that are not there yet plugins={NAME}"] == caplog.messages
