"""Groups of pods that wait as one: where they are, in which order, and what becomes of those left over."""

from dataclasses import dataclass

import pytest

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.mirrors.listers import Listers, Store
from berth.framework.queueing.queued_pod import QueuedGroupInfo
from berth.framework.status import SUCCESS, failed, unresolvable, unschedulable
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.queue.errors import AlreadyQueuedError, GroupAlreadyQueuedError
from tests.scenarios.pod_groups.kit import group
from tests.unit.queue.kit import NODE_ADD, Bench, Gates, Rejector, a_bench, a_pod, queue_it

MANY = 30
POD_ADDED = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)


class Quorum(Gates):
    """Holds all pods back until it is open."""

    def __init__(self, *, is_open):
        super().__init__("Quorum", events=[ClusterEvent(EventResource.POD, ActionType.ADD)])
        self.is_open = is_open

    def pre_enqueue(self, pod):
        del pod
        self.asked += 1
        return SUCCESS if self.is_open else unresolvable("too few")


@dataclass
class Groups:
    """A queue that knows groups."""

    bench: Bench
    groups: Store
    quorum: Quorum

    @property
    def queue(self):
        return self.bench.queue

    def add_group(self, name="g", **spec):
        found = group(name, **spec)
        self.groups.put(found)
        self.queue.groups.group_added(found)
        return found

    def remove_group(self, found):
        self.groups.remove(found)
        self.queue.groups.group_deleted(found)

    def add(self, *names, group="g", **fields):
        return [self.bench.add(name, scheduling_group=SchedulingGroup(group), **fields) for name in names]

    def tried(self, status, *left, rejectors=("A",)):
        """An attempt at what is popped next, after which these pods come back; their group's record."""
        popped = self.queue.pop()
        self.back(popped, *left, rejectors=rejectors)
        self.queue.groups.ended(popped, status)
        return popped

    def back(self, popped, *left, rejectors=("A",)):
        for member in popped.members:
            if member.pod.name in left:
                self.bench.fail(member, *rejectors)
            else:
                self.queue.done(member.pod.uid)

    def where(self, name="g"):
        """The place of the group, and the names of its pods that wait with it."""
        places = self.queue._sub_queues
        found = places.get(f"podgroup/default/{name}")
        if found is None:
            return None
        place = "gated" if found.gated else places.place_of(found)
        return place, [member.pod.name for member in found.members]


def a_stage(*, is_open=True, **settings):
    listers, quorum = Listers(), Quorum(is_open=is_open)
    plugins = [Rejector("A", {NODE_ADD: queue_it}), quorum, Gates()]
    bench = a_bench(plugins, groups=listers.trees, generic_workload=True, **settings)
    return Groups(bench, listers.pod_groups, quorum)


def test_pods_wait_for_their_group():
    """Without its object no gate is asked, and nothing can be popped."""
    stage = a_stage()
    (pod,) = stage.add("a")

    assert "" == stage.queue.gate_of(stage.queue.record("default", "a")).plugin
    assert {"incomplete": 1, "pending": 0} == {
        k: stage.queue.pods_by_queue()[k] for k in ("incomplete", "pending")
    }
    assert 0 == stage.quorum.asked
    stage.add_group()
    assert ("active", ["a"]) == stage.where()
    assert [pod.uid] == [member.pod.uid for member in stage.queue.pop().members]


def test_a_group_is_popped_as_one():
    """All of its pods are in flight, each has had an attempt more, and the group, too."""
    stage = a_stage()
    stage.add_group()
    pods = stage.add("a", "b", "c")
    popped = stage.queue.pop()

    assert isinstance(popped, QueuedGroupInfo)
    assert [pod.uid for pod in pods] == list(stage.queue.in_flight())
    assert [1, 1, 1, 1] == [popped.attempts, *(member.attempts for member in popped.members)]
    assert stage.queue.pop() is None


