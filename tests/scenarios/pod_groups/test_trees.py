"""Trees of groups: CompositePodGroups with pod groups, waiting, tried and bound as one (KEP-6012)."""

import pytest

from berth.framework.mirrors.group_trees import GroupTrees
from berth.objects.decode import from_document
from berth.objects.pod_groups import CompositePodGroup
from berth.objects.pods.pod_spec import SchedulingGroup
from tests.failures.reporting import reports
from tests.scenarios.pod_groups.kit import Groups, group

RELEASES = [(1, 37), (1, 38)]
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "CompositePodGroup": True}
ZONE, RACK = "zone", "rack"
CONDITION = "CompositePodGroupInitiallyScheduled"
QUORUM = 'waiting for composite pod group "root" tree to meet quorum'


def tree(name, needed=None, *, parent="", topology=None, **spec):
    """A CompositePodGroup; a basic one where no number is given."""
    policy = {"basic": {}} if needed is None else {"gang": {"minGroupCount": needed}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    return from_document(
        {"metadata": metadata, "spec": {"schedulingPolicy": policy, **spec}}, CompositePodGroup
    )


class Trees(Groups):
    """A cluster whose scheduler follows trees."""

    def __init__(self, release, **options):
        super().__init__(gates=GATES, release=release, **options)
        self.release = release

    def add_tree(self, name="root", needed=None, **fields):
        return self.add(tree(name, needed, **fields))

    def add_below(self, name, min_count=None, parent="root", **fields):
        return self.add(group(name, min_count, parentCompositePodGroupName=parent, **fields))

    def tree_condition(self, name="root"):
        conditions = self.api.get(CompositePodGroup, f"default/{name}").status.conditions
        found = next((c for c in conditions if c.type == CONDITION), None)
        return found and (found.status, found.reason, found.message)

    def tells(self, *expected, name="root"):
        """Whether a tree's condition begins with these; up to 1.37 it has none."""
        condition = self.tree_condition(name)
        return condition is None if self.release < (1, 38) else expected == condition[: len(expected)]

    def gate(self, name):
        return self.queue.gate_of(self.queue.record("default", name)).message


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_goes_together(release):
    """Two gangs below one root are bound in one attempt, and both say so, from 1.38 on the root, too."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="4")
    cluster.add_tree("root", 2)
    for name in ("g", "h"):
        cluster.add_below(name, 2)
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1")
    await cluster.run()

    assert {"g0", "g1", "h0", "h1"} == set(cluster.bound)
    assert [("True", "Scheduled", "")] * 2 == [cluster.group_condition(name) for name in "gh"]
    assert cluster.tells("True", "Scheduled", "")
    assert 1 == cluster.attempts("scheduled")


@reports(
    "tree-fails",
    condition="`CompositePodGroupInitiallyScheduled` of a tree from 1.38 on, of each PodGroup its own: "
    "`minCount (2) cannot be satisfied: 1 scheduled, 0 remaining`",
)
@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_that_does_not_fit_binds_no_pod(release):
    """The second gang has no room: the first one, which has, waits with it."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="3")
    cluster.add_tree("root", 2)
    for name in ("g", "h"):
        cluster.add_below(name, 2)
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1")
    await cluster.run()

    assert {} == cluster.bound
    assert cluster.tells("False", "Unschedulable")
    assert ("False", "Unschedulable") == cluster.group_condition("g")[:2]
    assert "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining" in cluster.group_condition("h")[2]


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_that_needs_one_of_two(release):
    """The group that has no room waits; the other one's pods are bound, and it goes when it fits."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="3")
    cluster.add_tree("root", 1)
    for name in ("g", "h"):
        cluster.add_below(name, 2)
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1")
    await cluster.run()
    assert {"g0", "g1"} == set(cluster.bound)
    assert cluster.tells("True")
    assert "False" == cluster.group_condition("h")[0]
    cluster.add_node("n1", cpu="3")
    await cluster.tick(30)

    assert {"g0", "g1", "h0", "h1"} == set(cluster.bound)
    assert "True" == cluster.group_condition("h")[0]


@reports(
    "gang-incomplete",
    condition="`PodScheduled`: `SchedulingGated`, "
    '`waiting for composite pod group "root" tree to meet quorum`',
)
@pytest.mark.parametrize("release", RELEASES)
async def test_quorum(release):
    """It waits for enough groups that are complete, from the root downwards."""
    cluster = Trees(release)
    cluster.add_node("n0")
    cluster.add_tree("root", 2)
    cluster.add_tree("low", 1, parent="root")
    cluster.add_below("g", 2)
    cluster.add_below("h", 1, parent="low")
    cluster.add_members("g0", "g1", group="g")
    await cluster.run()
    await cluster.tick(2)
    condition = cluster.condition("g0", "PodScheduled")
    assert ("SchedulingGated", QUORUM, {}) == (condition.reason, condition.message, cluster.bound)
    cluster.add_member("h0", group="h")
    await cluster.run()

    assert {"g0", "g1", "h0"} == set(cluster.bound)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_is_counted_by_its_type(release):
    """Among the queue's entities, where it is and as it comes there: a tree with two pod groups is one."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="1")
    cluster.add_tree("root", 2)
    for name in ("g", "h"):
        cluster.add_below(name, 1)
        cluster.add_member(f"{name}0", group=name, cpu="2")
    await cluster.run()
    of_tree = {"queue": "backoff", "type": "compositepodgroup"}
    failed = {"event": "ScheduleAttemptFailure", "queue": "backoff"}

    assert 1 == cluster.metric("queued_entities", **of_tree)
    assert 1 == cluster.metric("queue_incoming_entities_total", **failed, type="compositepodgroup")
    assert 0 == cluster.metric("queue_incoming_entities_total", **failed, type="podgroup")


async def test_a_tree_that_needs_fewer_groups():
    """From 1.38 on minGroupCount may be lowered: a tree that is complete then is tried at once."""
    cluster = Trees((1, 38))
    cluster.add_node("n0")
    cluster.add_tree("root", 2)
    cluster.add_below("g", 1)
    cluster.add_member("g0", group="g")
    await cluster.run()
    assert (QUORUM, {}) == (cluster.gate("g0"), cluster.bound)
    cluster.add(tree("root", 1))
    await cluster.run()

    assert {"g0"} == set(cluster.bound)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_with_a_pod_group_of_its_own_name(release):
    """And another pod group that has a name of the tree's: each is what it is."""
    cluster = Trees(release)
    cluster.add_node("n0")
    cluster.add_tree("g", 2)
    for name in ("g", "h"):
        cluster.add_below(name, 1, parent="g")
    cluster.add_member("g0", group="g")
    await cluster.run()
    assert {} == cluster.bound
    cluster.add_member("h0", group="h")
    await cluster.run()

    assert {"g0", "h0"} == set(cluster.bound)
    assert cluster.tells("True", name="g")


async def test_quorum_is_counted_as_it_changes(monkeypatch):
    """A hundred pods that go through the gate together have no group of their tree looked at."""
    cluster, looks = Trees((1, 37)), []
    children = GroupTrees.children
    monkeypatch.setattr(GroupTrees, "children", lambda self, key: looks.append(key) or children(self, key))
    cluster.add_tree("root", 2)
    for name in ("g", "h"):
        cluster.add_below(name, 50)
        cluster.add_members(*(f"{name}{i}" for i in range(50)), group=name)
    looks.clear()
    cluster.add_member("last", group="h")

    assert [] == looks


@reports(
    "group-absent",
    condition="`PodScheduled`: `waiting for composite pod group default/root to be created`",
)
@pytest.mark.parametrize("release", RELEASES)
async def test_ancestors_that_are_not_there(release):
    """Pods wait for every group above theirs, and say after a while for which one."""
    cluster = Trees(release)
    cluster.add_node("n0")
    cluster.add_below("g", 1, parent="low")
    cluster.add_tree("low", 1, parent="root")
    cluster.add_member("g0", group="g")
    await cluster.tick(400)
    assert ({}, "waiting for composite pod group default/root to be created") == (
        cluster.bound,
        cluster.condition("g0", "PodScheduled").message,
    )
    cluster.add_tree("root", 1)
    await cluster.run()

    assert {"g0"} == set(cluster.bound)


@reports(
    "tree-is-none",
    condition="`PodScheduled`: `pod group default/g has more than 3 groups above it, or is below itself`",
)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("deep", ["a cycle", "five levels"])
async def test_trees_that_are_none(release, deep):
    """A cycle, or more than four levels: its pods are not tried, and say why."""
    cluster = Trees(release)
    cluster.add_node("n0")
    above = {"a": "b", "b": "a"} if deep == "a cycle" else {"a": "b", "b": "c", "c": "d", "d": ""}
    for name, parent in above.items():
        cluster.add_tree(name, 1, parent=parent)
    cluster.add_below("g", 1, parent="a")
    cluster.add_member("g0", group="g")
    await cluster.tick(400)

    assert {} == cluster.bound
    said = cluster.condition("g0", "PodScheduled").message
    assert "pod group default/g has more than 3 groups above it, or is below itself" == said


@pytest.mark.parametrize("release", RELEASES)
async def test_four_levels(release):
    """The deepest tree that there may be."""
    cluster = Trees(release)
    cluster.add_node("n0")
    for name, parent in (("root", ""), ("a", "root"), ("b", "a")):
        cluster.add_tree(name, 1, parent=parent)
    cluster.add_below("g", 2, parent="b")
    cluster.add_members("g0", "g1", group="g")
    await cluster.run()

    assert {"g0", "g1"} == set(cluster.bound)
    assert all(cluster.tells("True", name=name) for name in ("root", "a", "b"))


def racks(cluster, **cpus):
    """A node for each rack; the first letter of its name is its zone."""
    for rack, cpu in cpus.items():
        cluster.add_node(rack, cpu=cpu, labels={ZONE: rack[0], RACK: rack})


@pytest.mark.parametrize("release", RELEASES)
async def test_topology_of_several_levels(release):
    """The tree goes to one zone, and each of its groups to one rack of that zone."""
    cluster = Trees(release)
    racks(cluster, a1="2", a2="1", b1="2", b2="2", c1="4")
    cluster.add_tree("root", 2, topology=ZONE)
    for name in ("g", "h"):
        cluster.add_below(name, 2, topology=RACK)
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1")
    cluster.add_pod("large", cpu="3", node_name="c1")
    await cluster.run()
    on = {name: cluster.bound[name] for name in ("g0", "g1", "h0", "h1")}

    assert {"b1", "b2"} == set(on.values())
    assert (on["g0"], on["h0"]) == (on["g1"], on["h1"])


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_without_a_zone_for_it(release):
    """No zone has room for both groups."""
    cluster = Trees(release)
    racks(cluster, a1="2", b1="2")
    cluster.add_tree("root", 2, topology=ZONE)
    for name in ("g", "h"):
        cluster.add_below(name, 2)
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1")
    await cluster.run()
    counts = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    text = {
        (1, 37): counts,
        (1, 38): f"0/2 placements are available, first placement status: {counts}",
    }

    assert {} == cluster.bound
    assert cluster.tells("False", "Unschedulable")
    condition = cluster.tree_condition() or cluster.group_condition("g")
    assert condition[2].startswith(f"{text[release]}, pod group preemption: ")


@pytest.mark.parametrize("release", RELEASES)
async def test_priorities_in_a_tree(release):
    """All pods have the root's priority, and from 1.38 on all groups."""
    cluster = Trees(release)
    cluster.add_node("n0")
    cluster.add_tree("root", 1, priority=5)
    cluster.add_below("g", 1)
    cluster.add_member("g0", group="g", priority=5)
    await cluster.run()
    if release == (1, 37):
        assert {"g0"} == set(cluster.bound)
    else:
        assert cluster.tells("False", "SchedulerError")
        assert cluster.tree_condition()[2] == (
            "all pod groups in a hierarchy should have the same priority as the root pod group's priority, "
            'got 0 ("podgroup/default/g") and 5 ("compositepodgroup/default/root")'
        )


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_preempts(release):
    """Less important pods leave, and the whole tree comes in."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="4")
    cluster.add_pod("low0", cpu="2", node_name="n0")
    cluster.add_pod("low1", cpu="2", node_name="n0")
    cluster.add_tree("root", 2, priority=5)
    for name in ("g", "h"):
        cluster.add_below(name, 2, priority=5)
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1", priority=5)
    await cluster.tick(60)

    assert {"g0", "g1", "h0", "h1"} == set(cluster.bound) - {"low0", "low1"}
    notes = [event[-1] if isinstance(event, tuple) else event.note for event in cluster.recorder.events]
    assert any("Preempted by compositepodgroup uid-root on node cluster" in str(note) for note in notes)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tree_is_evicted_as_a_whole(release):
    """One that is disrupted as a whole goes with all of its pods, for a single pod, too."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="2")
    cluster.add_node("n1", cpu="2")
    cluster.add_tree("root", 2, disruptionMode={"all": {}})
    for number, name in enumerate(("g", "h")):
        cluster.add_below(name, 1)
        cluster.add_pod(f"{name}0", cpu="2", node_name=f"n{number}", scheduling_group=SchedulingGroup(name))
    cluster.add_pod("important", cpu="1", priority=5)
    await cluster.tick(60)

    assert "important" in cluster.bound
    gone = {call.pod for call in cluster.api.calls if call.verb == "delete"}
    assert {"default/g0", "default/h0"} == gone


@pytest.mark.parametrize(("release", "gone"), [((1, 37), "t0"), ((1, 38), "g0")])
async def test_a_tree_or_a_group_is_evicted(release, gone):
    """Of one priority: up to 1.37 what has fewer pods is evicted, from 1.38 on a pod group before a tree."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="3")
    cluster.add_tree("root", 1, disruptionMode={"all": {}})
    cluster.add_below("t", 1)
    cluster.add_group("g", 2, disruptionMode={"all": {}})
    for name in ("t0", "g0", "g1"):
        cluster.add_pod(name, cpu="1", node_name="n0", scheduling_group=SchedulingGroup(name[0]))
    cluster.add_group("high", 1, priority=5)
    cluster.add_member("high0", group="high", cpu="1", priority=5)
    await cluster.run()

    assert gone in {"t0", "g0", "g1"} - cluster.bound.keys()


async def test_without_the_gate_each_pod_group_goes_alone():
    """Its parent is passed over, as kube-scheduler does."""
    cluster = Groups(gates={"GenericWorkload": True}, release=(1, 37))
    cluster.add_node("n0", cpu="2")
    for name in ("g", "h"):
        cluster.add(group(name, 2, parentCompositePodGroupName="root"))
        cluster.add_members(f"{name}0", f"{name}1", group=name, cpu="1")
    await cluster.run()

    assert 2 == len(cluster.bound)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_group_that_goes_from_a_tree(release):
    """Its pods wait for it to come back; when the root goes all wait."""
    cluster = Trees(release)
    cluster.add_node("n0", cpu="1")
    root = cluster.add_tree("root", 2)
    below = [cluster.add_below(name, 1) for name in ("g", "h")]
    for name in ("g", "h"):
        cluster.add_member(f"{name}0", group=name, cpu="1")
    await cluster.run()
    cluster.remove(below[0])
    assert "waiting for pod group default/g to be created" == cluster.gate("g0")
    cluster.remove(root)
    assert "waiting for composite pod group default/root to be created" == cluster.gate("h0")
    cluster.add(below[0])
    cluster.add_tree("root", 1)
    await cluster.tick(30)

    assert 1 == len(cluster.bound)
