"""Which plugins wait for what (core 1.10)."""

import pytest

from berth.framework.cluster_event import ActionType as Do
from berth.framework.cluster_event import ClusterEvent, ClusterEventWithHint, QueueingHint
from berth.framework.cluster_event import EventResource as On
from berth.framework.interface import EnqueueExtensions, FilterPlugin, ScorePlugin
from berth.framework.status import unschedulable
from berth.queue.errors import EventRegistrationError
from tests.fakes import Rejects, Scores
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.configuration import PROFILE
from tests.scenarios.kit.plugins import QUEUE, Doorkeeper
from tests.unit.evaluation.points.test_extending import Extends

ADD_UPDATE = Do.ADD | Do.UPDATE
TAINT = (On.NODE, Do.UPDATE_NODE_TAINT, False)
ADD_LABEL = Do.ADD | Do.UPDATE_NODE_LABEL
FULL = {
    On.POD,
    On.NODE,
    On.PERSISTENT_VOLUME,
    On.PERSISTENT_VOLUME_CLAIM,
    On.CSI_NODE,
    On.CSI_DRIVER,
    On.CSI_STORAGE_CAPACITY,
    On.STORAGE_CLASS,
    On.RESOURCE_CLAIM,
    On.DEVICE_CLASS,
}

REGISTERED = {
    "NodeResourcesFit": [
        (On.POD, Do.DELETE | Do.UPDATE_POD_SCALE_DOWN, True),
        (On.NODE, Do.ADD | Do.UPDATE_NODE_ALLOCATABLE, True),
        (On.DEVICE_CLASS, ADD_UPDATE, True),
    ],
    "SchedulingGates": [(On.POD, Do.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, True)],
    "NodeVolumeLimits": [
        (On.NODE, Do.ADD, False),
        (On.CSI_DRIVER, Do.UPDATE, True),
        (On.CSI_DRIVER, Do.DELETE, True),
        (On.CSI_NODE, Do.ADD, False),
        (On.CSI_NODE, Do.UPDATE, True),
        (On.POD, Do.DELETE, True),
        (On.PERSISTENT_VOLUME_CLAIM, Do.ADD, True),
        (On.VOLUME_ATTACHMENT, Do.DELETE, True),
    ],
    "DynamicResources": [
        (On.NODE, ADD_LABEL | Do.UPDATE_NODE_ALLOCATABLE, False),
        (On.RESOURCE_CLAIM, ADD_UPDATE, True),
        (On.RESOURCE_CLAIM, Do.DELETE, True),
        (On.POD, Do.DELETE, True),
        (On.POD, Do.UPDATE_POD_GENERATED_RESOURCE_CLAIM, True),
        (On.DEVICE_CLASS, ADD_UPDATE, False),
        (On.DEVICE_CLASS, Do.DELETE, True),
        (On.RESOURCE_SLICE, ADD_UPDATE, False),
        (On.RESOURCE_SLICE, Do.DELETE, False),
    ],
    "VolumeBinding": [
        (On.STORAGE_CLASS, ADD_UPDATE, True),
        (On.PERSISTENT_VOLUME_CLAIM, ADD_UPDATE, True),
        (On.PERSISTENT_VOLUME, ADD_UPDATE, False),
        (On.NODE, ADD_LABEL, False),
        (On.CSI_NODE, ADD_UPDATE, True),
        (On.CSI_DRIVER, Do.UPDATE, True),
        (On.CSI_DRIVER, Do.DELETE, True),
        (On.CSI_STORAGE_CAPACITY, ADD_UPDATE, True),
    ],
    "VolumeZone": [
        (On.STORAGE_CLASS, Do.ADD, True),
        (On.NODE, ADD_LABEL, False),
        (On.PERSISTENT_VOLUME_CLAIM, ADD_UPDATE, True),
        (On.PERSISTENT_VOLUME, ADD_UPDATE, True),
    ],
    "VolumeRestrictions": [
        (On.POD, Do.DELETE, True),
        (On.NODE, Do.ADD, False),
        (On.PERSISTENT_VOLUME_CLAIM, Do.ADD, True),
    ],
    "NodeDeclaredFeatures": [
        (On.NODE, Do.ADD | Do.UPDATE_NODE_DECLARED_FEATURE, True),
        (On.POD, Do.UPDATE, True),
    ],
    "DefaultPreemption": [(On.POD, Do.DELETE, True)],
    "TaintToleration": [
        (On.NODE, Do.ADD | Do.UPDATE_NODE_TAINT, True),
        (On.POD, Do.UPDATE_POD_TOLERATION, True),
    ],
    "NodeUnschedulable": [
        (On.NODE, Do.ADD | Do.UPDATE_NODE_TAINT, True),
        (On.POD, Do.UPDATE_POD_TOLERATION, True),
    ],
    "NodeAffinity": [(On.NODE, ADD_LABEL, True)],
    "NodeName": [(On.NODE, Do.ADD, False)],
    "NodePorts": [(On.POD, Do.DELETE, True), (On.NODE, Do.ADD, False)],
    "InterPodAffinity": [
        (On.POD, Do.ADD | Do.UPDATE_POD_LABEL | Do.DELETE, True),
        (On.NODE, ADD_LABEL, True),
        (On.NODE, Do.DELETE, True),
        (On.NAMESPACE, Do.ADD | Do.DELETE | Do.UPDATE, True),
    ],
    "PodTopologySpread": [
        (On.POD, Do.ADD | Do.UPDATE_POD_LABEL | Do.UPDATE_POD_TOLERATION | Do.DELETE, True),
        (On.NODE, ADD_LABEL | Do.DELETE | Do.UPDATE_NODE_TAINT, True),
    ],
    "GangScheduling": [(On.POD, Do.ADD, True), (On.POD_GROUP, Do.ADD, True)],
}


