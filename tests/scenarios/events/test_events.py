"""What changes are called, and what a change of an object consists of (core 1.1 to 1.6)."""

from types import SimpleNamespace

import pytest

from berth.framework.cluster_event import ActionType as Do
from berth.framework.cluster_event import ClusterEvent, EventResource
from berth.objects.api_object import ObjectMeta, TypedObject
from berth.objects.devices.devices import DeviceClass, ResourceSlice
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node import NodeCondition
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod_spec import Container, Resources, SchedulingGate
from berth.objects.taint import Taint, Toleration
from berth.objects.volumes.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.scheduler.watching.watches import reflectors
from tests.scenarios.events.listening import Listening
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, Doorkeeper

GROUPS = {"GenericWorkload": True}
KINDS = {
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "storage.k8s.io/CSINode": CSINode,
    "storage.k8s.io/CSIDriver": CSIDriver,
    "storage.k8s.io/VolumeAttachment": VolumeAttachment,
    "storage.k8s.io/CSIStorageCapacity": CSIStorageCapacity,
    "storage.k8s.io/StorageClass": StorageClass,
    "resource.k8s.io/ResourceClaim": ResourceClaim,
    "resource.k8s.io/ResourceSlice": ResourceSlice,
    "resource.k8s.io/DeviceClass": DeviceClass,
    "scheduling.k8s.io/PodGroup": PodGroup,
}
GATES = (SchedulingGate("a"), SchedulingGate("b"))


def waits_for(resource, actions=Do.ALL):
    """A plugin that registered that."""
    return {ClusterEvent(resource, actions): QUEUE}


def container(cpu):
    return (Container("main", "app:1", Resources(requests={"cpu": cpu} if cpu else {})),)


@pytest.mark.parametrize("resource", KINDS)
async def test_1_1_1_and_1_3_1_every_kind_has_an_identifier(resource):
    """Adding, changing and deleting an object is reported under its resource's name and what happened."""
    listening = Listening(hints=waits_for(resource), gates=GROUPS)
    cluster, kind = listening.cluster, KINDS[resource]
    obj = cluster.add(kind(metadata=ObjectMeta(name="x", namespace="default", uid="x")))
    cluster.add(obj)
    cluster.remove(obj)

    assert [f"{resource}Add", f"{resource}Update", f"{resource}Delete"] == listening.heard()


async def test_1_1_2_a_malformed_resource_is_logged_and_ignored(caplog):
    """It does not keep the scheduler from starting."""
    cluster = Cluster(Doorkeeper(hints=waits_for("Nonsense")))

    assert "Nonsense" not in cluster.core.wanted
    assert "Incorrect event registration" in caplog.text


async def test_1_1_3_any_kind_may_be_waited_for_by_its_plural():
    """A resource as plural.version.group gets a watch of its own, and pods are moved by what it shows."""
    listening = Listening(hints=waits_for("foos.v1.example.com", Do.ADD))
    core = listening.cluster.core
    *_, last = reflectors(
        None, core, SimpleNamespace(nodes=RawObjects(), pods=RawObjects()), groups=frozenset()
    )
    last._handler.on_add(TypedObject(metadata=ObjectMeta(name="x", uid="x")))

    assert "/apis/example.com/v1/foos" == last.source.resource.collection()
    assert ["foos.v1.example.comAdd"] == listening.heard()


def test_1_2_1_actions_are_upstreams_bits():
    """Their texts, too; other combinations have none."""
    assert (8188, 8191, 0) == (Do.UPDATE, Do.ALL, Do.NONE)
    assert "UpdatePodSchedulingGatesEliminated" == Do(2048).text
    assert ["Add", "Delete", "Update", "All", ""] == [Do(bits).text for bits in (1, 2, 8188, 8191, 3)]


async def test_1_3_2_some_labels_stand_for_no_ordinary_event():
    """Activation and the leftover flush are wildcards with labels of their own."""
    listening = Listening()
    cluster = listening.cluster
    cluster.queue.activate([cluster.pod("listener")])
    event = listening.entries()[0].event

    assert ("ForceActivate", True) == (event.label, event.wildcard)


