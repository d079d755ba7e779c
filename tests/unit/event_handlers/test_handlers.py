"""Core 1.7 and 1.11-1.13: what the watches tell reaches cache, queue and stores."""

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from berth.cache.cache import Cache
from berth.cache.errors import CacheCorruptedError
from berth.event_handlers.nodes import NodeHandler
from berth.event_handlers.pods import PodHandler, lister
from berth.event_handlers.resources import resource_handler
from berth.framework.cluster_event import ActionType, EventResource
from berth.framework.mirrors.listers import Store
from berth.objects.workloads import Service
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import ManualClock
from tests.failures.reporting import reports

PROFILE = "default-scheduler"
CLAIM = EventResource.PERSISTENT_VOLUME_CLAIM


@dataclass
class Calls:
    """The queue's calls, in order; `peek` looks at the cache at the time of a move pass."""

    log: list = field(default_factory=list)
    peek: object = None
    predicates: list = field(default_factory=list)

    def add(self, pod):
        self.log.append(("add", pod))

    def update(self, old, new):
        self.log.append(("update", old, new))

    def delete(self, pod):
        self.log.append(("delete", pod))

    def move_all(self, event, old, new, predicate=None):
        seen = () if self.peek is None else (self.peek(),)
        self.log.append((event.label, old, new, *seen))
        self.predicates.append(predicate)


@dataclass
class Waiting:
    """A pod that waits for permission, or whose outcome was already given."""

    takes_effect: bool
    rejected: list = field(default_factory=list)

    def reject(self, plugin, message):
        self.rejected.append((plugin, message))
        return self.takes_effect


class Scene:
    """Handlers over a real cache and a queue that writes down what it is given."""

    def __init__(self, wanted=None, *, gang_scheduling=False):
        self.queue, self.cache, self.unassigned = Calls(), Cache(), Store()
        self.waiting, self.handled, self.wanted = {}, [], wanted or {}
        self.shared = {
            "clock": ManualClock(),
            "handled": lambda event, _seconds: self.handled.append(event),
        }
        self.nodes = NodeHandler(self.queue, self.cache, **self.shared)
        self.pods = PodHandler(
            self.queue,
            self.cache,
            unassigned=self.unassigned,
            profiles={PROFILE},
            waiting_pods=self.waiting,
            gang_scheduling=gang_scheduling,
            **self.shared,
        )

    def resource(self, resource, store):
        return resource_handler(resource, store, self.queue, self.wanted, **self.shared)

    @property
    def log(self):
        return self.queue.log

    def known(self, name="p0"):
        return lister(self.unassigned)("default", name)

    def assume(self, pod, node="n1"):
        self.cache.assume_pod(pod.placed_on(node))
        return pod.placed_on(node)


@pytest.fixture
def scene():
    return Scene()


def a_pod(name="p0", *, version="1", deleted=False, **fields):
    pod = make_pod(name, **{"scheduler_name": PROFILE, **fields})
    deletion = datetime(2026, 1, 1, tzinfo=UTC) if deleted else None
    return replace(pod, metadata=replace(pod.metadata, resource_version=version, deletion_timestamp=deletion))


# Nodes.


def test_node_add(scene):
    """1.11: the node is in the cache before pods are retried."""
    node = make_node()
    scene.queue.peek = scene.cache.node_count
    scene.nodes.on_add(node)

    assert scene.log == [("NodeAdd", None, node, 1)]
    assert scene.handled == ["NodeAdd"]


def test_node_update(scene):
    """1.11 and 11.1.1: the cache first, then a pass for each change."""
    old, new = make_node(), make_node(labels={"a": "b"}, allocatable={"cpu": "8"})
    scene.nodes.on_add(old)
    scene.queue.peek = lambda: scene.cache.node_info("n0").node is new
    scene.nodes.on_update(old, new)

    labels = ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"]
    assert scene.log[1:] == [(label, old, new, True) for label in labels]
    assert scene.handled[1:] == labels


