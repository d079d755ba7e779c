"""Core 1.6, 1.7, 1.10 and 9.7: who is registered for what, and who is asked."""

import logging

import pytest

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.interface import EnqueueExtensions, FilterPlugin, PostBindPlugin
from berth.queue.errors import EventRegistrationError
from berth.queue.requeueing.hints import EXTENDER, always_queue, build_hint_map, wanted_actions
from tests.failures.reporting import reports
from tests.unit.queue.kit import NODE_ADD, NODE_LABEL, NODE_TAINT, POD_LABEL, Rejector, queue_it, skip_it

ACTIONS = ActionType
NODE = EventResource.NODE


class Silent(FilterPlugin):
    """Rejects, but registers nothing."""

    def filter(self, state, pod, nodes):
        raise NotImplementedError


class Bystander(PostBindPlugin, EnqueueExtensions):
    """Rejects nothing; must never be asked for its events."""

    def post_bind(self, state, pod, node_name):
        raise NotImplementedError

    def events_to_register(self):
        raise AssertionError("asked")


class Broken(Silent, EnqueueExtensions):
    """Cannot say what it waits for."""

    def __init__(self, text):
        self._text = text

    @property
    def name(self):
        return self._text

    def events_to_register(self):
        raise ValueError(self._text)


@pytest.mark.parametrize(
    ("actions", "implicit"),
    [
        (ACTIONS.ADD, True),
        (ACTIONS.ADD | ACTIONS.UPDATE_NODE_LABEL, True),
        (ACTIONS.ADD | ACTIONS.UPDATE_NODE_TAINT, False),
        (ACTIONS.UPDATE_NODE_LABEL, False),
    ],
)
def test_implicit_taint_registration(actions, implicit):
    """1.10.1: who waits for new nodes but not for taints gets taints, always queueing."""
    hints = build_hint_map([Rejector("A", {ClusterEvent(NODE, actions): skip_it})])

    assert implicit == ((always_queue,) == hints.matching(NODE_TAINT).hints.get("A"))


def test_a_taint_registration_of_its_own_is_enough():
    """1.10.1: the taint bit may stand in another registration of the plugin."""
    hints = build_hint_map([Rejector("A", {NODE_ADD: skip_it, NODE_TAINT: skip_it})])

    assert hints.matching(NODE_TAINT).hints == {"A": (skip_it,)}


def test_without_a_hint_it_always_queues():
    """1.10.2: a registration without a hint function gets one that always says Queue."""
    hints = build_hint_map([Rejector("A", {NODE_LABEL: None})])

    assert hints.matching(NODE_LABEL).hints == {"A": (always_queue,)}


def test_only_plugins_that_reject_take_part():
    """1.10.3: a plugin at none of the rejecting points is never asked."""
    assert not build_hint_map([Bystander()]).registrations


@pytest.mark.parametrize("generic_workload", [False, True])
def test_the_full_list(generic_workload):
    """1.10.4: a rejecting plugin that registers nothing waits for all of ten kinds, and for PodGroups."""
    registrations = build_hint_map([Silent()], generic_workload=generic_workload).registrations
    resources = {event.resource for event in registrations}

    assert {ACTIONS.ALL} == {event.action for event in registrations}
    assert 10 + generic_workload == len(resources)
    assert generic_workload == (EventResource.POD_GROUP in resources)
    assert not {EventResource.VOLUME_ATTACHMENT, EventResource.RESOURCE_SLICE} & resources


def test_extenders_are_a_plugin_of_their_own():
    """1.10.5 and 9.7: any extender waits for the full list, before all plugins."""
    hints = build_hint_map([Silent()], extenders=True)

    assert [EXTENDER, "Silent"] == list(hints.matching(NODE_ADD).hints)


def test_an_empty_list_is_a_list():
    """1.10.6: a plugin that registers nothing on purpose is not reached by events."""
    assert not build_hint_map([Rejector("A", {})]).registrations


def test_failures_are_reported_together():
    """1.10.7: what several plugins raise ends up in one error."""
    with pytest.raises(EventRegistrationError, match=r"(?s)one.*two"):
        build_hint_map([Broken("one"), Broken("two")])