class Restricts(Rejects, EnqueueExtensions):
    """A plugin that says whatever a test wants it to have registered."""

    def __init__(self, name, *registrations):
        super().__init__(name)
        self.registrations = registrations

    def events_to_register(self):
        if isinstance(self.registrations[0], Exception):
            raise self.registrations[0]
        return [ClusterEventWithHint(event) for event in self.registrations if event]


class ScoresAndWaits(Scores, EnqueueExtensions):
    """A plugin that rejects nothing and registers something."""

    def events_to_register(self):
        raise AssertionError("it is not asked")


def registrations(cluster, profile=PROFILE):
    """Everything that is registered in a profile: event -> plugins."""
    hints = cluster.queue._strategies._profiles[profile].hints.registrations
    return {event: [plugin for plugin, _ in pairs] for event, pairs in hints.items()}


def resources_of(cluster, plugin):
    return {event.resource for event, plugins in registrations(cluster).items() if plugin in plugins}


@pytest.mark.parametrize("plugin", REGISTERED)
async def test_1_10_1_in_tree_plugins_register_upstreams_events(plugin):
    """Each with a hint of its own, or with none."""
    gates = {"GenericWorkload": True, "GangScheduling": True}
    cluster = Cluster(gates=gates)
    found = cluster.core.profiles.frameworks[PROFILE].plugins.by_name[plugin].events_to_register()
    reported = {(r.event.resource, r.event.action, r.hint is not None) for r in found}

    assert set(REGISTERED[plugin]) == reported


async def test_1_10_2_without_asynchronous_preemption_no_pod_waits_for_victims():
    """DefaultPreemption registers nothing then."""
    cluster = Cluster(gates={"SchedulerAsyncPreemption": False})

    assert [] == list(
        cluster.core.profiles.frameworks[PROFILE].plugins.by_name["DefaultPreemption"].events_to_register()
    )


async def test_1_10_3_who_waits_for_new_nodes_waits_for_taints_to_go():
    """The registration is implied, and always queues."""
    cluster = Cluster(Restricts("Adds", ClusterEvent(On.NODE, Do.ADD)))

    assert ["Adds"] == registrations(cluster)[ClusterEvent(On.NODE, Do.UPDATE_NODE_TAINT)]