# 1.4: pod updates.


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        pytest.param({"labels": {"a": "b"}}, ["UpdatePodLabel"], id="1 labels"),
        pytest.param({"spec": {"containers": container("400m")}}, ["UpdatePodScaleDown"], id="2 less"),
        pytest.param({"spec": {"containers": container(None)}}, ["UpdatePodScaleDown"], id="2 no more"),
        pytest.param({"spec": {"containers": container("600m")}}, ["Update"], id="2 more"),
        pytest.param(
            {"spec": {"scheduling_gates": ()}}, ["UpdatePodSchedulingGatesEliminated"], id="3 none left"
        ),
        pytest.param({"spec": {"scheduling_gates": GATES[:1]}}, ["Update"], id="3 some left"),
        pytest.param({"spec": {"tolerations": (Toleration("a"),)}}, ["UpdatePodToleration"], id="4 one more"),
        pytest.param(
            {"status": {"resource_claim_statuses": ({"name": "c"},)}},
            ["UpdatePodGeneratedResourceClaim"],
            id="5 claims",
        ),
        pytest.param({"annotations": {"a": "b"}}, ["Update"], id="nothing of these"),
    ],
)
async def test_1_4_1_and_11_1_3_pod_updates_are_split(change, labels):
    """Each detector that fires is an event; if none does, there is a general one."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_pod("p0", containers=container("500m"), gates=["a", "b"])
    cluster.queue.pop_specific(cluster.pod())
    listening.entries()
    cluster.change_pod("p0", **change)

    assert [f"UnschedulablePod{label}" for label in labels] == listening.heard()


async def test_1_4_2_a_change_of_the_same_length_is_no_toleration():
    """Only their number is compared."""
    listening = Listening()
    cluster = listening.cluster
    cluster.change_pod("listener", spec={"tolerations": (Toleration("a"),)})
    cluster.change_pod("listener", spec={"tolerations": (Toleration("b"),)})

    assert ["UnschedulablePodUpdatePodToleration", "UnschedulablePodUpdate"] == listening.heard()


async def test_1_4_3_and_11_1_4_the_detectors_have_an_order():
    """Labels before scale-down, whatever else; the resource is that of the new pod."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0", containers=container("500m"))
    listening.heard()
    cluster.change_pod("p0", labels={"a": "b"}, spec={"containers": container("400m")})

    assert ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"] == listening.heard()


async def test_1_4_4_and_11_1_5_more_requests_are_a_general_update():
    """A pod on a node that grows is no event."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0", containers=container("400m"))
    listening.heard()
    cluster.change_pod("p0", spec={"containers": container("500m")})

    assert ["AssignedPodUpdate"] == listening.heard()


async def test_1_4_5_no_labels_and_absent_labels_are_equal():
    """Nil and empty are the same."""
    listening = Listening()
    listening.cluster.change_pod("listener", labels={})

    assert ["UnschedulablePodUpdate"] == listening.heard()


# 1.5: node updates.


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        pytest.param({"spec": {"unschedulable": False}}, ["UpdateNodeTaint"], id="1 uncordoned"),
        pytest.param(
            {"status": {"allocatable": {"cpu": "9"}}}, ["UpdateNodeAllocatable"], id="2 allocatable"
        ),
        pytest.param({"labels": {"a": "b"}}, ["UpdateNodeLabel"], id="3 labels"),
        pytest.param(
            {"spec": {"taints": (Taint("a", "", "NoSchedule"),)}}, ["UpdateNodeTaint"], id="4 taints"
        ),
        pytest.param(
            {"status": {"conditions": (NodeCondition("Ready", "True"),)}},
            ["UpdateNodeCondition"],
            id="5 conditions",
        ),
        pytest.param({"annotations": {"a": "b"}}, ["UpdateNodeAnnotation"], id="6 annotations"),
        pytest.param(
            {"status": {"declared_features": ("x",)}}, ["UpdateNodeDeclaredFeature"], id="7 features"
        ),
        pytest.param({"spec": {"provider_id": "x"}}, [], id="nothing of these"),
    ],
)
async def test_1_5_1_node_updates_are_split(change, labels):
    """Each detector that fires is an event; if none does, there is none."""
    listening = Listening()
    listening.cluster.add_node(unschedulable=True)
    listening.heard()
    listening.cluster.change_node(**change)

    assert [f"Node{label}" for label in labels] == listening.heard()


async def test_1_5_2_and_11_1_2_a_heartbeat_is_no_event():
    """Only the status of each condition counts, and cordoning a node helps no pod."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node()
    listening.heard()
    cluster.add(cluster.node())
    cluster.change_node(spec={"unschedulable": True})

    assert [] == listening.heard()
    assert cluster.cache.fresh_snapshot().unschedulable[0]


