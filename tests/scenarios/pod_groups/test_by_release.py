"""A small case for each rule of pod groups in which releases differ, and what each release makes of it."""

import pytest

from berth.config.releases.release import RELEASES
from berth.objects.pod_groups import PodGroup
from tests.failures.reporting import reports
from tests.scenarios.pod_groups.kit import GANG, Groups, group
from tests.unit.pod_groups.kit import apart, near
from tests.unit.preemption.kit import budget

IN_36, IN_37, IN_38 = RELEASES
NEWER = [IN_37, IN_38]
QUORUM = "waiting for minCount pods from a gang to appear in scheduling queue"
UNSCHEDULABLE = "pod group is unschedulable"
TOPOLOGY = "TopologyAwareWorkloadScheduling"
POLICY = "PodGroupPreemptionPolicy"
HIERARCHY = "all pods in a pod group hierarchy should have the same "
RACK = "rack"
NO_RACK = (
    "0/4 placements are available, first placement status: "
    "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
)


KINDS = ("pod", "podgroup")


def a_cluster(release, *gates, **options):
    """A cluster whose scheduler follows that release, with pod groups."""
    on = dict.fromkeys(gates, True) | (GANG if release == IN_36 else {"GenericWorkload": True})
    return Groups(release=release, gates=on, **options)


def gates_of(cluster, *names):
    """The message that keeps each pod out of the queue, None where nothing does."""
    gates = [cluster.queue.gate_of(cluster.queued(name)) for name in names]
    return [gate and gate.message for gate in gates]


@pytest.mark.parametrize(
    ("release", "popped"), [(IN_36, {}), (IN_37, {"podgroup": 1}), (IN_38, {"podgroup": 1})]
)
async def test_a_gang_of_which_pods_are_missing(release, popped):
    """It waits for them: up to 1.36 each pod, from 1.37 on the group as a whole."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_gang(3, "a", "b")
    await cluster.run()
    entities = cluster.queue.entities_by_queue()
    waiting = {kind: count for (place, kind), count in entities.items() if place == "gated" and count}

    assert [QUORUM, QUORUM] == gates_of(cluster, "a", "b")
    assert 2 == cluster.metric("pending_pods", queue="gated")
    assert (popped or {"pod": 2}) == waiting
    cluster.add_member("c")
    await cluster.run()
    assert {"a", "b", "c"} == cluster.bound.keys()


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (IN_36, f"{UNSCHEDULABLE}"),
        (IN_37, "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
        (IN_38, "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
    ],
)
@pytest.mark.parametrize(
    ("of_placed", "plugins"), [({IN_36: f"{UNSCHEDULABLE}, waiting"}, {IN_38: {"GangScheduling"}})]
)
async def test_a_gang_for_which_there_is_no_room(release, words, of_placed, plugins):
    """Its condition counts pods from 1.37 on; in 1.38 the plugin that counts them has turned them down."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="2")
    cluster.add_gang(3, "a", "b", "c", cpu="1")
    await cluster.run()
    status, reason, message = cluster.group_condition()
    start = of_placed.get(release) or (f"{UNSCHEDULABLE}, {words}" if release == IN_37 else words)

    assert ("False", "Unschedulable", words) == (status, reason, message[: len(words)])
    assert start == cluster.message("a")[: len(start)]
    assert plugins.get(release, set()) == cluster.queued("a").unschedulable_plugins
    assert {} == cluster.bound
    cluster.add_node("n1", cpu="2")
    await cluster.tick(3)
    assert {"a", "b", "c"} == cluster.bound.keys()


