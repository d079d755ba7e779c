"""Groups whose profile has JointPlacement: what a plan gains, and that it never loses anything."""

import logging

import msgspec
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.framework.attempts.cycle_budget import CpuTime, CycleMeter
from berth.framework.group_plans import GroupPlan
from berth.plugins.joint_placement import JointPlacement
from berth.plugins.joint_placement.looking import MAX_COSTED
from berth.plugins.joint_placement.plugin import MAX_ATTEMPTS, MAX_RULES
from berth.plugins.registry import IN_TREE
from berth.pod_groups.group_algorithm import ROUNDS
from berth.pod_groups.scored_pods import ScoredPods
from berth.testing.builders import make_node
from tests.failures.reporting import reports
from tests.unit.pod_groups.kit import HOST, ZONE, apart, drawn, even, member, near, node, quality, stage

GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
PERCENT = 100


def planning(**methods):
    """The in-tree plugins with another JointPlacement."""
    return {**IN_TREE, "JointPlacement": type("JointPlacement", (JointPlacement,), methods)}


async def outcome(instance, **options):
    """(worth one by one, worth jointly)."""
    greedy = await stage(*instance, **options).one_by_one()
    one = stage(*instance, **options)
    return greedy, await one.worth(await one.jointly())


def placed_and_total(worth):
    return sum(worth[1]), worth[2]


@pytest.mark.parametrize("seed", range(100, 130))
async def test_a_plan_is_never_worse_than_one_by_one(seed):
    """Neither in the pods that it places nor in the sum of their scores."""
    greedy, joint = await outcome(drawn(seed))

    assert placed_and_total(joint) >= placed_and_total(greedy)


@pytest.mark.parametrize("seed", [1, 5, 12, 22, 23, 26, 33, 35, 39, 42, 48, 53])
async def test_a_plan_is_within_one_percent_of_the_best_of_all(seed):
    """Each way to place the pods in the group's order is tried."""
    _, (placed, total), (most, best) = await quality(seed, max_pods=6)

    assert placed > most or (placed == most and total * PERCENT >= best * (PERCENT - 1))


@pytest.mark.parametrize("seed", [3, 12, 33, 84])
async def test_the_same_group_has_the_same_plan(seed):
    """Made twice from the same objects, drawn alike."""
    first, second = [await stage(*drawn(seed)).jointly() for _ in range(2)]

    assert first == second


@pytest.mark.parametrize("seed", [12, 33, 84])
async def test_the_snapshot_is_in_the_end_as_it_was(seed):
    """Whatever was placed to look and to try is taken back."""
    one = stage(*drawn(seed))
    nodes = one.ground.snapshot
    before = nodes.requested.copy(), nodes.pod_count.copy(), [list(pods) for pods in nodes.pods]
    await one.jointly()

    assert (before[0] == nodes.requested).all()
    assert (before[1] == nodes.pod_count).all()
    assert before[2] == [list(pods) for pods in nodes.pods]


HALVES = [node("n0", zone="a"), node("n1", zone="b")]


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        pytest.param(
            [node("big", 6, zone="a"), *(node(f"n{i}", 4, zone="b") for i in range(3))],
            [member(f"p{i}", 4, affinity=near(ZONE, app="g")) for i in range(3)],
            id="affinity inside: the zone of the emptiest node is too small",
        ),
        pytest.param(
            [node("n0", 8, 8), node("n1", 8, 8)],
            [*(member(f"a{i}", 1, 2) for i in range(2)), member("b", 1, 8), member("c", 1, 4)],
            id="GPU shapes that fragment",
        ),
        pytest.param(
            [node("n0", 8, zone="a"), node("n1", 3, zone="b")],
            [
                member("a", 2, topology_spread_constraints=even(ZONE)),
                member("b", 8, topology_spread_constraints=even(ZONE)),
            ],
            id="skew 1, and a pod that fits in one zone alone",
        ),
        pytest.param(
            [node("n0", 8), node("n1", 4)],
            [member("a", 2, affinity=apart(HOST, app="g")), member("b", 6)],
            id="anti-affinity, and a pod that fits on one node alone",
        ),
        pytest.param(
            HALVES,
            [member("a", affinity=near(HOST, role="driver")), member("b", labels={"role": "driver"})],
            id="affinity to a pod that comes later",
        ),
    ],
)
async def test_a_plan_places_groups_that_one_by_one_does_not(nodes, pods):
    """All pods by the plan, and not all of them one by one."""
    greedy, joint = await outcome((nodes, pods))

    assert sum(greedy[1]) < len(pods) == sum(joint[1])


async def test_what_a_plan_leaves_out_is_tried_one_by_one():
    """Four pods of which three fit: the plan has three, and the fourth has a reason of its own."""
    one = stage([node("n0", 6)], [member(f"p{i}", 2) for i in range(4)])

    assert {"p0": "n0", "p1": "n0", "p2": "n0"} == await one.jointly()


async def test_pods_of_a_higher_priority_are_not_given_up_for_many():
    """One large pod that matters more, or three small ones."""
    large = member("large", 6, priority=10)
    small = [member(f"p{i}", 2, priority=0) for i in range(3)]

    assert {"large": "n0"} == await stage([node("n0", 6)], [large, *small]).jointly()


