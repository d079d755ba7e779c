"""From a pod that fits nowhere to a nomination, or to a reason."""

import pytest

from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.extender import Victims
from berth.framework.interface import CLEAR_NOMINATION, NominatingMode
from berth.framework.preempting import PreemptionRequest
from berth.framework.status import Code
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm
from berth.objects.taint import Taint
from tests.unit.preemption.kit import PREEMPTED, budget, node, placed, preemptor, stage
from tests.unit.preemption.test_dry_run import BREAKS_ON_N1, Breaks, with_plugin

TAINT = Taint("gpu", "", "NoSchedule")


class AlwaysOdd(Breaks):
    """Cannot stand any node without its pods."""

    def filter(self, state, pod, nodes):
        if nodes.ports is not None:
            raise ValueError(f"{nodes.names[0]} is odd")
        return super().filter(state, pod, nodes)


def outcome(result):
    """Code, message and what becomes of the nomination."""
    nominating = result.nominating_info
    if nominating is None:
        what = "kept"
    else:
        assert nominating.mode is NominatingMode.OVERRIDE
        what = nominating.node_name or "cleared"
    return str(result.status.code), result.status.message, what


async def test_6_2_8_success_nominates_the_node():
    assert ("Success", "", "n0") == outcome(await stage([node()], [placed("v", "4")]).preempt(preemptor()))


async def test_6_2_1_a_pod_that_is_gone_is_an_error():
    s = stage([node()], [placed("v", "4")], known=lambda _: None)

    assert ("Error", 'pod "high" not found', "kept") == outcome(await s.preempt(preemptor()))


async def test_6_2_1_the_newest_version_of_the_pod_counts():
    never = preemptor(preemption_policy="Never")
    s = stage([node()], [placed("v", "4")], known=lambda _: never)

    assert "not eligible due to preemptionPolicy=Never." == (await s.preempt(preemptor())).status.message


async def test_6_2_2_who_is_not_eligible_keeps_its_nomination():
    pod = preemptor(nominated_node_name="n0")
    victim = placed("v", "4", terminating=True, conditions=(PREEMPTED,))

    reason = "not eligible due to a terminating pod on the nominated node."
    assert ("Unschedulable", reason, "kept") == outcome(await stage([node()], [victim]).preempt(pod))