def test_a_group_whose_pods_are_all_in_flight_is_not_popped():
    """None of them would be left to try; the group's attempt is over, and the next entity comes."""
    stage = a_stage()
    stage.add_group()
    (pod,) = stage.add("a")
    stage.queue._in_flight.begin(pod.uid)
    stage.bench.add("other")

    assert "other" == stage.queue.pop().pod.name
    assert stage.queue.pop() is None


def test_pods_in_a_group_are_in_order():
    """Priority, then those that were tried more often, then those that came first, then by name."""
    stage = a_stage()
    stage.add_group()
    stage.add("old")
    stage.tried(unschedulable("no"), "old")
    stage.bench.clock.seconds += 1
    stage.add("b", "a")
    stage.bench.clock.seconds += 1
    stage.add("late")
    stage.add("urgent", priority=1)

    assert ["urgent", "old", "a", "b", "late"] == stage.where()[1]


def test_groups_and_pods_are_in_one_order():
    """A group stands where its own priority and time put it."""
    stage = a_stage()
    stage.add_group("low")
    stage.add_group("high", priority=5)
    stage.add("a", group="low")
    stage.bench.add("single", priority=3)
    stage.add("b", group="high", priority=5)

    assert ["b", "single", "a"] == stage.bench.pop_names()


def test_a_group_is_gated_as_a_whole():
    """By its first pod that is held back; each pod that comes has it looked at again."""
    stage = a_stage(is_open=False)
    stage.add_group()
    stage.add("a")
    assert ("gated", ["a"]) == stage.where()
    (b,) = stage.add("b")
    stage.queue.move_all(POD_ADDED, None, b)
    assert (2, 0) == (stage.queue.sizes().gated, stage.queue.sizes().unschedulable)
    (c,) = stage.add("c")
    stage.quorum.is_open = True
    stage.queue.move_all(POD_ADDED, None, c)

    assert ("active", ["a", "b", "c"]) == stage.where()
    assert 3 == stage.queue.sizes().active
    assert {("Quorum", "default-scheduler"): 1} == +stage.bench.metrics.rejected


def test_a_member_that_gates_gates_all():
    """A pod with a scheduling gate holds its group back until the gate goes."""
    stage = a_stage()
    stage.add_group()
    (gated,) = stage.add("a", gates=["Gates"])
    stage.add("b")
    assert ("gated", ["a", "b"]) == stage.where()
    stage.bench.update(gated, a_pod("a", scheduling_group=SchedulingGroup("g")))

    assert ("active", ["a", "b"]) == stage.where()


def test_a_pod_that_comes_has_no_other_pod_of_its_group_asked_about():
    """While the group is queued: thousands that came one by one would be asked about millions of times."""
    stage = a_stage()
    stage.add_group()
    names = [f"m{i}" for i in range(MANY)]
    stage.add(*names)

    assert ("active", sorted(names)) == stage.where()
    assert MANY == stage.quorum.asked


@pytest.mark.parametrize("order", [1, -1], ids=["in turn", "from the last one on"])
def test_gates_that_go_one_by_one_have_each_pod_asked_about_a_few_times(order):
    stage = a_stage()
    stage.add_group()
    names = [f"m{i}" for i in range(MANY)]
    pods = stage.add(*names, gates=["Gates"])
    for name, gated in list(zip(names, pods, strict=True))[::order]:
        stage.bench.update(gated, a_pod(name, scheduling_group=SchedulingGroup("g")))

    assert ("active", sorted(names)) == stage.where()
    assert stage.quorum.asked <= 3 * MANY


def test_a_gated_pod_that_is_deleted_lets_its_group_go():
    stage = a_stage()
    stage.add_group()
    (gated,) = stage.add("a", gates=["Gates"])
    stage.add("b")
    stage.queue.delete(gated)

    assert ("active", ["b"]) == stage.where()