@pytest.mark.parametrize(("release", "at_once"), [(IN_36, False), (IN_37, True), (IN_38, True)])
async def test_a_pod_left_over(release, at_once):
    """A pod more than the gang needs, and for which there is no room, is tried again at once from 1.37 on."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="2")
    async with cluster.paused():
        cluster.add_gang(2, "a", "b", "c", cpu="1")
        came = cluster.queued("c").timestamp
        await cluster.tick(3)
        await cluster.turn()

        assert {"a", "b"} == cluster.bound.keys()
        assert ("active" if at_once else "backoff") == place_of(cluster, "c")
        if at_once:
            assert came == cluster.queued("c").group.timestamp
            await cluster.turn()
            assert "backoff" == place_of(cluster, "c")
    assert ("True", "Scheduled", "") == cluster.group_condition()


def place_of(cluster, name):
    """The place in which the pod waits, alone or with its group."""
    record = cluster.queued(name)
    return cluster.where(name) if record.group is None else cluster.queue.place_of(record)


@pytest.mark.parametrize("release", NEWER)
async def test_a_gang_that_needs_fewer_pods(release):
    """Where minCount is lowered to what there is, the gang goes."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_gang(3, "a", "b")
    await cluster.run()
    assert [QUORUM, QUORUM] == gates_of(cluster, "a", "b")
    cluster.add(group("g", 2))
    await cluster.run()

    assert {"a", "b"} == cluster.bound.keys()
    events = {"queue": "active", "event": "scheduling.k8s.io/PodGroupUpdate", "type": "podgroup"}
    assert 1 == cluster.metric("queue_incoming_entities_total", **events)


@pytest.mark.parametrize("release", NEWER)
async def test_a_gang_that_needs_more_pods(release):
    """Where minCount is raised, nothing is tried."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_gang(3, "a", "b")
    await cluster.run()
    cluster.add(group("g", 4))
    await cluster.run()

    assert [QUORUM, QUORUM] == gates_of(cluster, "a", "b")
    assert [] == cluster.tried


OTHER_PRIORITY = {
    IN_37: (
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        "got 100 and 0"
    ),
    IN_38: (
        "all pods in a pod group hierarchy should have the same priority as the root pod group's priority, "
        'got 100 ("a") and 0 ("podgroup/default/g")'
    ),
}


@reports(
    "group-differs",
    condition="`SchedulerError` of the PodGroup and of its pods: in what they differ, "
    "as `all pods in a single pod group should have the same priority as the pod group's priority`",
)
@pytest.mark.parametrize("release", RELEASES)
async def test_a_group_of_another_priority(release):
    """From 1.37 on the priority of its pods has to be the group's; up to 1.36 theirs counts."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_gang(2, "a", "b", priority=100)
    await cluster.run()

    if release == IN_36:
        assert {"a", "b"} == cluster.bound.keys()
        return
    text = OTHER_PRIORITY[release]
    assert ("False", "SchedulerError", text) == cluster.group_condition()
    assert [text, text] == [cluster.message("a"), cluster.message("b")]
    assert ["SchedulerError"] * 2 == [cluster.condition(name).reason for name in "ab"]
    assert "backoff" == place_of(cluster, "a")


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (IN_37, "all pods in a single pod group should have the same preemption policy, got Never and "),
        (IN_38, "all pods in a pod group hierarchy should have the same preemption policy, got Never "),
    ],
)
async def test_pods_that_differ_in_their_preemption_policy(release, text):
    """Nor may one of them preempt, and the other not."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_group(min_count=2)
    async with cluster.paused():
        cluster.add_member("a")
        cluster.add_member("b", preemption_policy="Never")
        await cluster.turn()

    assert text == cluster.group_condition()[2][: len(text)]


@pytest.mark.parametrize("of_group", [None, "PreemptLowerPriority", "Never"])
@pytest.mark.parametrize("of_pods", [None, "PreemptLowerPriority", "Never"])
@pytest.mark.parametrize(
    ("release", "text"),
    [
        (IN_37, "all pods in a single pod group should have the same preemption policy as the pod group's"),
        (
            IN_38,
            HIERARCHY + "preemption policy as the root pod group's",
        ),
    ],
)
async def test_pods_have_the_preemption_policy_of_their_group(release, text, of_pods, of_group):
    """With the gate PodGroupPreemptionPolicy; none means that it preempts."""
    cluster = a_cluster(release, POLICY)
    cluster.add_node()
    cluster.add_group("g", 1, preemption_policy=of_group)
    cluster.add_member("a", preemption_policy=of_pods)
    await cluster.run()

    if "Never" in (of_pods, of_group) and of_pods != of_group:
        got = f"{of_pods or 'PreemptLowerPriority'}", f"{of_group or 'PreemptLowerPriority'}"
        message = cluster.group_condition()[2]
        assert message.startswith(f"{text} preemption policy, got {got[0]} ")
        assert f" and {got[1]}" in message
    else:
        assert {"a"} == cluster.bound.keys()


@pytest.mark.parametrize("release", NEWER)
async def test_a_pod_on_a_node_counts(release):
    """What those that wait have to have in common, pods that are placed have to have, too."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_group()
    cluster.add_member("placed", node_name="n0", priority=7)
    cluster.add_member("a")
    await cluster.run()

    assert "got 7" in cluster.message("a")


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (IN_36, f"0/4 placements are available, first placement status: {UNSCHEDULABLE}"),
        (IN_37, f"{UNSCHEDULABLE}, {NO_RACK}"),
        (IN_38, NO_RACK),
    ],
)
async def test_a_group_that_fits_in_no_rack(release, text):
    """The message counts the racks, and says of the first what is wrong with it."""
    cluster = a_cluster(release, TOPOLOGY)
    for rack in "abcd":
        cluster.add_node(f"n-{rack}", cpu="1", labels={RACK: rack})
    cluster.add_group("g", 2, topology=RACK)
    cluster.add_members("a", "b", cpu="2")
    await cluster.run()

    assert text == cluster.group_condition()[2][: len(text)]


