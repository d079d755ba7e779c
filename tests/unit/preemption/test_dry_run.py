# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Who has to go on a node."""

import asyncio

import msgspec
import numpy as np
from hypothesis import assume, given, settings

from berth.framework.interface import PreFilterResult
from berth.framework.mirrors.group_trees import GroupTrees
from berth.framework.mirrors.listers import Store
from berth.framework.preempting import PreemptionRequest
from berth.framework.status import Code, failed
from berth.objects.api_object import ObjectMeta
from berth.objects.pod_groups import PodGroup, PodGroupSpec
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.plugins.registry import IN_TREE
from berth.preemption.candidates import Candidate
from berth.preemption.dry_run import NO_VICTIMS
from berth.preemption.whole_groups import WholeGroups
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_pod
from tests.suite import examples
from tests.unit.preemption.contests import contests
from tests.unit.preemption.kit import NOW, budget, node, placed, preemptor, stage
from tests.unit.preemption.plain import Node, plain_dry_run, reported

# A busy machine makes single examples slow; that is no failure of a law.
law = settings(max_examples=examples(80), deadline=None)


class Forgets(IN_TREE["NodePorts"]):
    """Turns the node down until pods are evicted from it on trial, and never after that."""

    def pre_filter(self, state, pod, nodes):
        return PreFilterResult()

    def filter(self, state, pod, nodes):
        return np.full(len(nodes), 0 if nodes.ports is not None else 1, dtype=np.uint8)


class Breaks(IN_TREE["NodePorts"]):
    """Turns every node down at first; cannot stand n1 without its pods."""

    def pre_filter(self, state, pod, nodes):
        return PreFilterResult()

    def filter(self, state, pod, nodes):
        if nodes.ports is not None and "n1" in nodes.names:
            raise ValueError("n1 is odd")
        return np.zeros(len(nodes), dtype=np.uint8)


class LosesCount(IN_TREE["InterPodAffinity"]):
    """Cannot think a pod away."""

    follows_side_by_side = False

    def pre_filter(self, state, pod, nodes):
        return PreFilterResult()

    def filter(self, state, pod, nodes):
        return np.zeros(len(nodes), dtype=np.uint8)

    def remove_pod(self, state, pod, other, node):
        return failed("lost count")


def with_plugin(kind, name):
    """The in-tree plugins, one of them replaced."""
    return {**IN_TREE, name: type(name, (kind,), {})}


FORGETFUL = with_plugin(Forgets, "NodePorts")
BREAKS_ON_N1 = with_plugin(Breaks, "NodePorts")
CANNOT_FOLLOW = with_plugin(LosesCount, "InterPodAffinity")


def names(candidate):
    return [victim.name for victim in candidate.victims]


async def on_n0(placed_pods, pod=None, **more):
    """The outcome on a node of 4 CPUs."""
    return (await stage([node()], placed_pods, **more).outcomes(pod or preemptor()))["n0"]


async def test_6_4_1_equal_and_higher_priorities_are_never_victims():
    outcome = await on_n0([placed("equal", "3", 10), placed("higher", "1", 11)])

    assert NO_VICTIMS == outcome


async def test_6_4_1_a_pod_that_is_leaving_already_is_a_victim():
    assert ["v"] == names(await on_n0([placed("v", "4", terminating=True)]))


async def test_6_4_3_the_status_of_a_node_that_is_still_too_full_is_the_filters():
    outcome = await on_n0([placed("small"), placed("big", "3", 10)])

    assert (Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit") == (
        outcome.code,
        outcome.reasons,
        outcome.plugin,
    )


async def test_6_4_6_only_who_has_to_go_goes_and_the_important_stay():
    """Vector 11.8.3."""
    outcome = await on_n0([placed("a", "1", 5), placed("b", "1", 1), placed("c", "2", 7)], preemptor("1"))

    assert ["b"] == names(outcome)