def test_a_pod_of_a_group_that_was_tried_is_asked_about_again():
    stage = a_stage()
    stage.add_group()
    stage.add("a", "b")
    stage.quorum.is_open = False
    stage.tried(unschedulable("no room"), "a", "b")

    assert ("gated", ["a", "b"]) == stage.where()


def test_a_gate_that_is_new_is_asked_about_pods_that_passed_the_others():
    """Those of a group that another pod of it holds back, too."""
    stage = a_stage()
    stage.add_group()
    stage.add("a")
    (gated,) = stage.add("b", gates=["Gates"])
    stage.bench.add("alone")
    stage.quorum.is_open = False
    stage.queue.check_gates_again("default-scheduler")
    stage.bench.update(gated, a_pod("b", scheduling_group=SchedulingGroup("g")))

    assert ("gated", ["a", "b"]) == stage.where()
    assert "Quorum" == stage.queue.gate_of(stage.queue.record("default", "a")).plugin


def test_pods_that_come_during_the_attempt_wait_for_its_end():
    """And make up the group that is queued then."""
    stage = a_stage()
    stage.add_group()
    stage.add("a")
    popped = stage.queue.pop()
    stage.add("b")
    assert stage.where() is None
    assert 1 == stage.queue.pods_by_queue()["pending"]
    stage.back(popped)
    stage.bench.clock.seconds += 5
    stage.queue.groups.ended(popped, SUCCESS)

    assert ("active", ["b"]) == stage.where()
    assert 1005.0 == popped.timestamp


def test_a_pod_left_over_is_tried_at_once():
    """Its group went through without it: it keeps its place in the queue, and the counts begin anew."""
    stage = a_stage()
    stage.add_group()
    stage.add("a", "b", "c")
    stage.bench.clock.seconds += 5
    popped = stage.tried(SUCCESS, "c")

    assert ("active", ["c"]) == stage.where()
    assert (1000.0, 0, 0) == (popped.timestamp, popped.unschedulable_count, popped.consecutive_errors_count)


@pytest.mark.parametrize(
    ("status", "counts"),
    [(unschedulable("no"), (1, 0)), (failed("broken"), (0, 1))],
    ids=["rejected", "broken"],
)
def test_a_group_that_failed_backs_off(status, counts):
    """It waits for no event, and is not popped before its time."""
    stage = a_stage()
    stage.add_group()
    stage.add("a", "b")
    popped = stage.tried(status, "a", "b")

    assert ("backoff", ["a", "b"]) == stage.where()
    assert counts == (popped.unschedulable_count, popped.consecutive_errors_count)
    assert stage.queue.pop() is None
    stage.bench.clock.seconds += 2
    stage.queue.flush_backoff()
    assert popped is stage.queue.pop()


def test_a_group_of_which_no_pod_went_on_backs_off():
    """It succeeded, and each of its pods was turned down after that: at once it would go round and round."""
    stage = a_stage()
    stage.add_group()
    stage.add("a", "b")
    stage.tried(SUCCESS, "a", "b")

    assert ("backoff", ["a", "b"]) == stage.where()
    assert stage.queue.pop() is None


def test_a_group_whose_pods_are_all_bound_is_gone():
    """Nothing is left to be queued."""
    stage = a_stage()
    stage.add_group()
    stage.add("a")
    stage.tried(SUCCESS)

    assert stage.where() is None
    assert 0 == sum(stage.queue.pods_by_queue().values())


def test_a_pod_whose_binding_failed_comes_back_alone():
    """Its group's attempt is over: it backs off by its own count."""
    stage = a_stage()
    stage.add_group()
    stage.add("a")
    popped = stage.queue.pop()
    stage.queue.groups.ended(popped, SUCCESS)
    stage.bench.fail(popped.members[0])

    assert ("backoff", ["a"]) == stage.where()


def test_a_deleted_pod_leaves_its_group():
    """The others stay where they are; the last one takes the group with it."""
    stage = a_stage()
    stage.add_group()
    a, b = stage.add("a", "b")
    stage.queue.delete(a)
    assert ("active", ["b"]) == stage.where()
    stage.queue.delete(b)

    assert stage.where() is None
    assert (0, 0, 0, 0) == stage.queue.sizes()