@pytest.mark.parametrize("release", NEWER)
async def test_a_veteran_goes_before_one_that_came_back_earlier(release):
    """By attempts, whenever the pods were queued last."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="0")
    cluster.add_group()
    async with cluster.paused():
        cluster.add_member("old", cpu="1")
        await cluster.turn()
        cluster.add_member("new", cpu="1")
        record, new = cluster.queued("old"), cluster.queued("new")
        record.timestamp += 5

    assert ["old", "new"] == [member.pod.name for member in record.group.members]
    assert (1, 0) == (record.attempts, new.attempts)


async def test_up_to_1_36_pods_go_by_their_first_attempts():
    """Whichever of them was popped, and whatever their attempts."""
    cluster = a_cluster(IN_36)
    cluster.add_group()
    async with cluster.paused():
        cluster.add_member("old", cpu="1")
        await cluster.turn()
        cluster.queued("old").attempts = 0
        await cluster.tick(1)
        cluster.add_node("n0", cpu="1")
        cluster.add_member("new", cpu="1")
        popped = await cluster.turn()

        assert ("new", {"old": "n0"}) == (popped, cluster.bound)


@pytest.mark.parametrize("release", NEWER)
async def test_a_group_whose_pods_are_all_there_already(release):
    """A pod that comes late and fits nowhere: enough others run, but that is no success."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="2")
    cluster.add_gang(2, "a", "b", cpu="1")
    await cluster.run()
    cluster.add_member("late", cpu="1")
    await cluster.run()

    assert "0/1 nodes are available: 1 Insufficient cpu." == cluster.message("late")
    assert ("True", "Scheduled", "") == cluster.group_condition()
    assert "backoff" == place_of(cluster, "late")
    assert (1, 1) == (cluster.attempts("scheduled"), cluster.attempts("unschedulable"))


