"""Plans that are remembered: the same as made anew, and forgotten with whatever they rested on."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.evaluation.caching.remote_plugin import RemotePlugin
from berth.framework.group_plans import GroupPlan
from berth.framework.interface import NominatingInfo, NominatingMode, PreScorePlugin
from berth.framework.status import SKIP
from berth.objects.workloads import Namespace
from berth.plugins.joint_placement import JointPlacement
from berth.plugins.registry import IN_TREE
from berth.pod_groups import plan_memory
from berth.pod_groups.plan_memory import PlanMemory, Planned
from berth.pod_groups.planning_stage import PlanningStage
from berth.testing.builders import make_pod
from tests.unit.pod_groups.kit import ZONE, drawn, member, near, node, stage


@dataclass
class Counting:
    """Plugins whose JointPlacement counts how often it plans, by `instead` where that is given."""

    instead: Callable = JointPlacement.plan
    plans: int = 0

    @property
    def plugins(self):
        async def plan(planner, *question):
            self.plans += 1
            return await self.instead(planner, *question)

        return {**IN_TREE, "JointPlacement": type("JointPlacement", (JointPlacement,), {"plan": plan})}


def gang():
    """Three pods that go to one zone, and a zone that suits the first of them and has no room for all."""
    nodes = [node("big", 6, zone="a"), *(node(f"n{i}", 4, zone="b") for i in range(3))]
    return nodes, [member(f"p{i}", 4, affinity=near(ZONE, app="g")) for i in range(3)]


def counted(instance=None, **options):
    """A group on a small cluster, and how often it was planned."""
    counting = Counting(**options)
    return counting, stage(*(instance or gang()), plugins=counting.plugins)


async def test_a_group_is_planned_once_as_long_as_nothing_changes():
    """And goes the same way each time."""
    counting, one = counted()
    found = [await one.jointly() for _ in range(3)]

    assert 1 == counting.plans
    assert found[0] == found[1] == found[2]
    assert {"n0", "n1", "n2"} == set(found[0].values())


async def test_that_no_plan_is_better_is_remembered_too():
    """One pod more than there is room for."""
    counting, one = counted(([node("n0", 6)], [member(f"p{i}", 2) for i in range(4)]))
    for _ in range(3):
        await one.jointly()

    assert 1 == counting.plans


def another_node(one):
    one.ground.cache.add_node(node("n9", 2))


def a_pod_that_comes(one):
    one.ground.cache.add_pod(make_pod("old", node_name="n0"))


def a_nomination(one):
    info = NominatingInfo(NominatingMode.OVERRIDE, "n1")
    one.ground.nominator.add(make_pod("waits"), info)


def another_object(one):
    one.listers.namespaces.put(Namespace())


def another_version_of_a_member(one):
    first, *others = one.question.members
    metadata = msgspec.structs.replace(first.pod.metadata, resource_version="2")
    first.info.pod = msgspec.structs.replace(first.pod, metadata=metadata)
    one.question = msgspec.structs.replace(one.question, members=[first, *others])


def a_member_less(one):
    one.question = msgspec.structs.replace(one.question, members=one.question.members[:2])


def a_member_that_is_on_its_node(one):
    one.question.states.add(member("p9", node_name="n0"))


def another_list_of_plugins(one):
    framework = one.question.framework
    framework.take(replace(framework.plugins, post_bind=[JointPlacement]))


@pytest.mark.parametrize(
    "change",
    [
        another_node,
        a_pod_that_comes,
        a_nomination,
        another_object,
        another_version_of_a_member,
        a_member_less,
        a_member_that_is_on_its_node,
        another_list_of_plugins,
    ],
)
async def test_what_changed_has_the_group_planned_anew(change):
    """Once."""
    counting, one = counted()
    await one.jointly()
    change(one)
    one.ground.cache.update_snapshot(one.ground.snapshot)
    await one.jointly()
    await one.jointly()

    assert 2 == counting.plans


@settings(max_examples=10)
@given(st.integers(0, 40), st.lists(st.tuples(st.sampled_from("+-np "), st.integers(0, 9)), max_size=4))
async def test_a_remembered_plan_is_the_one_that_is_made_anew(seed, changes):
    """Whatever happens between attempts: pods come (+) and go (-), nodes change, others are nominated."""
    ways = []
    for remembers in (True, False):
        one = stage(*drawn(seed, max_pods=6))
        if not remembers:
            one.ground = msgspec.structs.replace(one.ground, plans=PlanMemory(object))
        ways.append([await one.jointly()])
        for what, number in changes:
            _change(one, what, number)
            ways[-1].append(await one.jointly())

    assert ways[1] == ways[0]


def _change(one, what, number):
    cache, names = one.ground.cache, one.ground.snapshot.names
    name, old = names[number % len(names)], cache.find_pod("default", f"new-{number}")
    if what == "+" and old is None:
        cache.add_pod(make_pod(f"new-{number}", requests={"cpu": "1"}, node_name=name))
    elif what == "-" and old is not None:
        cache.remove_pod(old)
    elif what == "n":
        cache.add_node(node(name, 2 + number))
    elif what == "p":
        one.ground.nominator.add(make_pod("waits"), NominatingInfo(NominatingMode.OVERRIDE, name))
    cache.update_snapshot(one.ground.snapshot)


class Outside(PreScorePlugin, RemotePlugin):
    """A sidecar, as far as planning sees it."""

    in_process = False
    now = None

    def pre_score(self, *_):
        """Nothing to do."""
        return SKIP

    def shared_cache_key(self, _nodes):
        """What its answers rest on."""
        return self.now

    touched = ask = columns = answers = filter = score = normalize_score = None


async def with_outside(*bases):
    """How often a group is planned while a sidecar rests on one after the other."""
    counting, one = counted()
    framework, plugin = one.question.framework, Outside()
    framework.take(replace(framework.plugins, pre_score=[*framework.plugins.pre_score, plugin]))
    for plugin.now in bases:
        await one.jointly()
    return counting.plans


async def test_what_rests_on_an_unknown_basis_is_not_remembered():
    """A sidecar whose answers are not about single nodes."""
    assert 3 == await with_outside(None, None, None)


async def test_another_basis_of_a_plugin_in_another_process_has_the_group_planned_anew():
    """It was started anew, or has news."""
    assert 2 == await with_outside("first", "first", "second", "second")


async def too_good(_planner, pods, start, _ground):
    """A plan that promises room on a node that has none."""
    return start._replace(worth=(True, (9,), 0), plan=GroupPlan({pod.uid: "n0" for pod in pods}))


async def broken(*_):
    raise RuntimeError


@pytest.mark.parametrize("instead", [too_good, broken])
async def test_a_plan_that_does_not_hold_and_a_planner_that_breaks_are_not_remembered(instead):
    """The pods are placed, and it may have been the moment."""
    instance = [node("n0", 1), node("n1", 8)], [member("a"), member("b")]
    counting, one = counted(instance, instead=instead)
    found = [await one.jointly() for _ in range(2)]

    assert [{"a", "b"}, {"a", "b"}] == [set(each) for each in found]
    assert 2 == counting.plans


async def test_a_change_during_planning_is_a_change():
    """It was there for a part of the planning alone."""

    async def plan(planner, *question):
        if counting.plans == 1:
            another_object(one)
        return await JointPlacement.plan(planner, *question)

    counting, one = counted(instead=plan)
    for _ in range(3):
        await one.jointly()

    assert 2 == counting.plans


async def test_a_group_that_fits_nowhere_is_not_planned():
    """No pod of it has a node, so none can be the first of a plan."""
    counting, one = counted(([node("n0", 2)], [member(name, 4) for name in "ab"]))

    assert {} == await one.jointly()
    assert 0 == counting.plans


def test_so_many_groups_are_remembered(monkeypatch):
    """What was planned longest ago goes; a change forgets all."""
    monkeypatch.setattr(plan_memory, "MAX_GROUPS", 2)
    now = [0]
    memory, one = PlanMemory(lambda: now[0]), stage(*gang())
    states = one.question.states.known(one.question.key)
    planning = plan_memory.Planning.of(
        one.question.framework, one.question.members, states, one.ground.snapshot
    )
    for name in "abc":
        assert memory.recall((name, b""), planning) is None
        memory.remember((name, b""), planning, Planned(None, lasts=True))

    assert [False, True, True] == [memory.recall((name, b""), planning) is not None for name in "abc"]
    now[0] = 1
    assert memory.recall(("c", b""), planning) is None
    assert 0 == len(memory)


@settings(max_examples=25)
@given(st.integers(0, 60), st.randoms(use_true_random=False))
async def test_a_plan_that_begins_as_the_one_before_it_comes_to_the_same_as_alone(seed, chance):
    """Pods that stand already are not tried again, and what comes of the plan is what would come of it."""
    one = stage(*drawn(seed, max_pods=6))
    question = msgspec.structs.replace(one.question, simulated=True)
    together = PlanningStage.of(one.ground, question)
    other = stage(*drawn(seed, max_pods=6))
    for plan in _varied(one, chance):
        alone = PlanningStage.of(other.ground, msgspec.structs.replace(other.question, simulated=True))
        expected = await alone.tried(plan)
        await alone.take_back()

        assert expected == await together.tried(plan)


def _varied(one, chance):
    """Plans each of which differs from the one before it in one pod."""
    names = one.ground.snapshot.names
    steps = [(pod.uid, chance.choice(names)) for pod in one.pods]
    for _ in range(4):
        i = chance.randrange(len(steps))
        steps[i] = steps[i][0], chance.choice(names)
        yield GroupPlan(dict(steps))