async def test_1_10_4_who_waits_for_taints_already_gets_no_second_registration():
    """Nor does who does not wait for new nodes."""
    cluster = Cluster(
        Restricts("Both", ClusterEvent(On.NODE, Do.ADD | Do.UPDATE_NODE_TAINT)),
        Restricts("Labels", ClusterEvent(On.NODE, Do.UPDATE_NODE_LABEL)),
    )

    assert ClusterEvent(On.NODE, Do.UPDATE_NODE_TAINT) not in registrations(cluster)


async def test_1_10_5_a_registration_without_a_hint_always_queues():
    """Whatever the objects are."""
    cluster = Cluster(Restricts("Adds", ClusterEvent(On.NODE, Do.ADD)))
    hints = cluster.queue._strategies._profiles[PROFILE].hints.registrations

    assert QueueingHint.QUEUE is hints[ClusterEvent(On.NODE, Do.ADD)][0][1](None, None, None)


async def test_1_10_6_plugins_that_reject_nothing_are_not_asked():
    """Only those with PreEnqueue, PreFilter, Filter, Reserve or Permit take part."""
    cluster = Cluster(ScoresAndWaits("S"))

    assert isinstance(ScoresAndWaits("S"), ScorePlugin)
    assert {} == registrations(cluster)


@pytest.mark.parametrize(("generic", "more"), [(False, set()), (True, {On.POD_GROUP})])
async def test_1_10_7_who_registers_nothing_waits_for_nearly_everything(generic, more):
    """A rejecting plugin that cannot tell gets the full list, with pod groups behind their gate."""
    cluster = Cluster(Rejects("Mute"), gates={"GenericWorkload": generic})

    assert isinstance(Rejects("Mute"), FilterPlugin)
    assert FULL | more == resources_of(cluster, "Mute")
    assert {Do.ALL} == {
        e.action
        for e, plugins in registrations(cluster).items()
        if "Mute" in plugins and e.action != Do.UPDATE_NODE_TAINT
    }


async def test_1_10_8_extenders_wait_for_nearly_everything():
    """As one pseudo-plugin in every profile, listed first."""
    door = Doorkeeper()
    cluster = Cluster(profiles={PROFILE: [door], "other": [door]}, extenders=[Extends(filter=["n0"])])

    assert FULL == resources_of(cluster, "Extender")
    assert FULL == {
        e.resource for e, plugins in registrations(cluster, "other").items() if plugins[0] == "Extender"
    }


async def test_1_10_9_an_empty_list_is_never_requeued_by_events():
    """Only the flush, Activate and the pod's own updates are left."""
    cluster = Cluster(
        Doorkeeper("Deaf", hints={}),
        Doorkeeper("Hears", hints={ClusterEvent(On.NODE, Do.ADD): QUEUE}, status=unschedulable()),
    )
    cluster.add_node()
    cluster.add_pod()
    await cluster.tick(60)
    cluster.add_node("n1")
    await cluster.run()
    by_events = list(cluster.tried_at)
    await cluster.tick(300)

    assert [1000] == by_events
    assert [1000, 1330] == cluster.tried_at


async def test_1_10_10_errors_in_registering_end_the_start():
    """All of them are reported together."""
    with pytest.raises(EventRegistrationError) as raised:
        Cluster(Restricts("A", RuntimeError("no idea")), Restricts("B", RuntimeError("neither")))

    assert "registering events of plugin A: no idea" in str(raised.value)
    assert "registering events of plugin B: neither" in str(raised.value)


async def test_1_10_11_gating_knows_a_plugins_events_over_all_profiles():
    """The merged map, by plugin."""
    node, claim = ClusterEvent(On.NODE, Do.DELETE), ClusterEvent(On.PERSISTENT_VOLUME_CLAIM, Do.ADD)
    cluster = Cluster(profiles={PROFILE: [Restricts("R", node)], "other": [Restricts("Q", claim)]})

    assert (node,) == cluster.queue._strategies.gate_events_of("R")
    assert (claim,) == cluster.queue._strategies.gate_events_of("Q")
