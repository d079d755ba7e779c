"""Groups whose profile has a planner: tried by its plan where that is better than one pod after the other.

    rehearsal one by one -> plan -> rehearsal of the plan -> the better of both, carried out

Rehearsals are simulations in which every step is scored: the sums of these scores are what is compared.
Source: docs/decisions/0033-joint-placement.md.
"""

import logging

import msgspec

from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.group_plans import GroupPlan, PodGroupPlanPlugin, TriedPlan
from berth.pod_groups.group_algorithm import GroupQuestion, SchedulingContext, try_group
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.plan_memory import Planned, Planning, place_of
from berth.pod_groups.planning_stage import PlanningStage, in_turn

log = logging.getLogger(__name__)


async def try_as_planned(ground: SchedulingContext, question: GroupQuestion) -> GroupResult:
    """The group's result, by a plan where that is better; the snapshot is in the end as it was."""
    planner = _planner_for(question)
    if planner is None:
        return await try_group(ground, question)
    plan = await _known_or_best(planner, ground, question)
    if plan is not None:
        result = await try_group(
            ground, msgspec.structs.replace(question, members=in_turn(question, plan), plan=plan)
        )
        if _went_as_planned(result, plan):
            return result
        ground.plans.forget(place_of(question.key, question.within))
        log.warning("plan of a pod group not carried out, placed one by one group=%s", question.key)
    return await try_group(ground, question)


def _planner_for(question: GroupQuestion) -> PodGroupPlanPlugin | None:
    plugins = question.framework.plugins.pre_filter
    planner = next((p for p in plugins if isinstance(p, PodGroupPlanPlugin)), None)
    pods = len(question.members)
    if planner is None or question.one_by_one or pods < 2:  # noqa: PLR2004 - one pod has nothing to be planned with
        return None
    # Victims are tried dozens of times, and a plan takes long: room is made for pods one by one.
    if question.simulated:
        return None
    if pods > planner.max_pods:
        log.warning(
            "pod group too large to be planned, placed one by one group=%s pods=%s limit=%s plugin=%s",
            question.key,
            pods,
            planner.max_pods,
            planner.name,
        )
        return None
    # A nominated pod goes to its node, where others leave for it.
    return None if any(member.pod.nominated_node_name for member in question.members) else planner


def plans(question: GroupQuestion) -> bool:
    """Whether the profile has a planner that is asked about the question's groups."""
    asked = not (question.simulated or question.one_by_one)
    plugins = question.framework.plugins.pre_filter
    return asked and any(isinstance(plugin, PodGroupPlanPlugin) for plugin in plugins)


async def _known_or_best(
    planner: PodGroupPlanPlugin, ground: SchedulingContext, question: GroupQuestion
) -> GroupPlan | None:
    """The plan to carry out, as it is known as long as nothing changes; None where there is none."""
    place = place_of(question.key, question.within)
    planning = _planning(ground, question)
    planned = ground.plans.recall(place, planning)
    if planned is None:
        planned = await _best_plan(planner, ground, question)
        # Others had their turns meanwhile: what they changed was not always seen.
        if planned.lasts and planning == _planning(ground, question):
            ground.plans.remember(place, planning, planned)
    return planned.plan


def _planning(ground: SchedulingContext, question: GroupQuestion) -> Planning:
    group = question.states.known(question.key)
    return Planning.of(question.framework, question.members, group, ground.snapshot)


async def _best_plan(
    planner: PodGroupPlanPlugin, ground: SchedulingContext, question: GroupQuestion
) -> Planned:
    """The plan to carry out, none where one by one is as good and need not place all pods."""
    stage = PlanningStage.of(ground, msgspec.structs.replace(question, simulated=True, thorough=True))
    start = await stage.one_by_one()
    if start is None:
        return Planned(None, lasts=False)
    found = await _found(planner, start, stage) if stage.may_gain else None
    # A gang that does not go by the plan either fails as it always did, or makes room for itself.
    if found is not None and found.worth[0] and found.worth > start.worth:
        return Planned(found.plan, lasts=not stage.broken)
    # Ties are drawn again when the pods are tried again: what was compared is what is carried out.
    complete = start.worth[0] and len(start.plan.node_of) == len(question.members)
    return Planned(start.plan if complete else None, lasts=not stage.broken)


async def _found(planner: PodGroupPlanPlugin, start: TriedPlan, stage: PlanningStage) -> TriedPlan | None:
    question = stage.question
    try:
        return await planner.plan([member.pod for member in question.members], start, stage)
    except OverBudgetError:
        raise
    except Exception:
        log.exception("planner failed, placed one by one group=%s plugin=%s", question.key, planner.name)
        stage.broken = True
        return None
    finally:
        await stage.take_back()


def _went_as_planned(result: GroupResult, plan: GroupPlan) -> bool:
    return all(
        uid in result.members and result.members[uid].node_name == name for uid, name in plan.node_of.items()
    )
