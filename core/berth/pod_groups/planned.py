"""Groups whose profile has a planner: tried by its plan where that is better than one pod after the other.

    rehearsal one by one -> plan -> rehearsal of the plan -> the better of both, carried out

Rehearsals are simulations in which every step is scored: the sums of these scores are what is compared.
Source: docs/decisions/0033-joint-placement.md.
"""

import logging
from collections import Counter
from dataclasses import replace

from berth.framework.cycle_budget import OverBudgetError
from berth.framework.group_plans import GroupPlan, PodGroupPlanPlugin
from berth.pod_groups.group_algorithm import Ground, GroupQuestion, try_group, try_until_placed
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.members import Member
from berth.pod_groups.planning_ground import EngineGround
from berth.pod_groups.scored_pods import ScoredPods

log = logging.getLogger(__name__)

SHARE = 4
"""Planning begins no further step once it took one part in so many of the cycle's budget."""

Worth = tuple[bool, tuple[int, ...], int]


async def try_as_planned(ground: Ground, question: GroupQuestion) -> GroupResult:
    """The group's result, by a plan where that is better; the snapshot is in the end as it was."""
    planner = _planner_for(question)
    if planner is None:
        return await try_group(ground, question)
    plan = await _best_plan(planner, ground, question)
    if plan is not None:
        result = await try_group(ground, replace(question, members=_in_turn(question, plan), plan=plan))
        if _went_as_planned(result, plan):
            return result
        log.warning("plan of a pod group not carried out, placed one by one group=%s", question.key)
    return await try_group(ground, question)


def _planner_for(question: GroupQuestion) -> PodGroupPlanPlugin | None:
    plugins = question.framework.plugins.pre_filter
    planner = next((p for p in plugins if isinstance(p, PodGroupPlanPlugin)), None)
    pods = len(question.members)
    if planner is None or pods < 2:  # noqa: PLR2004 - one pod has nothing to be planned with
        return None
    if pods > planner.most_pods:
        log.warning(
            "pod group too large to be planned, placed one by one group=%s pods=%d limit=%d plugin=%s",
            question.key,
            pods,
            planner.most_pods,
            planner.name,
        )
        return None
    # A nominated pod goes to its node, where others leave for it.
    return None if any(member.pod.nominated_node_name for member in question.members) else planner


async def _best_plan(
    planner: PodGroupPlanPlugin, ground: Ground, question: GroupQuestion
) -> GroupPlan | None:
    """What to carry out; None where one by one is as good, and need not place all pods."""
    rehearsal = replace(question, simulated=True)
    scoring = ScoredPods.on(ground)
    stage = replace(ground, algorithm=scoring)
    one_by_one = await try_group(stage, rehearsal)
    if one_by_one.broken or not _has_time(question):
        return None
    start = _plan_of(one_by_one)
    proposed = await _proposal(planner, start, EngineGround(stage, rehearsal, scoring, SHARE))
    if proposed is not None and _has_time(question):
        stage = replace(ground, algorithm=replace(scoring, plan=proposed))
        by_plan = await try_until_placed(stage, replace(rehearsal, members=_in_turn(question, proposed)))
        if not by_plan.broken and worth_of(by_plan) > worth_of(one_by_one):
            return _plan_of(by_plan)
    # Ties are drawn again when the pods are tried again: what was compared is what is carried out.
    return start if one_by_one.status.ok and len(start.node_of) == len(question.members) else None


async def _proposal(planner: PodGroupPlanPlugin, start: GroupPlan, ground: EngineGround) -> GroupPlan | None:
    pods = [member.pod for member in ground.question.members]
    try:
        return await planner.plan(pods, start, ground)
    except OverBudgetError:
        raise
    except Exception:
        log.exception(
            "planner broke off, placed one by one group=%s plugin=%s", ground.question.key, planner.name
        )
        return None
    finally:
        ground.take_back()


def worth_of(result: GroupResult) -> Worth:
    """What is compared: whether the group goes, how many pods of each priority, the sum of their scores.

    Priorities count from the highest.
    """
    placed = Counter({one.attempt.pod.priority: 0 for one in result.members.values()})
    placed.update(one.attempt.pod.priority for one in result.members.values() if one.node_name)
    scores = (one.attempt.record.score or 0 for one in result.members.values() if one.node_name)
    return result.status.ok, tuple(placed[p] for p in sorted(placed, reverse=True)), sum(scores)


def _plan_of(result: GroupResult) -> GroupPlan:
    return GroupPlan({uid: one.node_name for uid, one in result.members.items() if one.node_name})


def _in_turn(question: GroupQuestion, plan: GroupPlan) -> list[Member]:
    """The group's pods in the plan's order, those that it leaves out behind them."""
    turn = {uid: i for i, uid in enumerate(plan.node_of)}
    return sorted(question.members, key=lambda member: turn.get(member.pod.uid, len(turn)))


def _went_as_planned(result: GroupResult, plan: GroupPlan) -> bool:
    return all(
        uid in result.members and result.members[uid].node_name == name for uid, name in plan.node_of.items()
    )


def _has_time(question: GroupQuestion) -> bool:
    return question.meter.used_seconds < question.meter.limit_seconds / SHARE