def test_pods_apart_can_be_deleted():
    """Those that wait for their group, and those that wait for the end of an attempt."""
    stage = a_stage()
    (early,) = stage.add("early", group="none")
    stage.add_group()
    stage.add("a")
    stage.queue.pop()
    (late,) = stage.add("late")
    stage.queue.delete(early)
    stage.queue.delete(late)

    assert (0, 0) == stage.queue.groups.counts()
    assert [] == list(stage.queue.records())


def test_a_group_that_goes_leaves_its_pods_waiting():
    """Queued ones and those of an attempt alike, until there is such a group again."""
    stage = a_stage()
    found = stage.add_group()
    stage.add("a", "b")
    popped = stage.queue.pop()
    stage.add("c")
    stage.remove_group(found)
    stage.back(popped, "a")
    stage.queue.groups.ended(popped, unschedulable("no"))
    assert (2, 0) == stage.queue.groups.counts()
    stage.add_group()

    assert ("active", ["a", "c"]) == stage.where()


def test_a_queued_group_that_goes():
    """It is in no place any more; its pods wait for it."""
    stage = a_stage()
    found = stage.add_group()
    stage.add("a", "b")
    stage.remove_group(found)

    assert stage.where() is None
    assert (2, 0) == stage.queue.groups.counts()
    assert (0, 0, 0, 0) == stage.queue.sizes()


def test_a_changed_group_stands_by_its_new_version():
    """Its record has what the watch showed last."""
    stage = a_stage()
    stage.add_group(min_count=3)
    stage.add("a")
    smaller = group("g", 2)
    stage.groups.put(smaller)
    stage.queue.groups.group_updated(smaller)

    assert 2 == stage.queue.pop().root.min_count


def test_a_pod_that_is_activated_activates_its_group():
    """Whatever the group's backoff."""
    stage = a_stage()
    stage.add_group()
    pods = stage.add("a", "b")
    stage.tried(unschedulable("no"), "a", "b")
    stage.queue.activate(pods[1:])

    assert ("active", ["a", "b"]) == stage.where()


def test_a_changed_pod_is_changed_in_its_group():
    """In place, and its nomination with it."""
    stage = a_stage()
    stage.add_group()
    old, _ = stage.add("a", "b")
    new = a_pod("a", scheduling_group=SchedulingGroup("g"), nominated_node_name="n", labels={"x": "y"})
    stage.bench.update(old, new)

    assert "n" == stage.queue.nominator.node_of(new.uid)
    assert new is stage.queue.pop().pod


def test_what_is_in_the_queue_comes_back_once():
    """A pod that is queued again cannot come back; nor can a group."""
    stage = a_stage()
    stage.add_group()
    stage.add("a")
    popped = stage.queue.pop()
    stage.bench.fail(popped.members[0], "A")
    with pytest.raises(AlreadyQueuedError):
        stage.bench.fail(popped.members[0], "A")
    stage.queue.groups.ended(popped, SUCCESS)
    with pytest.raises(
        GroupAlreadyQueuedError, match="pod group default/g is already present in the backoff queue"
    ):
        stage.queue.groups.ended(popped, SUCCESS)


def test_metrics_of_groups():
    """Pods count wherever their group goes; a group counts where it was not before."""
    stage = a_stage(is_open=False)
    stage.add_group()
    stage.add("a")
    (b,) = stage.add("b")
    stage.quorum.is_open = True
    stage.queue.move_all(POD_ADDED, None, b)
    moved = +stage.bench.metrics.groups

    assert {("unschedulable", "UnschedulablePodAdd"): 1, ("active", "UnschedulablePodAdd"): 1} == moved
    assert 2 == stage.bench.metrics.incoming["active", "UnschedulablePodAdd"]