@pytest.mark.parametrize("release", NEWER)
async def test_pods_that_wait_for_their_group(release):
    """Without its object they are counted apart, and go once it is there."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_members("a", "b")
    await cluster.run()
    assert 2 == cluster.metric("pending_pods", queue="incomplete")
    assert ["waiting for pod group default/g to be created"] * 2 == gates_of(cluster, "a", "b")
    cluster.add_group(min_count=2)
    await cluster.run()

    assert {"a", "b"} == cluster.bound.keys()


@pytest.mark.parametrize("release", NEWER)
async def test_no_pod_waits_at_permit(release):
    """All pods of a gang are bound in the attempt that found nodes for them."""
    cluster = a_cluster(release)
    cluster.add_node()
    cluster.add_gang(3, "a", "b", "c")
    await cluster.run()

    assert {"a", "b", "c"} == cluster.bound.keys()
    assert ["a"] == cluster.tried
    plugins = cluster.core.profiles.frameworks["default-scheduler"].plugins
    assert "GangScheduling" not in [plugin.name for plugin in plugins.permit]
    assert ("True", "Scheduled", "") == cluster.group_condition()
    assert isinstance(cluster.api.get(PodGroup, "default/g"), PodGroup)


# Preemption, and the nodes that it nominates pods to.


def crowded(release, *gates, nodes=3):
    """Nodes with room for one pod, each with an unimportant one."""
    cluster = a_cluster(release, *gates)
    for i in range(nodes):
        cluster.add_node(f"n{i}", cpu="1", labels={RACK: f"r{i // 2}"})
    return cluster


def preempting(cluster, count, priority=10, **fields):
    """A gang of that many pods, of that priority as they are."""
    cluster.add_group("g", count, priority=priority, **fields)
    cluster.add_members(*"abcd"[:count], cpu="1", priority=priority)


def evicted(cluster):
    """The pods that were deleted by the scheduler."""
    return sorted(call.pod.partition("/")[2] for call in cluster.calls("delete"))


ALL = {"disruptionMode": {"all": {}}}


@pytest.mark.parametrize("release", NEWER)
async def test_a_group_is_evicted_for_a_group(release):
    """All three pods of a group that goes as a whole leave, though two nodes would do."""
    cluster = crowded(release)
    cluster.add_group("low", **ALL)
    for i in range(3):
        cluster.add_member(f"low-{i}", group="low", cpu="1", node_name=f"n{i}")
    cluster.api.grace_seconds = 5.0
    preempting(cluster, 2)
    await cluster.run()
    found = "pod group preemption: found a placement for podgroup, preempting 3 victims"
    counts = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"

    assert ["low-0", "low-1", "low-2"] == evicted(cluster)
    assert ("False", "Unschedulable", f"{counts}, {found}") == cluster.group_condition()
    assert ("Preempted", "low-0", "Preempted by podgroup uid-g on node cluster") in cluster.notes
    assert "default-scheduler: preempting to accommodate a higher priority pod group" == (
        cluster.condition("low-0", "DisruptionTarget").message
    )
    assert 1 == cluster.attempts("waiting_on_preemption")
    assert 2 == len({cluster.nomination("a"), cluster.nomination("b")} & {"n0", "n1", "n2"})
    await cluster.tick(10)
    assert {"a", "b"} == cluster.bound.keys()


def observed(cluster, name, **labels):
    """How many values a histogram has, and their sum."""
    return cluster.metric(f"{name}_count", **labels), cluster.metric(f"{name}_sum", **labels)


@pytest.mark.parametrize("release", RELEASES)
async def test_what_is_counted_of_preemption_by_groups(release):
    """From 1.37 on a group's victims apart from those of pods, units of groups, searches and evictions."""
    newer = release in NEWER
    cluster = crowded(release, nodes=3) if newer else crowded(release, "WorkloadAwarePreemption", nodes=3)
    cluster.add_group("low", disruptionMode={"all": {}} if newer else "PodGroup")
    for i in range(2):
        cluster.add_member(f"low-{i}", "low", cpu="1", node_name=f"n{i}")
    cluster.add_pod("alone", cpu="1", node_name="n2")
    preempting(cluster, 3)
    await cluster.run()
    of_groups = {"preemptor": "podgroup"}

    assert ["alone", "low-0", "low-1"] == evicted(cluster)
    assert ((0, 0) if newer else (1, 3)) == observed(cluster, "preemption_victims")
    assert ((1, 3) if newer else (0, 0)) == observed(cluster, "workload_preemption_victims")
    assert ((1, 1) if newer else (0, 0)) == observed(cluster, "preemption_workload_disruptions", **of_groups)
    assert newer == cluster.metric("workload_preemption_attempts_total", result="Success")
    searches = observed(cluster, "preemption_evaluation_duration_seconds", **of_groups, result="Success")
    evictions = observed(cluster, "preemption_execution_duration_seconds", **of_groups, result="success")
    assert (newer, newer) == (searches[0], evictions[0])