async def test_1_5_3_and_11_1_1_each_event_is_a_move_pass_of_its_own():
    """In the detectors' order; uncordoning with another taint is reported twice."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node(unschedulable=True)
    listening.heard()
    cluster.change_node(labels={"a": "b"}, status={"allocatable": {"cpu": "9"}})
    both = listening.heard()
    cluster.change_node(spec={"unschedulable": False, "taints": (Taint("a", "", "NoSchedule"),)})

    assert ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"] == both
    assert ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"] == listening.heard()


async def test_1_5_4_amounts_are_compared_by_value():
    """Another way to write the same quantity is no change."""
    listening = Listening()
    cluster = listening.cluster
    cluster.add_node(allocatable={"cpu": "1", "pods": "10"})
    listening.heard()
    cluster.change_node(status={"allocatable": {"cpu": "1000m", "pods": "10"}})

    assert [] == listening.heard()


async def test_1_5_5_without_the_gate_declared_features_are_no_event():
    """NodeDeclaredFeatures off."""
    listening = Listening(gates={"NodeDeclaredFeatures": False})
    listening.cluster.add_node()
    listening.heard()
    listening.cluster.change_node(status={"declared_features": ("x",)})

    assert [] == listening.heard()


# 1.6: matching.

POD, NODE, ANY = EventResource.POD, EventResource.NODE, EventResource.WILDCARD
ASSIGNED, UNSCHEDULABLE = EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        ((NODE, Do.ADD | Do.UPDATE_NODE_TAINT), (NODE, Do.UPDATE_NODE_TAINT), True),
        ((NODE, Do.UPDATE_NODE_LABEL), (NODE, Do.UPDATE_NODE_TAINT), False),
        ((POD, Do.UPDATE), (UNSCHEDULABLE, Do.UPDATE), True),
        ((POD, Do.UPDATE_POD_LABEL), (ASSIGNED, Do.UPDATE), False),
        ((POD, Do.ALL), (ASSIGNED, Do.UPDATE), True),
        ((POD, Do.UPDATE), (ASSIGNED, Do.UPDATE_POD_LABEL), True),
        ((NODE, Do.ALL), (ANY, Do.ALL), False),
        ((ANY, Do.ALL), (NODE, Do.UPDATE_NODE_LABEL), True),
        ((ANY, Do.ALL), (ANY, Do.ALL), True),
        ((ANY, Do.UPDATE), (NODE, Do.UPDATE_NODE_LABEL), True),
        ((ANY, Do.UPDATE), (ANY, Do.ALL), False),
    ],
)
def test_1_6_1_registrations_match_by_resource_and_bits(registered, incoming, matches):
    """The table of consequences."""
    assert matches == ClusterEvent(*registered).matches(ClusterEvent(*incoming))


async def test_1_6_2_and_11_1_6_a_finer_registration_is_not_called_for_a_general_update():
    """Pod labels are waited for, and a pod's annotations change."""
    listening = Listening(hints=waits_for(POD, Do.UPDATE_POD_LABEL))
    cluster = listening.cluster
    cluster.add_node()
    cluster.add_pod("p0", node_name="n0")
    listening.heard()
    cluster.change_pod("p0", annotations={"a": "b"})
    cluster.change_pod("p0", labels={"a": "b"})

    assert ["AssignedPodUpdatePodLabel"] == listening.heard()
