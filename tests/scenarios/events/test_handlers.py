"""What the watch shows, carried into queue and cache (core 1.7 to 1.9, 1.11 to 1.13)."""

import pytest
from msgspec.structs import replace

from berth.event_handlers.resources import StoreHandler, WaitedForHandler
from berth.framework.cluster_event import ActionType as Do
from berth.framework.cluster_event import ClusterEvent, EventResource
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.devices import DeviceClass
from berth.objects.volumes.storage import CSIDriver, PersistentVolumeClaim, VolumeAttachment
from berth.objects.workloads import Namespace
from berth.scheduler.watching.watches import LIVE_PODS, LOOKED_UP
from tests.fakes import Permits, PreBinds
from tests.scenarios.events.listening import Listening
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, SKIP, WAIT, Doorkeeper

CLAIM = EventResource.PERSISTENT_VOLUME_CLAIM
HANDLED = "event_handling_duration_seconds_count"


def meta(name="x", **fields):
    return ObjectMeta(name=name, namespace="default", uid=name, **fields)


# 1.7: who is watched.


async def test_1_7_1_and_11_1_7_a_finished_pod_is_a_deleted_one():
    """The watch leaves pods out that succeeded or failed; the node is free again."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0", cpu="1")
    listening.heard()
    cluster.change_pod("p0", status={"phase": "Succeeded"})

    assert "status.phase!=Succeeded,status.phase!=Failed" == LIVE_PODS
    assert ["AssignedPodDelete"] == listening.heard()
    assert 0 == cluster.cache.pod_count()


async def test_1_7_2_every_node_is_watched_whatever_plugins_say():
    """A profile that waits for nothing knows the nodes all the same."""
    cluster = Cluster(Doorkeeper(hints={}))
    cluster.add_node()

    assert 1 == cluster.cache.node_count()


async def test_1_7_3_other_kinds_move_pods_only_where_a_plugin_waits_for_them():
    """The others are stored, for lookups."""
    cluster = Cluster(Doorkeeper(hints={ClusterEvent(CLAIM, Do.ADD): QUEUE}))
    handlers = cluster.watch.handlers

    assert isinstance(handlers[PersistentVolumeClaim], WaitedForHandler)
    assert isinstance(handlers[CSIDriver], StoreHandler)


async def test_1_7_4_only_registered_actions_make_a_handler_move():
    """The union of the masks of all profiles decides; the objects say what changed."""
    hints = {ClusterEvent(CLAIM, Do.ADD): SKIP, ClusterEvent(CLAIM, Do.UPDATE): SKIP}
    listening = Listening(hints=hints)
    cluster = listening.cluster
    claim = cluster.add(PersistentVolumeClaim(metadata=meta()))
    newer = cluster.add(claim)
    cluster.remove(newer)
    reported = [(entry.event.label, entry.old, entry.new) for entry in listening.entries()]

    assert [
        ("PersistentVolumeClaimAdd", None, claim),
        ("PersistentVolumeClaimUpdate", claim, newer),
    ] == reported


async def test_1_7_5_a_deletion_carries_the_object_that_went():
    """(old, nothing)."""
    kind = EventResource.VOLUME_ATTACHMENT
    listening = Listening(hints={ClusterEvent(kind, Do.DELETE): SKIP})
    attached = listening.cluster.add(VolumeAttachment(metadata=meta()))
    listening.cluster.remove(attached)
    (entry,) = listening.entries()

    assert (f"{kind}Delete", attached, None) == (entry.event.label, entry.old, entry.new)


async def test_1_7_6_some_kinds_are_only_looked_up():
    """Budgets, services and controllers are no events; namespaces only for plugins that name them."""
    listening = Listening()
    listening.cluster.add(Namespace(metadata=ObjectMeta(name="ns", uid="ns", labels={"a": "b"})))

    assert [] == listening.heard()
    assert {"a": "b"} == listening.cluster.core.listers.namespace_labels("ns")
    assert {
        "PodDisruptionBudget",
        "Service",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
    } == {watched.kind.__name__ for watched in LOOKED_UP if not watched.events}


async def test_1_7_7_what_the_default_profile_waits_for():
    """The union over its plugins, with the default gates."""
    add_update = Do.ADD | Do.UPDATE

    assert {
        "Pod": Do.ALL,
        "Node": Do.ADD
        | Do.DELETE
        | Do.UPDATE_NODE_ALLOCATABLE
        | Do.UPDATE_NODE_LABEL
        | Do.UPDATE_NODE_TAINT
        | Do.UPDATE_NODE_DECLARED_FEATURE,
        "Namespace": add_update | Do.DELETE,
        "PersistentVolume": add_update,
        "PersistentVolumeClaim": add_update,
        "storage.k8s.io/CSINode": add_update,
        "storage.k8s.io/CSIStorageCapacity": add_update,
        "storage.k8s.io/StorageClass": add_update,
        "storage.k8s.io/CSIDriver": Do.UPDATE | Do.DELETE,
        "storage.k8s.io/VolumeAttachment": Do.DELETE,
        "resource.k8s.io/DeviceClass": add_update | Do.DELETE,
        "resource.k8s.io/ResourceClaim": add_update | Do.DELETE,
        "resource.k8s.io/ResourceSlice": add_update | Do.DELETE,
    } == Cluster().core.wanted


# 1.8, 1.9.


async def test_1_8_1_an_object_is_stored_before_pods_are_moved():
    """An attempt that the event wakes sees what woke it."""
    seen = []
    cluster = Cluster()
    hints = {
        ClusterEvent(EventResource.DEVICE_CLASS, Do.ADD): lambda *_: (
            seen.append(len(cluster.core.listers.device_classes)) or SKIP
        )
    }
    cluster = Cluster(Doorkeeper(hints=hints))
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()
    cluster.add(DeviceClass(metadata=ObjectMeta(name="gpu", uid="gpu")))

    assert [1] == seen


async def test_1_9_1_handlers_report_when_the_first_list_is_handled():
    """Each says so on its own; what was listed before is in place by then."""
    cluster = Cluster()
    cluster.add_node()
    before = cluster.core.node_handler.synced
    cluster.core.node_handler.on_synced()

    assert (False, True, 1) == (before, cluster.core.node_handler.synced, cluster.cache.node_count())


async def test_1_9_2_before_it_schedules_a_scheduler_follows():
    """Handlers fill cache and queue while nothing is popped and nothing flushed."""
    cluster = Cluster()
    async with cluster.paused():
        cluster.add_node()
        cluster.add_pod()
        await cluster.tick(60)

        assert ("active", []) == (cluster.where(), cluster.tried)

    assert {"p0": "n0"} == cluster.bound


# 1.11: nodes.


async def rejected_by(hint, **node):
    """A rejected pod that is asked about by this hint whenever something happens to a node."""
    cluster = Cluster(Doorkeeper(hints={ClusterEvent(EventResource.NODE, Do.ALL): hint}))
    cluster.add_node(**node)
    cluster.add_pod()
    await cluster.run()
    return cluster


async def test_1_11_1_a_new_node_is_in_the_cache_before_pods_move():
    """(nothing, node)."""
    seen = []
    cluster = await rejected_by(
        lambda _pod, old, _new: seen.append((old, cluster.cache.node_count())) or SKIP
    )
    cluster.add_node("n1")

    assert [(None, 2)] == seen


async def test_1_11_2_a_changed_node_is_in_the_cache_before_pods_move():
    """One pass for each event, all with the old and the new node."""
    seen = []

    def look(_pod, old, new):
        capacity = cluster.cache.fresh_snapshot().nodes[0].status.allocatable["cpu"]
        seen.append((old.status.allocatable["cpu"], new.status.allocatable["cpu"], capacity))
        return SKIP

    cluster = await rejected_by(look, cpu="1")
    cluster.change_node(labels={"a": "b"}, status={"allocatable": {"cpu": "2"}})

    assert [("1", "2", "2")] * 2 == seen


async def test_1_11_3_a_node_leaves_the_cache_after_pods_moved():
    """(node, nothing), and then it goes."""
    seen = []
    cluster = await rejected_by(
        lambda _pod, _old, new: seen.append((new, cluster.cache.node_count())) or SKIP
    )
    cluster.remove_node()

    assert [(None, 1)] == seen
    assert 0 == cluster.cache.node_count()


async def test_1_11_4_removing_an_unknown_node_is_logged(caplog):
    """Nothing breaks."""
    cluster = Cluster()
    node = cluster.add_node()
    cluster.remove_node()
    cluster.core.node_handler.on_delete(node)

    assert "node n0 is not found" in caplog.text


# 1.12: pods.


async def test_1_12_1_a_pod_on_a_node_goes_to_the_cache():
    """With any scheduler's name."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0", scheduler_name="another")

    assert ["NodeAdd", "AssignedPodAdd"] == listening.heard()
    assert "placed" == cluster.where("p0")