def test_events_of_a_plugin():
    """1.10.8: a plugin's registrations can be listed, the implicit one included."""
    hints = build_hint_map([Rejector("A", {NODE_ADD: skip_it}), Rejector("B", {POD_LABEL: skip_it})])

    assert [NODE_ADD, NODE_TAINT] == list(hints.events_of("A"))


def test_several_hints_of_one_plugin():
    """9.7: all registrations that match are asked, those of different masks, too."""
    everything = ClusterEvent(NODE, ACTIONS.ALL)
    hints = build_hint_map([Rejector("A", {NODE_LABEL: skip_it, everything: queue_it})])

    assert hints.matching(NODE_LABEL).hints == {"A": (skip_it, queue_it)}


@pytest.mark.parametrize(
    ("registered", "incoming", "match"),
    [
        ((NODE, ACTIONS.ADD | ACTIONS.UPDATE_NODE_TAINT), (NODE, ACTIONS.UPDATE_NODE_TAINT), True),
        ((NODE, ACTIONS.UPDATE_NODE_LABEL), (NODE, ACTIONS.UPDATE_NODE_TAINT), False),
        (("Pod", ACTIONS.UPDATE), ("UnschedulablePod", ACTIONS.UPDATE), True),
        (("Pod", ACTIONS.UPDATE_POD_LABEL), ("AssignedPod", ACTIONS.UPDATE), False),
        (("Pod", ACTIONS.ALL), ("AssignedPod", ACTIONS.UPDATE), True),
        (("Pod", ACTIONS.UPDATE), ("AssignedPod", ACTIONS.UPDATE_POD_LABEL), True),
        ((NODE, ACTIONS.ALL), ("*", ACTIONS.ALL), False),
        (("*", ACTIONS.ALL), (NODE, ACTIONS.UPDATE_NODE_LABEL), True),
        (("*", ACTIONS.ALL), ("*", ACTIONS.ALL), True),
        (("*", ACTIONS.UPDATE), (NODE, ACTIONS.UPDATE_NODE_LABEL), True),
        (("*", ACTIONS.UPDATE), ("*", ACTIONS.ALL), False),
    ],
)
def test_matching(registered, incoming, match):
    """1.6: the table of what a registration covers; 11.1.6 is its fourth row."""
    hints = build_hint_map([Rejector("A", {ClusterEvent(*registered): skip_it})])

    assert match == (skip_it in hints.matching(ClusterEvent(*incoming)).hints.get("A", ()))


def test_wanted_actions_are_the_union():
    """1.7.3: what is watched is the union over profiles of the actions registered."""
    one = build_hint_map([Rejector("A", {NODE_ADD: None})])
    other = build_hint_map([Rejector("B", {NODE_LABEL: None, POD_LABEL: None})])

    assert wanted_actions([one, other]) == {
        "Node": ACTIONS.ADD | ACTIONS.UPDATE_NODE_LABEL | ACTIONS.UPDATE_NODE_TAINT,
        "Pod": ACTIONS.UPDATE_POD_LABEL,
    }


@reports("registration-wrong", log="`Incorrect event registration`, with the kind")
def test_a_resource_that_cannot_be_watched(caplog):
    """1.1: a further kind is written plural.version.group; anything else is logged and left out."""
    good, bad = "foos.v1.example.com", "foos.v1"
    registered = {ClusterEvent(kind, ACTIONS.ADD): None for kind in (good, bad)}

    with caplog.at_level(logging.ERROR):
        wanted = wanted_actions([build_hint_map([Rejector("A", registered)])])

    assert [good] == list(wanted)
    assert "Incorrect event registration" in caplog.text


def test_everything_is_no_resource():
    """1.7: who registers the wildcard does not add a watch."""
    everything = ClusterEvent(EventResource.WILDCARD, ACTIONS.ALL)

    assert not wanted_actions([build_hint_map([Rejector("A", {everything: None})])])


def test_pod_groups_need_their_gate():
    """1.7: PodGroups are watched only with GenericWorkload."""
    registered = {ClusterEvent(EventResource.POD_GROUP, ACTIONS.ADD): None}
    hints = [build_hint_map([Rejector("A", registered)])]

    assert not wanted_actions(hints)
    assert wanted_actions(hints, generic_workload=True)