def test_node_heartbeat(scene):
    """1.5 and 11.1.2: nothing that pods wait for, no pass; the cache takes the new version over."""
    old, new = make_node(), make_node(images={"app:1": 1})
    scene.nodes.on_add(old)
    scene.nodes.on_update(old, new)

    assert scene.cache.node_info("n0").node is new
    assert scene.handled == ["NodeAdd"]


def test_node_delete(scene):
    """1.11: pods are retried while the node is still in the cache."""
    node = make_node()
    scene.nodes.on_add(node)
    scene.queue.peek = scene.cache.node_count
    scene.nodes.on_delete(node)

    assert scene.log[1:] == [("NodeDelete", node, None, 1)]
    assert scene.cache.node_count() == 0


@reports("cache-refuses", log="`node not removed`, with the cause")
def test_deleting_an_unknown_node_is_logged(scene, caplog):
    """1.11: an error of the removal is only logged."""
    with caplog.at_level(logging.ERROR):
        scene.nodes.on_delete(make_node())

    assert "node not removed" in caplog.text


# Pods.


@pytest.mark.parametrize("scheduler", [PROFILE, "other"])
def test_assigned_pod_add(scene, scheduler):
    """1.12 add 1: a pod on a node is counted, with any scheduler's name."""
    pod = a_pod(node_name="n1", scheduler_name=scheduler)
    scene.pods.on_add(pod)

    assert scene.cache.get_pod(pod.uid) is pod
    assert scene.log == [("AssignedPodAdd", None, pod)]
    assert scene.handled == ["AssignedPodAdd"]


def test_unscheduled_pod_add(scene):
    """1.12 add 2: a pod of ours is queued and can be looked up."""
    pod = a_pod()
    scene.pods.on_add(pod)

    assert scene.log == [("add", pod)]
    assert scene.known() is pod
    assert scene.handled == ["UnschedulablePodAdd"]


def test_gang_scheduling_tells_siblings():
    """1.12 add 2: with GangScheduling a new pod has gated ones looked at again."""
    scene, pod = Scene(gang_scheduling=True), a_pod()
    scene.pods.on_add(pod)

    assert scene.log == [("add", pod), ("UnschedulablePodAdd", None, pod)]


def test_pods_of_others(scene):
    """1.12 add 3, update 4, delete 2: an unassigned pod of another scheduler is none of our business."""
    old, new = a_pod(scheduler_name="other"), a_pod(scheduler_name="other", version="2")
    scene.pods.on_add(old)
    scene.pods.on_update(old, new)
    scene.pods.on_delete(new)

    assert scene.log == []
    assert scene.known() is None


def test_assigned_pod_update(scene):
    """1.12 update 1, 11.1.4: the cache first, then a pass for each change; counted as a whole, too."""
    old = a_pod(node_name="n1", requests={"cpu": "500m"})
    new = a_pod(node_name="n1", requests={"cpu": "400m"}, labels={"a": "b"})
    scene.pods.on_add(old)
    scene.queue.peek = lambda: scene.cache.get_pod(new.uid) is new
    scene.pods.on_update(old, new)

    labels = ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"]
    assert scene.log[1:] == [(label, old, new, True) for label in labels]
    assert scene.handled[1:] == [*labels, "AssignedPodUpdate"]


def test_a_general_update_is_counted_twice(scene):
    """1.13 and 11.1.5: a general update of an assigned pod shows up as an event and as the whole."""
    old, new = a_pod(node_name="n1", requests={"cpu": "400m"}), a_pod(node_name="n1", requests={"cpu": "1"})
    scene.pods.on_add(old)
    scene.pods.on_update(old, new)

    assert scene.handled[1:] == ["AssignedPodUpdate", "AssignedPodUpdate"]


@reports("cache-refuses", log="`refused by the cache`, with the cause; pods that wait are tried again")
def test_a_refused_update_is_logged(scene, caplog):
    """1.12 update 1: a cache that does not know the pod does not keep others from being retried."""
    pod = a_pod(node_name="n1")
    with caplog.at_level(logging.ERROR):
        scene.pods.on_update(pod, pod)

    assert "refused by the cache" in caplog.text
    assert [entry[0] for entry in scene.log] == ["AssignedPodUpdate"]