async def test_6_4_6_an_older_pod_stays_among_equals():
    outcome = await on_n0([placed("young", "2", started=9), placed("old", "2", started=1)], preemptor("2"))

    assert ["young"] == names(outcome)


async def test_6_4_6_who_violates_a_budget_is_spared_before_who_does_not():
    outcome = await on_n0(
        [placed("free", "2", 5), placed("guarded", "2", 1, labels={"app": "db"})],
        preemptor("2"),
        budgets=[budget(selector={"app": "db"})],
    )

    assert (["free"], 0) == (names(outcome), outcome.pdb_violations)


async def test_6_4_7_victims_of_both_kinds_come_in_order_of_importance():
    outcome = await on_n0(
        [placed("free", "2", 5), placed("guarded", "2", 1, labels={"app": "db"})],
        budgets=[budget(selector={"app": "db"})],
    )

    assert (["free", "guarded"], 1) == (names(outcome), outcome.pdb_violations)


async def test_6_4_a_node_that_needs_no_victims_is_an_error():
    outcome = await on_n0([placed("v", "1")], preemptor("1"), plugins=FORGETFUL)

    assert failed('expected at least one victim pod on node "n0"').reasons == outcome.reasons
    assert Code.ERROR is outcome.code


async def test_4_7_pods_that_were_promised_the_node_count():
    """A nominated pod of no lower priority takes its share; one of lower priority does not."""
    low = [placed("a", "2"), placed("b", "2")]
    equal, lower = (
        preemptor("2", priority, f"nominated-{priority}", nominated_node_name="n0") for priority in (10, 9)
    )

    assert ["a", "b"] == names(await on_n0(low, preemptor("2"), nominated=[equal]))
    assert ["b"] == names(await on_n0(low, preemptor("2"), nominated=[lower]))


async def test_a_plugin_that_fails_on_one_node_leaves_the_others_their_answers():
    found = await stage(
        [node("n0"), node("n1")], [placed("v0", "4"), placed("v1", "4", on="n1")], plugins=BREAKS_ON_N1
    ).outcomes(preemptor())

    assert ["v0"] == names(found["n0"])
    assert 'running "NodePorts" filter plugin: n1 is odd' == found["n1"].message


async def test_a_plugin_that_cannot_follow_a_victim_makes_the_node_an_error():
    outcome = await on_n0([placed("v", "4")], plugins=CANNOT_FOLLOW)

    assert 'running RemovePod on PreFilter plugin "InterPodAffinity": lost count' == outcome.message


async def dry_run(contest):
    """Attempt, diagnosis and outcomes, for a pod that fits nowhere at first."""
    s, pod = contest
    try:
        attempt, diagnosis = await s.rejected(pod)
    except AssertionError:
        assume(False)
    request = PreemptionRequest("DefaultPreemption", pod, attempt.state, diagnosis)
    outcomes = await s.preemption.dry_run(request).run(np.arange(len(s.snapshot)))
    return attempt, diagnosis, outcomes


@law
@given(contests())
def test_6_4_law_side_by_side_is_as_the_specification_words_it(contest):
    """The answer for all nodes together is what the plain algorithm says of each node."""
    asyncio.run(as_the_plain_algorithm(contest))


@law
@given(contests())
def test_6_4_law_one_by_one_is_as_the_specification_words_it(contest):
    """So it is where plugins follow one node at a time."""
    s, _ = contest
    for plugin in s.framework.extensions:
        plugin.follows_side_by_side = False
    asyncio.run(as_the_plain_algorithm(contest))


async def as_the_plain_algorithm(contest):
    s, _ = contest
    attempt, _, outcomes = await dry_run(contest)
    budgets = list(s.handle.listers.pod_disruption_budgets)
    for row, outcome in enumerate(outcomes):
        promised = s.handle.nominator.nominated_pods_for_node(s.snapshot.names[row])
        plain = await plain_dry_run(
            s.framework, attempt, row, budgets=budgets, nominated_pods=promised, now=NOW
        )
        assert reported(plain) == reported(outcome)