@pytest.mark.parametrize(("gang", "labels"), [(False, []), (True, ["UnschedulablePodAdd"])])
async def test_1_12_2_a_pod_without_a_node_goes_to_the_queue(gang, labels):
    """Only with GangScheduling do the others hear of it."""
    gates = {"GenericWorkload": gang, "GangScheduling": gang}
    listening = Listening(gates=gates)
    listening.heard()
    listening.cluster.add_pod("p0")

    assert "active" == listening.cluster.where("p0")
    assert labels == listening.heard()


async def test_1_12_3_a_pod_of_another_scheduler_is_ignored():
    """Until it is on a node."""
    cluster = Cluster()
    cluster.add_pod("p0", scheduler_name="another")
    cluster.change_pod("p0", labels={"a": "b"})
    before = cluster.where("p0")
    cluster.change_pod("p0", spec={"node_name": "n0"})

    assert ("nowhere", "placed") == (before, cluster.where("p0"))


async def test_1_12_4_an_update_on_a_node_moves_by_what_changed():
    """The cache has the new pod first."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0")
    listening.heard()
    cluster.change_pod("p0", labels={"a": "b"})

    assert ["AssignedPodUpdatePodLabel"] == listening.heard()
    assert {"a": "b"} == cluster.cache.get_pod("default-p0").labels


async def test_1_12_5_a_binding_that_is_seen_moves_a_pod_from_queue_to_cache():
    """AssignedPodAdd, and it waits no longer, even if another scheduler bound it."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0")
    listening.heard()
    cluster.change_pod("p0", spec={"node_name": "n0"})

    assert ["AssignedPodAdd"] == listening.heard()
    assert (None, "placed") == (cluster.queued("p0"), cluster.where("p0"))