@pytest.mark.parametrize(
    ("nominated", "args"),
    [
        pytest.param("", {"maxPods": 2}, id="more pods than are planned"),
        pytest.param("n1", {}, id="a nominated pod"),
    ],
)
async def test_a_group_that_is_not_planned_goes_one_by_one(nominated, args):
    """The planner is not asked."""
    pods = [member("a"), member("b"), member("c", nominated_node_name=nominated)]
    asked = []

    async def plan(*_):
        asked.append(1)

    one = stage(HALVES, pods, plugins=planning(plan=plan), **args)

    assert {"a", "b", "c"} == set(await one.jointly())
    assert [] == asked


@reports("planning-left-out", log="`pod group too large to be planned, placed one by one`, with the limit")
async def test_the_log_says_that_a_group_is_too_large(caplog):
    """With the number of its pods and the limit."""
    with caplog.at_level(logging.WARNING):
        await stage(HALVES, [member("a"), member("b"), member("c")], maxPods=2).jointly()

    assert (
        "pod group too large to be planned, placed one by one group=default/g pods=3 limit=2" in caplog.text
    )


@reports("planning-left-out", log="`pod group has too many rules to be planned`, with the limit")
async def test_a_group_of_too_many_rules_goes_one_by_one(caplog):
    """Members that each spread over many keys: so many rules are read, and the log says so."""
    keys = [f"key-{i}" for i in range(MAX_RULES)]
    spread = tuple(even(key)[0] for key in keys)
    nodes = [make_node("n0", labels=dict.fromkeys(keys, "a"))]
    pods = [member(name, topology_spread_constraints=spread, priority=i) for i, name in enumerate("ab")]

    assert {"a": "n0", "b": "n0"} == await stage(nodes, pods).jointly()
    assert f"pod group has too many rules to be planned pod=default/a limit={MAX_RULES}" in caplog.text


class Passing:
    """A clock that a test sets."""

    now = 0.0

    def monotonic(self):
        return self.now

    def cpu(self):
        return self.now


async def breathe():
    """Nothing else waits for its turn."""


async def test_no_plan_is_tried_once_a_quarter_of_the_budget_is_used():
    """What was placed one by one is carried out."""
    clock, tried = Passing(), []

    async def plan(_self, _pods, start, ground):
        for clock.now in (0.2, 0.3):
            tried.append(await ground.tried(start.plan))

    one = stage(HALVES, [member("a"), member("b")], plugins=planning(plan=plan))
    meter = CycleMeter(1.0, CpuTime(clock), breathe)
    one.question = msgspec.structs.replace(one.question, meter=meter)

    assert {"a", "b"} == set(await meter.timed(one.jointly()))
    assert [False, True] == [found is None for found in tried]


@reports("planner-fails", log="`planner failed, placed one by one`, with group and cause")
async def test_a_planner_that_breaks_costs_the_group_nothing(caplog):
    """Its pods are placed one by one, and what it placed to look is taken back."""

    async def plan(_self, pods, _start, ground):
        await ground.place(list(ground.nodes.pods[0].values()))
        raise RuntimeError(pods)

    old = member("old", node_name="n0")
    one = stage(HALVES, [member("a"), member("b")], [old], plugins=planning(plan=plan))

    assert {"a", "b"} == set(await one.jointly())
    assert 0 == one.ground.cache.trials
    assert "planner failed, placed one by one group=default/g plugin=" in caplog.text


@reports("plan-does-not-hold", log="`plan of a pod group not carried out, placed one by one`, with group")
async def test_a_plan_that_does_not_hold_is_not_carried_out(caplog):
    """A node that has no room was promised: the pods go one by one."""

    async def plan(_self, pods, start, _ground):
        better = (True, (len(pods) + 1,), 0)
        return start._replace(worth=better, plan=GroupPlan(dict.fromkeys((pod.uid for pod in pods), "n1")))

    nodes = [node("n0", 8), node("n1", 1)]
    one = stage(nodes, [member("a"), member("b")], plugins=planning(plan=plan))

    assert {"a": "n0", "b": "n0"} == await one.jointly()
    assert "plan of a pod group not carried out, placed one by one group=default/g" in caplog.text


def test_the_plugin_is_in_no_default_list():
    """Whatever the gates say."""
    (profile,) = load(
        None, gates=FeatureGates(dict.fromkeys(("GenericWorkload", "GangScheduling"), True))
    ).profiles

    assert not any("JointPlacement" in profile.plugins(point) for point in ExtensionPoint)


async def test_trying_plans_is_bounded(monkeypatch):
    """A group of 64 pods of 64 kinds: so many pods are looked at and placed, however many moves there are."""
    nodes = [node(f"n{i:02}", 16, zone="ab"[i % 2]) for i in range(24)]
    pods = [member(f"p{i:02}", 1, volumes=({"name": f"v{i}", "emptyDir": {}},)) for i in range(64)]
    asked, real = [], ScoredPods.scores

    async def scores(*question):
        asked.append(1)
        return await real(*question)

    monkeypatch.setattr(ScoredPods, "scores", scores)

    assert 64 == len(await stage(nodes, pods).jointly())
    assert 64 + 64 + MAX_COSTED + MAX_ATTEMPTS + 64 * ROUNDS >= len(asked)