class EveryNodeByItself(WholeGroups):
    """Has each node tried unit by unit, though there are no groups."""

    def meet(self, infos):
        del infos
        return True


@law
@given(contests())
def test_6_4_law_units_of_one_pod_are_pods(contest):
    """Tried unit by unit, a node without pods of groups has the victims that it has side by side."""
    asyncio.run(as_unit_by_unit(contest))


async def as_unit_by_unit(contest):
    s, pod = contest
    # What several budgets protect is used up in another order.
    assume(len(list(s.handle.listers.pod_disruption_budgets)) < 2)
    attempt, diagnosis, outcomes = await dry_run(contest)
    whole = EveryNodeByItself(Store(), PodGroupStates())
    request = PreemptionRequest("DefaultPreemption", pod, attempt.state, diagnosis)
    by_itself = await msgspec.structs.replace(s.preemption.dry_run(request), whole=whole).run(
        np.arange(len(s.snapshot))
    )

    assert [reported(outcome) for outcome in outcomes] == [reported(outcome) for outcome in by_itself]


def test_units_of_a_group():
    """A group's unit is made once for all nodes, and has the pod at hand where the others are gone."""
    group = PodGroup(
        ObjectMeta(name="g", namespace="default", uid="g"), PodGroupSpec(disruption_mode="PodGroup")
    )
    groups, known, snapshot = Store(), {}, Snapshot()
    groups.put(group)
    infos = [
        PodInfo(make_pod(name, scheduling_group=SchedulingGroup("g"), priority=3)) for name in ("a", "b")
    ]

    whole = WholeGroups(GroupTrees(groups, Store()), PodGroupStates())
    (unit,) = whole.units(infos, snapshot, known)
    (again,) = whole.units(infos[1:], snapshot, known)
    assert ((infos[0],), 3) == (unit.pods, unit.priority)
    assert again is unit


@law
@given(contests(follows=False))
def test_6_4_law_victims_are_needed_and_less_important(contest):
    """Every victim has a lower priority, and with any one of them back the pod does not fit.

    The latter holds for pods that no other pod pleases: neither affinity nor spreading.
    """
    asyncio.run(needed(contest))


async def needed(contest):
    s, pod = contest
    attempt, _, outcomes = await dry_run(contest)
    for row, outcome in enumerate(outcomes):
        if not isinstance(outcome, Candidate):
            continue
        assert all(victim.priority < pod.priority for victim in outcome.victims)
        infos = [s.snapshot.pods[row][victim.uid] for victim in outcome.victims]
        promised = s.handle.nominator.nominated_pods_for_node(outcome.node_name)
        nominated = [PodInfo(p) for p in promised if p.priority >= pod.priority and p.uid != pod.uid]
        for back in infos:
            node_ = Node(s.framework, attempt, outcome.node_name, nominated)
            for info in infos:
                node_.move(info, away=True)
            assert (await node_.status()).ok, "it fits without them"
            node_.move(back, away=False)
            assert not (await node_.status()).ok, "it does not fit beside this one"


@law
@given(contests())
def test_6_2_law_the_screening_loses_no_candidate(contest):
    """The search finds exactly the nodes that a dry run of every potential node finds."""
    asyncio.run(nothing_lost(contest))


async def nothing_lost(contest):
    s, pod = contest
    attempt, diagnosis, outcomes = await dry_run(contest)
    request = PreemptionRequest("DefaultPreemption", pod, attempt.state, diagnosis)
    found = await s.preemption.candidates(request)
    potential = diagnosis.rows_with(Code.UNSCHEDULABLE)
    wanted = [o for o, is_potential in zip(outcomes, potential, strict=True) if is_potential]

    by_name = {candidate.node_name: candidate for candidate in found.found}
    assert {o.node_name: o for o in wanted if isinstance(o, Candidate)} == by_name
    if not by_name:
        said = [reported(found.diagnosis.node_status(row)) for row in np.flatnonzero(potential)]
        assert [reported(outcome) for outcome in wanted] == said