async def test_1_12_6_the_same_version_is_ignored():
    """A resync shows nothing new."""
    listening = Listening()
    cluster = listening.cluster
    pod = cluster.pod("listener")
    cluster.core.pod_handler.on_update(pod, replace(pod, metadata=replace(pod.metadata, labels={"a": "b"})))

    assert [] == listening.heard()


async def waiting_for_permission(**options):
    """A pod that waits for a Permit plugin, and another that nothing helps yet."""
    cluster = Cluster(Permits("Waits", WAIT, 600), "NodeResourcesFit", **options)
    cluster.add_node(cpu="2")
    cluster.add_pod("p0", cpu="2")
    cluster.add_pod("p1", cpu="2")
    await cluster.run()
    assert ("assumed", "pool") == (cluster.where("p0"), cluster.where("p1"))
    return cluster


async def test_1_12_7_an_update_of_an_assumed_pod_leaves_the_queue_alone():
    """It is on its way to a node."""
    cluster = await waiting_for_permission()
    cluster.change_pod("p0", labels={"a": "b"})

    assert ("assumed", None) == (cluster.where("p0"), cluster.queued("p0"))


async def test_1_12_8_a_waiting_pod_whose_deletion_begins_is_rejected():
    """Its binding cycle lets go of the node, and others may try."""
    cluster = await waiting_for_permission()
    cluster.mark_deleted("p0")
    await cluster.tick(2)

    assert None is cluster.waiting_pods.get("default-p0")
    assert "assumed" == cluster.where("p1")


async def test_1_12_9_a_waiting_pod_that_is_deleted_frees_its_node():
    """Gone from the queue, rejected where it waits, and others may try."""
    cluster = await waiting_for_permission()
    cluster.delete_pod("p0")
    await cluster.tick(2)

    assert ("nowhere", "assumed") == (cluster.where("p0"), cluster.where("p1"))


