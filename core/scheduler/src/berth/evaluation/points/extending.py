"""Calls HTTP extenders: filter after the plugins, prioritize on top of scores, preempt on candidates.

Their bind verb is called by `framework/extender_binding.py`.

Source: pkg/scheduler/schedule_one.go findNodesThatPassExtenders, prioritizeNodes (Kubernetes v1.36).
"""

import logging
from collections.abc import Awaitable, Mapping, Sequence

import numpy as np

from berth.evaluation.points.plugin_calls import drop_unread
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.extender import EXTENDER, Extender, ExtenderVerdicts, Victims
from berth.framework.extender_binding import interested
from berth.framework.interface import MAX_NODE_SCORE
from berth.framework.node_scores import NodeScores, PluginScores
from berth.framework.status import Code, PluginError, Status
from berth.snapshot.columns.growing import Mask

log = logging.getLogger(__name__)

MAX_EXTENDER_PRIORITY = 10

Answer = Awaitable[Mapping[str, int]]


async def run_extender_filters(
    extenders: Sequence[Extender], attempt: Attempt, feasible: Mask, diagnosis: Diagnosis
) -> Mask:
    """The feasible nodes that all extenders let pass; their reasons against others go into the diagnosis.

    Shapes: feasible and result bool (n,). Raises: PluginError where an extender fails that is not ignorable.
    """
    asked = interested(extenders, attempt.pod, lambda extender: extender.filters)
    left = feasible
    for extender in asked:
        if not left.any():
            break
        verdicts = await _filter(extender, attempt, left)
        if verdicts is not None:
            _explain(verdicts, attempt, diagnosis)
            left = np.zeros(feasible.size, dtype=bool)
            left[[attempt.nodes.row_of[name] for name in verdicts.passed]] = True
    if np.count_nonzero(left) != np.count_nonzero(feasible):
        diagnosis.unschedulable_plugins.add(EXTENDER)
    return left


async def _filter(extender: Extender, attempt: Attempt, left: Mask) -> ExtenderVerdicts | None:
    nodes = attempt.nodes.nodes
    try:
        return await extender.filter(attempt, [nodes[row] for row in np.flatnonzero(left).tolist()])
    except Exception as error:
        if not extender.ignorable:
            raise PluginError(str(error)) from error
        _pass_over(extender, attempt, "filter", error)
        return None


def _explain(verdicts: ExtenderVerdicts, attempt: Attempt, diagnosis: Diagnosis) -> None:
    row_of = attempt.nodes.row_of
    for texts, code in (
        (verdicts.failed, Code.UNSCHEDULABLE),
        (verdicts.unresolvable, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ):
        for name, text in texts.items():
            if name in row_of:
                diagnosis.single[row_of[name]] = Status(code, (text,))


async def add_extender_scores(extenders: Sequence[Extender], attempt: Attempt, scores: NodeScores) -> None:
    """Add the weighted scores of the extenders interested in the pod; one that fails adds nothing."""
    asked = interested(extenders, attempt.pod, lambda extender: extender.prioritizes)
    if not asked:
        return
    nodes = [attempt.nodes.nodes[row] for row in scores.rows.tolist()]
    answers = [(extender, extender.prioritize(attempt, nodes)) for extender in asked]
    try:
        while answers:
            extender, answer = answers.pop(0)
            part = await _priorities(extender, answer, [node.metadata.name for node in nodes], attempt)
            if part is not None:
                scores.totals += part.final * part.weight
                scores.parts.append(part)
    finally:
        drop_unread(answer for _, answer in answers)


async def _priorities(
    extender: Extender, answer: Answer, names: Sequence[str], attempt: Attempt
) -> PluginScores | None:
    try:
        by_name = await answer
    except Exception as error:  # noqa: BLE001 - without its scores the others' decide
        _pass_over(extender, attempt, "prioritize", error)
        return None
    raw = np.array([by_name.get(name, 0) for name in names], dtype=np.int64)
    final = raw * (MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY)
    return PluginScores(extender.name, extender.weight, raw, final)


async def run_extender_preemption(
    extenders: Sequence[Extender], attempt: Attempt, victims: Mapping[str, Victims]
) -> dict[str, Victims]:
    """The candidate nodes that all extenders accept, with the victims that they name.

    A node that came without victims may go on to the next extender as it is; without victims in the end it is
    dropped. Raises: PluginError where an extender fails that is not ignorable, or leaves no victim on a node.
    """
    left = dict(victims)
    for extender in interested(extenders, attempt.pod, lambda extender: extender.preempts):
        if not left:
            break
        try:
            answer = await extender.preempt(attempt, left)
        except Exception as error:
            if not extender.ignorable:
                raise PluginError(str(error)) from error
            _pass_over(extender, attempt, "preempt", error)
            continue
        left = _with_victims(extender, answer, left)
    return {name: victims for name, victims in left.items() if victims.pods}


def _pass_over(extender: Extender, attempt: Attempt, verb: str, error: Exception) -> None:
    """Report an ignored failure, in the log and in the attempt's record, which explain shows."""
    log.warning("extender passed over extender=%s verb=%s err=%s", extender.name, verb, error)
    attempt.record.ignore(f"{verb}: extender {extender.name}: {error}")


def _with_victims(
    extender: Extender, answer: Mapping[str, Victims], asked: Mapping[str, Victims]
) -> dict[str, Victims]:
    without = {name for name, victims in asked.items() if not victims.pods}
    spared = [name for name, victims in answer.items() if not victims.pods and name not in without]
    if spared and not extender.ignorable:
        raise PluginError(f'expected at least one victim pod on node "{spared[0]}"')
    return {name: victims for name, victims in answer.items() if name not in spared}