def test_a_pod_that_changes_nodes_is_fatal(scene):
    """3.2: cache and watch contradict each other, and that is not swallowed."""
    pod = a_pod(node_name="n1")
    scene.pods.on_add(pod)

    with pytest.raises(CacheCorruptedError):
        scene.pods.on_update(pod, a_pod(node_name="n2"))


@pytest.mark.parametrize("assumed", [True, False])
def test_a_binding_is_observed(scene, assumed):
    """1.12 update 2: the pod leaves the queue for the cache, and an assumption is confirmed."""
    old, new = a_pod(), a_pod(node_name="n1", version="2")
    scene.pods.on_add(old)
    if assumed:
        scene.assume(old)
    scene.pods.on_update(old, new)

    assert scene.log[1:] == [("AssignedPodAdd", None, new), ("delete", old)]
    assert scene.cache.get_pod(new.uid) is new
    assert not scene.cache.is_assumed(new.uid)
    assert scene.known() is None


def test_a_foreign_binding_is_observed(scene):
    """1.12 update 2: a pod of another scheduler is only counted."""
    old = a_pod(scheduler_name="other")
    new = a_pod(scheduler_name="other", node_name="n1")
    scene.pods.on_update(old, new)

    assert scene.log == [("AssignedPodAdd", None, new)]


def test_unscheduled_pod_update(scene):
    """1.12 update 3.5 and 1.13: the queue is called; counted as an update and as what changed."""
    old, new = a_pod(), a_pod(version="2", labels={"a": "b"})
    scene.pods.on_add(old)
    scene.pods.on_update(old, new)

    assert scene.log[1:] == [("update", old, new)]
    assert scene.known() is new
    assert sorted(scene.handled[1:]) == ["UnschedulablePodUpdate", "UnschedulablePodUpdatePodLabel"]


def test_the_same_version_is_no_update(scene):
    """1.12 update 3.1: a resync is ignored completely."""
    pod = a_pod()
    scene.pods.on_add(pod)
    scene.pods.on_update(pod, pod)

    assert scene.log == [("add", pod)]
    assert scene.handled == ["UnschedulablePodAdd"]


def test_an_update_of_an_assumed_pod(scene):
    """1.12 update 3.4: a pod on its way to a node is not put into the queue."""
    old, new = a_pod(), a_pod(version="2", labels={"a": "b"})
    scene.assume(old)
    scene.pods.on_update(old, new)

    assert scene.log == []
    assert scene.known() is new


@pytest.mark.parametrize(("new_nomination", "lost"), [("n1", False), ("n2", True), ("", True)])
def test_a_nomination_is_given_up(scene, new_nomination, lost):
    """1.12 update 3.6: pods of no higher priority are retried when a nomination changes or goes."""
    old = a_pod(nominated_node_name="n1", priority=5)
    new = a_pod(nominated_node_name=new_nomination, priority=5, version="2")
    scene.pods.on_update(old, new)

    passes = [("AssignedPodDelete", old, None)] if lost else []
    assert scene.log == [("update", old, new), *passes]
    if lost:
        concerned = scene.queue.predicates[0]
        assert [concerned(a_pod(priority=p)) for p in (4, 5, 6)] == [True, True, False]


def test_assigned_pod_delete(scene):
    """1.12 delete 1, 11.1.7: the pod is counted out, and everybody may be retried."""
    pod = a_pod(node_name="n1")
    scene.pods.on_add(pod)
    scene.queue.peek = scene.cache.pod_count
    scene.pods.on_delete(pod)

    assert scene.log[1:] == [("AssignedPodDelete", pod, None, 0)]
    assert scene.queue.predicates[1:] == [None]
    assert scene.handled[1:] == ["AssignedPodDelete"]


@pytest.mark.parametrize("nomination", ["", "n1"])
def test_unscheduled_pod_delete(scene, nomination):
    """1.12 delete 2: the pod leaves the queue; a nomination it had frees pods of no higher priority."""
    pod = a_pod(nominated_node_name=nomination, priority=5)
    scene.pods.on_add(pod)
    scene.pods.on_delete(pod)

    passes = [("AssignedPodDelete", pod, None)] if nomination else []
    assert scene.log[1:] == [("delete", pod), *passes]
    assert [predicate(a_pod(priority=6)) for predicate in scene.queue.predicates] == [False] * len(passes)
    assert scene.known() is None
    assert scene.handled[1:] == ["UnschedulablePodDelete"]