async def test_1_12_10_a_pod_that_is_deleted_in_prebind_is_forgotten_at_once():
    """What it held is free before its binding fails; the later undoing is harmless."""
    cluster = Cluster(PreBinds("Works"), "NodeResourcesFit")
    cluster.add_node(cpu="2")
    cluster.pods_client.hold("bind")
    cluster.add_pod("p0", cpu="2")
    cluster.add_pod("p1", cpu="2")
    await cluster.run()
    cluster.delete_pod("p0")
    forgotten = cluster.cache.get_pod("default-p0")
    cluster.pods_client.release("bind")
    await cluster.tick(2)

    assert None is forgotten
    assert {"p1": "n0"} == cluster.bound


async def test_1_12_11_a_nomination_that_goes_frees_pods_of_no_higher_priority():
    """By an update of the status, and by deletion of the nominated pod."""
    assigned_delete = ClusterEvent(EventResource.POD, Do.DELETE)
    for end in ("update", "delete"):
        listening = Listening(hints={assigned_delete: QUEUE})
        cluster = listening.cluster
        cluster.add_pod("p0", nominated_node_name="n0")
        listening.heard()
        if end == "update":
            cluster.change_pod("p0", status={"nominated_node_name": "n1"})
        else:
            cluster.delete_pod("p0")

        assert ["AssignedPodDelete"] == listening.heard()


async def test_1_12_12_a_pod_that_leaves_its_node_moves_others():
    """AssignedPodDelete, without restriction."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0")
    listening.heard()
    cluster.delete_pod("p0")

    assert ["AssignedPodDelete"] == listening.heard()
    assert 0 == cluster.cache.pod_count()


async def test_1_12_13_a_deletion_that_was_missed_is_handled_both_ways():
    """The last known state may be stale: out of the cache and out of the queue."""
    cluster = Cluster()
    pod = cluster.add_pod("p0")
    cluster.cache.add_pod(pod.placed_on("n0"))
    cluster.core.pod_handler.on_delete(pod, final_state_unknown=True)

    assert (None, 0) == (cluster.queued("p0"), cluster.cache.pod_count())


# 1.13: metrics.


async def test_1_13_1_handling_is_timed_by_event():
    """Additions and deletions once, under their label."""
    cluster = Cluster()
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0")
    cluster.delete_pod("p0")
    cluster.add_pod("p1", gates=["a"])
    cluster.delete_pod("p1")
    cluster.remove_node()

    for event in (
        "NodeAdd",
        "AssignedPodAdd",
        "AssignedPodDelete",
        "UnschedulablePodAdd",
        "UnschedulablePodDelete",
        "NodeDelete",
    ):
        assert 1 == cluster.metric(HANDLED, event=event), event


async def test_1_13_2_an_update_on_a_node_is_timed_twice():
    """Once for each event, and once for the whole as AssignedPodUpdate."""
    cluster = Cluster()
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0")
    cluster.change_pod("p0", labels={"a": "b"})
    finer = (
        cluster.metric(HANDLED, event="AssignedPodUpdatePodLabel"),
        cluster.metric(HANDLED, event="AssignedPodUpdate"),
    )
    cluster.change_pod("p0", annotations={"a": "b"})

    assert (1, 1) == finer
    assert 3 == cluster.metric(HANDLED, event="AssignedPodUpdate")


async def test_1_13_3_an_update_in_the_queue_is_timed_by_its_kinds():
    """Under UnschedulablePodUpdate, and under each finer label."""
    cluster = Cluster()
    cluster.add_pod("p0", gates=["a"])
    cluster.change_pod("p0", labels={"a": "b"})

    assert 1 == cluster.metric(HANDLED, event="UnschedulablePodUpdate")
    assert 1 == cluster.metric(HANDLED, event="UnschedulablePodUpdatePodLabel")


async def test_1_13_4_a_node_update_is_timed_for_each_event():
    """And not at all where nothing changed that anybody waits for."""
    cluster = Cluster()
    cluster.add_node()
    cluster.change_node(labels={"a": "b"}, status={"allocatable": {"cpu": "9"}})

    assert 1 == cluster.metric(HANDLED, event="NodeUpdateNodeLabel")
    assert 1 == cluster.metric(HANDLED, event="NodeUpdateNodeAllocatable")