@pytest.mark.parametrize("release", RELEASES)
async def test_what_is_counted_of_preemption_by_pods(release):
    """Budgets that are violated, the search and the evictions from 1.37 on; victims in all."""
    newer = release in NEWER
    cluster = crowded(release, nodes=1)
    cluster.add_pod("low", cpu="1", node_name="n0", labels={"app": "db"})
    cluster.add(budget(selector={"app": "db"}))
    cluster.add_pod("high", cpu="1", priority=10)
    await cluster.run()
    of_pods = {"preemptor": "pod"}

    assert (["low"], (1, 1)) == (evicted(cluster), observed(cluster, "preemption_victims"))
    assert newer == cluster.metric("preemption_pdb_violations_total", **of_pods)
    searches = observed(cluster, "preemption_evaluation_duration_seconds", **of_pods, result="Success")
    evictions = observed(cluster, "preemption_execution_duration_seconds", **of_pods, result="success")
    assert (newer, newer) == (searches[0], evictions[0])


@pytest.mark.parametrize(
    ("release", "labels"), [(IN_36, None), (IN_37, {}), (IN_38, {"type": "podgroup"})], ids=str
)
async def test_what_is_counted_of_placements(release, labels):
    """From 1.37 on, with TopologyAwareWorkloadScheduling; from 1.38 on by the type of what is placed."""
    cluster = a_cluster(release, TOPOLOGY)
    for rack, cpu in (("a", "1"), ("b", "2"), ("c", "2")):
        cluster.add_node(f"n-{rack}", cpu=cpu, labels={RACK: rack})
    cluster.add_group("g", 2, topology=RACK)
    cluster.add_members("a", "b", cpu="1")
    await cluster.run()
    of = {"profile": "default-scheduler", **(labels or {})}
    counted = [
        cluster.metric("generated_placements_total", **of),
        *(
            cluster.metric("placement_evaluations_total", result=result, **of)
            for result in ("feasible", "infeasible")
        ),
        observed(cluster, "placement_evaluation_duration_seconds", result="feasible", **of)[0],
    ]

    assert ([0] * 4 if labels is None else [3, 2, 1, 2]) == counted


@pytest.mark.parametrize("release", NEWER)
async def test_room_is_made_for_more_than_min_count(release):
    """A gang that needs one pod has victims for all three of its pods."""
    cluster = crowded(release)
    for i in range(3):
        cluster.add_pod(f"low-{i}", cpu="1", node_name=f"n{i}")
    cluster.add_group("g", 1, priority=10)
    cluster.add_members("a", "b", "c", cpu="1", priority=10)
    await cluster.run()

    assert ["low-0", "low-1", "low-2"] == evicted(cluster)
    await cluster.tick(15)
    assert {"a", "b", "c"} <= cluster.bound.keys()


