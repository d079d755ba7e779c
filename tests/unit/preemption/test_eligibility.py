"""Whether a pod may preempt at all."""

import msgspec
import pytest

from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.status import unresolvable, unschedulable
from berth.preemption.eligibility import NEVER, VICTIMS_LEAVING, why_not_eligible
from berth.testing.clusters import table
from tests.unit.preemption.kit import PREEMPTED, node, placed, preemptor

NOMINATED = preemptor(nominated_node_name="n0")
LEAVING = placed("leaving", terminating=True, conditions=(PREEMPTED,))
FULL = unschedulable("Insufficient cpu")
NO_HOPE = unresolvable("node(s) had untolerated taint(s)")


def reason(pod, placed_pods=(), status=FULL):
    nodes = table([node()], placed_pods)
    return why_not_eligible(pod, nodes, Diagnosis(nodes.names, single={0: status}))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (preemptor(preemption_policy="Never"), NEVER),
        (preemptor(preemption_policy="PreemptLowerPriority"), ""),
        (preemptor(), ""),
    ],
    ids=["never", "lower", "unset"],
)
def test_6_3_1_policy(pod, expected):
    assert expected == reason(pod)


def test_6_3_2_a_nominated_node_that_no_eviction_helps_is_left_behind():
    assert "" == reason(NOMINATED, [LEAVING], NO_HOPE)


def test_6_3_2_a_nominated_node_that_was_not_looked_at_is_left_behind():
    nodes = table([node()], [LEAVING])

    assert "" == why_not_eligible(NOMINATED, nodes, Diagnosis(nodes.names))


def test_6_3_2_a_nominated_node_that_is_gone_is_left_behind():
    assert "" == reason(preemptor(nominated_node_name="gone"), [LEAVING])


def with_conditions(*conditions):
    return placed("leaving", terminating=True, conditions=conditions)


@pytest.mark.parametrize(
    ("victim", "expected"),
    [
        pytest.param(LEAVING, VICTIMS_LEAVING, id="leaving for a preemption"),
        pytest.param(placed("v", terminating=True), "", id="leaving for another reason"),
        pytest.param(placed("v", conditions=(PREEMPTED,)), "", id="not leaving yet"),
        pytest.param(
            placed("v", priority=10, terminating=True, conditions=(PREEMPTED,)), "", id="of no lower priority"
        ),
        pytest.param(
            with_conditions(msgspec.structs.replace(PREEMPTED, status="False")), "", id="condition not true"
        ),
        pytest.param(
            with_conditions(msgspec.structs.replace(PREEMPTED, reason="EvictionByEvictionAPI"), PREEMPTED),
            "",
            id="only the first condition counts",
        ),
    ],
)
def test_6_3_3_victims_that_leave_the_nominated_node_are_waited_for(victim, expected):
    assert expected == reason(NOMINATED, [victim])


def test_6_3_4_without_a_nomination_no_victim_is_waited_for():
    assert "" == reason(preemptor(), [LEAVING])