@pytest.mark.parametrize("by_update", [True, False])
@pytest.mark.parametrize(
    ("waits", "forgotten"),
    [
        pytest.param(None, True, id="does not wait"),
        pytest.param(True, False, id="waits: its binding cycle cleans up"),
        pytest.param(False, True, id="its outcome was given before"),
    ],
)
def test_assumed_deletion(scene, by_update, waits, forgotten):
    """1.12: a pod deleted on its way to a node is rejected where it waits, or forgotten at once."""
    pod = a_pod()
    placed = scene.assume(pod)
    if waits is not None:
        scene.waiting[pod.uid] = Waiting(waits)
    if by_update:
        scene.pods.on_update(pod, a_pod(version="2", deleted=True))
    else:
        scene.pods.on_delete(pod)

    assert scene.log[-1] == ("AssignedPodDelete", placed, None)
    assert scene.queue.predicates == [None]
    assert forgotten == (scene.cache.get_pod(pod.uid) is None)
    if waits is not None:
        assert scene.waiting[pod.uid].rejected == [("", "removed")]


def test_a_deletion_that_is_known_is_not_reported_again(scene):
    """1.12 update 3.4: only the update that sets the deletion timestamp counts."""
    scene.assume(a_pod())
    scene.pods.on_update(a_pod(deleted=True), a_pod(version="2", deleted=True))

    assert scene.log == []


def test_last_state_unknown(scene):
    """1.12 delete 3: cache and queue are both cleared of a pod whose last state was not seen."""
    pod = a_pod()
    scene.pods.on_add(pod)
    scene.cache.add_pod(pod.placed_on("n1"))
    scene.pods.on_delete(pod, final_state_unknown=True)

    assert scene.log[1:] == [("AssignedPodDelete", pod, None), ("delete", pod)]
    assert scene.cache.pod_count() == 0


# Other kinds.


def a_claim(version="1"):
    claim = Service()
    return replace(claim, metadata=replace(claim.metadata, name="c", resource_version=version))


def test_other_kinds():
    """1.7.3: the store follows first, then a general event; only actions that are waited for are reported."""
    scene, store = Scene({CLAIM: ActionType.ADD | ActionType.UPDATE_NODE_LABEL}), Store()
    handler = scene.resource(CLAIM, store)
    old, new = a_claim(), a_claim("2")
    scene.queue.peek = lambda: len(store)
    handler.on_add(old)
    handler.on_update(old, new)
    handler.on_delete(new)

    assert scene.log == [
        ("PersistentVolumeClaimAdd", None, old, 1),
        ("PersistentVolumeClaimUpdate", old, new, 1),
    ]
    assert len(store) == 0
    assert scene.handled == ["PersistentVolumeClaimAdd", "PersistentVolumeClaimUpdate"]


def test_deletions_that_are_waited_for():
    """1.7.3: a deletion comes with the old object alone."""
    scene = Scene({CLAIM: ActionType.DELETE})
    handler, claim = scene.resource(CLAIM, Store()), a_claim()
    handler.on_add(claim)
    handler.on_delete(claim)

    assert scene.log == [("PersistentVolumeClaimDelete", claim, None)]


def test_kinds_that_are_only_listed():
    """1.7.4: services and their like are stored, without any event."""
    scene, store = Scene(), Store()
    handler = scene.resource("services", store)
    handler.on_add(a_claim())
    handler.on_update(a_claim(), a_claim("2"))
    assert [service.metadata.resource_version for service in store] == ["2"]
    handler.on_delete(a_claim())

    assert len(store) == 0
    assert scene.log == []


def test_synced(scene):
    """1.9: each handler says once its kind's first list was handled."""
    for handler in (scene.pods, scene.nodes, scene.resource("services", Store())):
        assert not handler.synced
        handler.on_synced()
        assert handler.synced