@reports(
    "group-waits-for-victims",
    condition="of the PodGroup, at an attempt in that time: `ongoing preemption on nominated nodes`",
)
@pytest.mark.parametrize("release", NEWER)
async def test_a_group_waits_for_its_victims(release):
    """While they are on their way out it is gated, and after that it keeps its nodes."""
    cluster = crowded(release, nodes=2)
    for i in range(2):
        cluster.add_pod(f"low-{i}", cpu="1", node_name=f"n{i}")
    cluster.api.grace_seconds = 20.0
    preempting(cluster, 2)
    await cluster.run()
    nodes = [cluster.nomination("a"), cluster.nomination("b")]
    await cluster.tick(5)

    assert ["n0", "n1"] == sorted(nodes)
    assert ["low-0", "low-1"] == evicted(cluster)
    assert ["waiting for the preemption for this pod group to be finished"] * 2 == gates_of(cluster, "a", "b")
    cluster.queue.activate([cluster.pod("a")])
    await cluster.run()
    text = "pod group preemption: ongoing preemption on nominated nodes"
    assert cluster.group_condition()[2].endswith(f", {text}")
    assert ["low-0", "low-1"] == evicted(cluster)
    assert nodes == [cluster.nomination("a"), cluster.nomination("b")]
    await cluster.tick(30)
    assert nodes == [cluster.bound["a"], cluster.bound["b"]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"preemption_policy": "Never"}, "not eligible due to preemptionPolicy=Never."),
        ({"priority": 0}, "No preemption victims found for incoming preemptor"),
        ({"cpu": "2"}, "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"),
    ],
)
@pytest.mark.parametrize("release", NEWER)
async def test_a_group_that_cannot_preempt(release, fields, text):
    """Its condition says why, behind what it lacks."""
    cluster = crowded(release, nodes=2)
    for i in range(2):
        cluster.add_pod(f"low-{i}", cpu="1", node_name=f"n{i}")
    cluster.add_group("g", 2, priority=fields.get("priority", 10))
    cluster.add_members("a", "b", **{"cpu": "1", "priority": 10, **fields})
    await cluster.run()
    counts = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"

    assert f"{counts}, pod group preemption: {text}" == cluster.group_condition()[2]
    assert [] == evicted(cluster)
    assert ["", ""] == [cluster.nomination("a"), cluster.nomination("b")]


