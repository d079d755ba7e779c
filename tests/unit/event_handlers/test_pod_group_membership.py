"""Core 1.12, 3.2 and 7.3: what the watches and the cycles tell makes up the state of pod groups."""

import pytest
from msgspec.structs import replace

from berth.cache.cache import Cache
from berth.event_handlers.pods import PodHandler
from berth.framework.mirrors.listers import Store
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates
from berth.testing.builders import make_pod
from berth.testing.handles import ManualClock, NoWaitingPods
from tests.unit.event_handlers.test_handlers import PROFILE, Calls

KEY = GroupKey("default", "g")


class Scene:
    """Pod handlers over a cache that keeps groups; the queue writes down how many pods it saw known."""

    def __init__(self):
        self.cache = Cache(PodGroupStates())
        self.queue = Calls(peek=lambda: len(self.cache.pod_groups.known(KEY).pods))
        self.handler = PodHandler(
            self.queue,
            self.cache,
            unassigned=Store(),
            profiles={PROFILE},
            waiting_pods=NoWaitingPods(),
            clock=ManualClock(),
            gang_scheduling=True,
        )

    @property
    def standing(self):
        state = self.cache.pod_groups.known(KEY)
        return [p.name for p in state.unscheduled], sorted(state.assumed), sorted(state.assigned)


def member(name="a", node="", version="1"):
    pod = make_pod(name, scheduling_group=SchedulingGroup("g"), scheduler_name=PROFILE, node_name=node)
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))


@pytest.fixture
def scene():
    return Scene()


def test_1_12_membership_is_known_before_the_move_pass(scene):
    """An added pod counts by the time that its gated siblings are asked about it."""
    scene.handler.on_add(member())

    assert ["add", "UnschedulablePodAdd"] == [entry[0] for entry in scene.queue.log]
    assert 1 == scene.queue.log[1][-1]


def test_7_3_a_bound_pod_is_assigned(scene):
    """An assumed pod whose binding is observed is assigned, and no longer unscheduled."""
    scene.handler.on_add(member())
    scene.cache.assume_pod(member(node="n0"))
    assert ([], ["default-a"], []) == scene.standing
    scene.handler.on_update(member(), member(node="n0", version="2"))

    assert ([], [], ["default-a"]) == scene.standing


def test_7_3_a_forgotten_pod_is_unscheduled_as_it_was_last_seen(scene):
    """An update while the pod is assumed is not lost when the assumption is taken back."""
    scene.handler.on_add(member())
    scene.cache.assume_pod(member(node="n0"))
    scene.handler.on_update(member(), member(version="2"))
    scene.cache.forget_pod(member(node="n0"))

    assert (["a"], [], []) == scene.standing
    assert "2" == scene.cache.pod_groups.get(KEY).pods["default-a"].metadata.resource_version


@pytest.mark.parametrize("node", ["", "n0"])
def test_7_3_a_deleted_pod_leaves_its_group(scene, node):
    """A pod is gone from its group wherever it was; a group without pods is gone, too."""
    scene.handler.on_add(member(node=node))
    scene.handler.on_delete(member(node=node))

    assert [] == list(scene.cache.pod_groups)


def test_7_3_an_assigned_pod_that_changes_stays_assigned(scene):
    """An update of a pod on a node leaves it where it is."""
    scene.handler.on_add(member(node="n0"))
    scene.handler.on_update(member(node="n0"), member(node="n0", version="2"))

    assert ([], [], ["default-a"]) == scene.standing
