"""Runs PostFilter plugins for a pod that fits nowhere.

Source: pkg/scheduler/framework/runtime/framework.go RunPostFilterPlugins (Kubernetes v1.36).
"""

from collections.abc import Sequence
from inspect import isawaitable

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import (
    CLEAR_NOMINATION,
    NominatingInfo,
    NominatingMode,
    PostFilterPlugin,
    PostFilterResult,
)
from berth.framework.status import Code, Status, failed, unschedulable


async def run_post_filters(
    plugins: Sequence[PostFilterPlugin], attempt: Attempt, diagnosis: Diagnosis
) -> PostFilterResult:
    """Run PostFilter: the first plugin that succeeds, or returns UnschedulableAndUnresolvable, ends it."""
    if not plugins:
        return PostFilterResult(unschedulable(), CLEAR_NOMINATION)
    if attempt.state.skip_post_filter:
        return PostFilterResult(unschedulable("All PostFilter plugins are skipped"))
    point = attempt.record.begin("PostFilter")
    result = await _run(plugins, attempt, diagnosis, point)
    attempt.record.end(point, result.status)
    return result


async def _run(
    plugins: Sequence[PostFilterPlugin], attempt: Attempt, diagnosis: Diagnosis, point: int
) -> PostFilterResult:
    reasons: list[str] = []
    nomination: NominatingInfo | None = None
    first = ""
    for plugin in plugins:
        mark = attempt.record.begin(plugin.name, point)
        result = await _one(plugin, attempt, diagnosis)
        attempt.record.end(mark, result.status)
        if attempt.meter.worked(plugin.name):
            await attempt.meter.breathe()
        status = result.status.from_plugin(plugin.name)
        if status.ok or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterResult(status, result.nominating_info)
        if not status.rejected:
            return PostFilterResult(status)
        first = first or plugin.name
        reasons.extend(status.reasons)
        if result.nominating_info and result.nominating_info.mode is not NominatingMode.NOOP:
            nomination = result.nominating_info
    return PostFilterResult(Status(Code.UNSCHEDULABLE, tuple(reasons), first), nomination)


async def _one(plugin: PostFilterPlugin, attempt: Attempt, diagnosis: Diagnosis) -> PostFilterResult:
    try:
        answer = plugin.post_filter(attempt.state, attempt.pod, diagnosis)
        return await answer if isawaitable(answer) else answer
    except OverBudgetError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises ends this phase, not the scheduler
        return PostFilterResult(failed(error))