@pytest.mark.parametrize("policy", ["Never", "PreemptLowerPriority"])
@pytest.mark.parametrize("release", NEWER)
async def test_a_group_that_never_preempts(release, policy):
    """With the gate PodGroupPreemptionPolicy its own policy says so."""
    cluster = crowded(release, POLICY, nodes=1)
    cluster.add_pod("low", cpu="1", node_name="n0")
    cluster.add_group("g", 1, priority=10, preemption_policy=policy)
    cluster.add_member("a", cpu="1", priority=10, preemption_policy=policy)
    await cluster.run()

    assert ([] if policy == "Never" else ["low"]) == evicted(cluster)
    assert (policy == "Never") == cluster.group_condition()[2].endswith(
        "pod group preemption: not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize("release", NEWER)
async def test_more_important_victims_are_spared(release):
    """Of two pods on the node one has to go: the one of lower priority."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="2")
    for i in range(2):
        cluster.add_pod(f"low-{i}", cpu="1", node_name="n0", priority=i)
    preempting(cluster, 1)
    await cluster.run()

    assert ["low-0"] == evicted(cluster)


@pytest.mark.parametrize("release", NEWER)
async def test_a_whole_group_goes_before_a_pod(release):
    """Of equal priority a group is more important than a pod, and a larger group than a smaller one."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="4")
    cluster.add_group("large", **ALL)
    cluster.add_group("small", **ALL)
    for i in range(2):
        cluster.add_member(f"large-{i}", group="large", cpu="1", node_name="n0")
    cluster.add_member("small", group="small", cpu="1", node_name="n0")
    cluster.add_pod("pod", cpu="1", node_name="n0")
    preempting(cluster, 2)
    await cluster.run()

    assert ["pod", "small"] == evicted(cluster)


@pytest.mark.parametrize("release", NEWER)
async def test_pods_of_a_group_stay_where_they_were_tried(release):
    """Victims are spared beside the nodes that the pods found without them, though others would do."""
    cluster = crowded(release, nodes=2)
    cluster.add_pod("low-0", cpu="1", node_name="n0", priority=1)
    cluster.add_pod("low-1", cpu="1", node_name="n1", priority=2)
    preempting(cluster, 1)
    await cluster.run()
    (gone,) = evicted(cluster)

    assert cluster.bound["a"] == f"n{gone[-1]}"


@pytest.mark.parametrize("release", NEWER)
async def test_a_group_of_one_rack_preempts(release):
    """A group with a topology constraint makes room for itself in one rack."""
    cluster = crowded(release, TOPOLOGY, nodes=4)
    for i in range(4):
        cluster.add_pod(f"low-{i}", cpu="1", node_name=f"n{i}")
    preempting(cluster, 2, topology=RACK)
    cluster.api.grace_seconds = 5.0
    await cluster.run()
    nodes = {cluster.nomination("a"), cluster.nomination("b")}

    assert nodes in ({"n0", "n1"}, {"n2", "n3"})
    assert evicted(cluster) == sorted(f"low-{name[1:]}" for name in nodes)
    await cluster.tick(12)
    assert nodes == {cluster.bound["a"], cluster.bound["b"]}


@pytest.mark.parametrize(("release", "rack"), [(IN_37, "a"), (IN_38, "b")])
async def test_a_placement_that_pods_are_nominated_to(release, rack):
    """From 1.38 on it is taken where the group fits in it; before, the fuller rack is."""
    cluster = a_cluster(release, TOPOLOGY)
    for name in ("a0", "a1", "b0", "b1"):
        cluster.add_node(name, cpu="2", labels={RACK: name[0]})
    for name in ("a0", "a1"):
        cluster.add_pod(f"on-{name}", cpu="1", node_name=name)
    cluster.add_group("g", 2, topology=RACK)
    async with cluster.paused():
        cluster.add_member("x", cpu="1", nominated_node_name="b0")
        cluster.add_member("y", cpu="1")

    assert {rack} == {cluster.bound[name][0] for name in ("x", "y")}


async def test_a_nominated_placement_without_room_for_a_late_pod():
    """Enough pods of the gang run there: the group would go, and none of its pods would."""
    cluster = a_cluster(IN_38, TOPOLOGY)
    for rack in "ab":
        cluster.add_node(rack, cpu="2", labels={RACK: rack})
    cluster.add_group("g", 1, topology=RACK)
    cluster.add_member("runs", cpu="1", node_name="a")
    cluster.add_member("late", cpu="2", nominated_node_name="a")
    await cluster.run()

    assert "late" not in cluster.bound
    first = "first placement status: nominated placement is feasible but no pending pod was scheduled"
    assert f"0/1 placements are available, {first}" in cluster.group_condition()[2]


@pytest.mark.parametrize("release", NEWER)
async def test_entities_are_counted_by_type_and_place(release):
    """A single pod that waits for a node, a gang that backs off, and one that lacks a pod."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="1")
    cluster.add_pod("alone", cpu="2")
    cluster.add_gang(2, "a", "b", cpu="2", group="large")
    cluster.add_gang(2, "c", group="small")
    await cluster.run()
    places = {("unschedulable", "pod"), ("backoff", "podgroup"), ("gated", "podgroup")}
    names = [(queue, kind) for queue in ("active", "backoff", "unschedulable", "gated") for kind in KINDS]
    counted = {name: cluster.metric("queued_entities", queue=name[0], type=name[1]) for name in names}

    assert dict.fromkeys(places, 1) == {name: count for name, count in counted.items() if count}


@pytest.mark.parametrize(
    ("release", "gone"), [(IN_36, 1), (IN_37, 3), (IN_38, 3)], ids=["1.36", "1.37", "1.38"]
)
async def test_a_group_is_evicted_for_a_pod(release, gone):
    """From 1.37 on a group that is disrupted as a whole goes with its pods on all nodes; before, one pod."""
    cluster = crowded(release)
    whole = {"disruptionMode": "PodGroup"} if release == IN_36 else ALL
    cluster.add_group("low", priority=1, **whole)
    for i in range(3):
        cluster.add_member(f"low-{i}", group="low", cpu="1", node_name=f"n{i}", priority=1)
    cluster.api.grace_seconds = 5.0
    cluster.add_pod("high", cpu="1", priority=10)
    await cluster.run()
    text = f"preempting {gone} victims"

    assert gone == len(evicted(cluster))
    assert release == IN_36 or text in cluster.message("high")
    assert cluster.nomination("high") in {"n0", "n1", "n2"}


@pytest.mark.parametrize("release", NEWER)
async def test_a_group_is_spared_for_a_pod(release):
    """A group is more important than a pod of its priority, wherever else it has pods."""
    cluster = crowded(release, nodes=1)
    cluster.add_node("m", cpu="2")
    cluster.add_group("low", **ALL)
    cluster.add_member("low-0", group="low", cpu="1", node_name="n0")
    cluster.add_member("low-1", group="low", cpu="1", node_name="m")
    cluster.add_pod("alone", cpu="1", node_name="m")
    cluster.add_pod("high", cpu="1", priority=10)
    await cluster.run()

    assert ["alone"] == evicted(cluster)


@pytest.mark.parametrize("release", NEWER)
async def test_pods_of_a_group_on_other_nodes_count_as_gone(release):
    """A pod that may not be in the zone of one of them has room where another one is."""
    cluster = a_cluster(release)
    for name in ("n0", "n1"):
        cluster.add_node(name, cpu="1", labels={"zone": "z"})
    cluster.add_group("low", **ALL)
    for i in range(2):
        cluster.add_member(f"low-{i}", group="low", cpu="1", node_name=f"n{i}", labels={"app": "low"})
    cluster.add_pod("high", cpu="1", priority=10, affinity=apart("zone", app="low"))
    await cluster.run()

    assert ["low-0", "low-1"] == evicted(cluster)


@pytest.mark.parametrize(
    ("release", "added", "changed"),
    [
        (IN_36, "UnschedulablePodAdd", "UnschedulablePodUpdatePodLabel"),
        (IN_37, "UnscheduledPodAdd", "TargetPodUpdatePodLabel"),
        (IN_38, "UnscheduledPodAdd", "TargetPodUpdatePodLabel"),
    ],
)
async def test_labels_of_events_of_pods(release, added, changed):
    """From 1.37 on the events of the waiting pod itself have a name of their own; decisions do not change."""
    cluster = a_cluster(release)
    cluster.add_node("n0", cpu="1", labels={"a": "b"})
    cluster.add_pod("p", cpu="2")
    await cluster.run()
    cluster.change_pod("p", labels={"x": "y"})
    await cluster.run()

    assert 1 == cluster.metric("queue_incoming_pods_total", queue="active", event=added)
    assert 1 == cluster.metric("event_handling_duration_seconds_count", event=added)
    assert 1 == cluster.metric("event_handling_duration_seconds_count", event=changed)
    cluster.change_pod("p", spec={"scheduling_gates": ()})
    cluster.add_node("n1", cpu="2")
    await cluster.tick(2)
    assert {"p": "n1"} == cluster.bound


@pytest.mark.parametrize("release", NEWER)
async def test_a_group_that_is_planned(release):
    """JointPlacement plans a queued group as it does one of 1.36: the gang goes where all of it fits."""
    fields = {"cpu": "2", "labels": {"group": "g"}, "affinity": near("zone", group="g")}
    plugins = ["GangScheduling", ("NodeResourcesFit", 1), ("InterPodAffinity", 2), "JointPlacement"]
    cluster = Groups(*plugins, release=release, gates={"GenericWorkload": True})
    for name, cpu in (("a", "4"), ("b-0", "2"), ("b-1", "2"), ("b-2", "2")):
        cluster.add_node(name, cpu=cpu, labels={"zone": name[0]})
    cluster.add_gang(3, "x", "y", "z", **fields)
    await cluster.run()

    assert {"b-0", "b-1", "b-2"} == set(cluster.bound.values())