async def test_6_2_3_only_nodes_turned_down_as_unschedulable_are_looked_at():
    """Vector 11.8.1: one node tainted, one full of equals, one not looked at."""
    s = stage(
        [node("n0", taints=[TAINT]), node("n1"), node("n2", labels={"zone": "b"})],
        [placed("equal", "4", 10, on="n1"), placed("v", "4", on="n0"), placed("w", "4", on="n2")],
    )
    attempt, diagnosis = await s.rejected(preemptor())
    diagnosis.single = {row: status for row, status in diagnosis.statuses().items() if row != 2}
    diagnosis.rejections = []
    request = PreemptionRequest("DefaultPreemption", attempt.pod, attempt.state, diagnosis)

    message = (
        "0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )
    assert ("Unschedulable", message, "cleared") == outcome(await s.preemption.preempt(request))


async def test_6_2_3_an_error_without_candidates_is_an_error():
    s = stage([node("n1")], [placed("v", "4", on="n1")], plugins=BREAKS_ON_N1)

    expected = ("Error", 'running "NodePorts" filter plugin: n1 is odd', "kept")
    assert expected == outcome(await s.preempt(preemptor()))


async def test_6_2_3_several_errors_are_reported_together():
    s = stage(
        [node("n1"), node("n2")],
        [placed("v", "4", on="n1"), placed("w", "4", on="n2")],
        plugins=with_plugin(AlwaysOdd, "NodePorts"),
    )
    status = (await s.preempt(preemptor())).status

    errors = [f'running "NodePorts" filter plugin: {name} is odd' for name in ("n1", "n2")]
    assert status.message in (f"[{errors[0]}, {errors[1]}]", f"[{errors[1]}, {errors[0]}]")


async def test_6_2_3_an_error_beside_a_candidate_does_not_matter():
    s = stage([node("n0"), node("n1")], [placed("v", "4"), placed("w", "4", on="n1")], plugins=BREAKS_ON_N1)

    assert ("Success", "", "n0") == outcome(await s.preempt(preemptor()))


async def test_6_2_3_without_nodes_there_is_nothing_to_preempt_on():
    s = stage([], [])
    request = PreemptionRequest("DefaultPreemption", preemptor(), None, Diagnosis())

    assert ("Error", "no nodes available", "kept") == outcome(await s.preemption.preempt(request))


async def test_6_2_4_without_candidates_the_nomination_is_taken_back_and_every_node_says_why():
    s = stage(
        [node("n0", taints=[TAINT]), node("n1"), node("n2")],
        [placed("equal", "4", 10, on="n1"), placed("most", "3", 10, on="n2"), placed("v", on="n2")],
    )
    result = await s.preempt(preemptor(nominated_node_name="n0"))

    message = (
        "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert ("Unschedulable", message, "cleared") == outcome(result)
    assert CLEAR_NOMINATION == result.nominating_info


async def test_6_2_4_no_potential_node_at_all():
    s = stage([node(taints=[TAINT])], [placed("v", "4")])

    message = "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    assert ("Unschedulable", message, "cleared") == outcome(await s.preempt(preemptor()))


class Extends:
    """An extender with a say in preemption: answers a map of victims' names by node, or raises."""

    name, preempts = "http://extender", True

    def __init__(self, answer, *, ignorable=False):
        self.answer, self.ignorable, self.asked = answer, ignorable, []

    def interested(self, pod):
        return pod.name == "high"

    async def preempt(self, attempt, victims):
        self.asked.append({name: [pod.name for pod in one.pods] for name, one in victims.items()})
        if isinstance(self.answer, Exception):
            raise self.answer
        known = {info.pod.name: info.pod for pods in attempt.nodes.pods for info in pods.values()}
        return {name: Victims(tuple(known[pod] for pod in pods)) for name, pods in self.answer.items()}


async def extended(*extenders):
    """What comes of preemption on n0 and n1, of which n1 is the better one."""
    s = stage([node("n0"), node("n1")], [placed("v0", "4", 5), placed("v1", "4", 1, on="n1")])
    request = await s.request(preemptor())
    s.framework.extenders = extenders
    return outcome(await s.preemption.preempt(request))


async def test_6_7_what_one_extender_leaves_the_next_is_asked_about():
    first, second = Extends({"n0": ["v0"]}), Extends({"n0": ["v0"]})

    assert ("Success", "", "n0") == await extended(first, second)
    assert ([{"n0": ["v0"], "n1": ["v1"]}], [{"n0": ["v0"]}]) == (first.asked, second.asked)


async def test_6_7_an_empty_answer_ends_the_asking_and_the_preemption():
    never = Extends({})

    expected = ("Unschedulable", "no candidate node for preemption", "kept")
    assert expected == await extended(Extends({}), never)
    assert [] == never.asked


@pytest.mark.parametrize(
    ("answer", "ignorable", "expected"),
    [
        (OSError("refused"), True, ("Success", "", "n1")),
        (OSError("refused"), False, ("Error", "refused", "kept")),
        ({"n0": ["v0"], "n1": []}, True, ("Success", "", "n0")),
        ({"n1": []}, False, ("Error", 'expected at least one victim pod on node "n1"', "kept")),
    ],
    ids=["failing, ignorable", "failing", "without victims, ignorable", "without victims"],
)
async def test_6_7_an_extender_that_is_ignorable_does_no_harm(answer, ignorable, expected):
    assert expected == await extended(Extends(answer, ignorable=ignorable))


async def test_6_2_6_the_best_candidate_is_nominated():
    """Vector 11.8.4: no violation goes before priorities."""
    guarded = placed("guarded", "4", -5, labels={"app": "db"})
    s = stage(
        [node("n0"), node("n1")],
        [guarded, placed("free", "4", 9, on="n1")],
        budgets=[budget(selector={"app": "db"})],
    )

    assert "n1" == outcome(await s.preempt(preemptor()))[2]


@pytest.mark.parametrize("wanted", [1, 3, 8])
async def test_6_4_the_search_ends_with_enough_candidates(wanted):
    nodes = [node(f"n{i}") for i in range(8)]
    s = stage(nodes, [placed(f"v{i}", "4", on=f"n{i}") for i in range(8)])
    limits = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": wanted}
    found = (await s.preemption.candidates(await s.request(preemptor(), **limits))).found

    assert wanted == len(found)


async def test_6_4_the_search_goes_on_until_a_candidate_violates_no_budget():
    nodes = [node(f"n{i}") for i in range(8)]
    guarded = [placed(f"v{i}", "4", on=f"n{i}", labels={"app": "db"} if i else {}) for i in range(8)]
    limits = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 1}
    s = stage(nodes, guarded, budgets=[budget(selector={"app": "db"})])
    for _ in range(10):
        found = (await s.preemption.candidates(await s.request(preemptor(), **limits))).found
        assert "n0" == found[0].node_name
        assert all(one.pdb_violations == 1 for one in found[1:])


async def test_6_4_the_search_starts_anywhere():
    nodes = [node(f"n{i}") for i in range(8)]
    s = stage(nodes, [placed(f"v{i}", "4", on=f"n{i}") for i in range(8)])
    limits = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 1}
    request = await s.request(preemptor(), **limits)
    first = {(await s.preemption.candidates(request)).found[0].node_name for _ in range(100)}

    assert {one.name for one in nodes} == first


async def test_6_4_pods_that_wait_to_be_near_others_are_tried_one_node_at_a_time():
    """A node where affinity cannot be met says so, also when its resources would do."""
    term = PodAffinityTerm(LabelSelector({"app": "db"}), topology_key="zone")
    near = Affinity(pod_affinity=PodAffinity((term,)))
    s = stage(
        [node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"})],
        [
            placed("v", "3", on="n0"),
            placed("db", "1", 10, on="n0", labels={"app": "db"}),
            placed("w", "4", on="n1"),
        ],
    )
    pod = preemptor("3", affinity=near)
    found = await s.outcomes(pod)

    assert {"n0": ["v"]} == await s.victims(pod)
    assert (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match pod affinity rules",)) == (
        found["n1"].code,
        found["n1"].reasons,
    )
