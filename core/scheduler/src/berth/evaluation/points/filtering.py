"""Runs Filter plugins on the nodes of a table.

The first plugin, in the profile's order, that rejects a node owns the rejection. Sidecars work concurrently
with this process.

Source: pkg/scheduler/framework/runtime/framework.go RunFilterPlugins (Kubernetes v1.36).
"""

from collections.abc import Sequence

import numpy as np

from berth.evaluation.points.filter_accumulator import FilterAccumulator, OrderedFilter, record_rejections
from berth.evaluation.points.plugin_calls import ConcurrentPluginCalls
from berth.evaluation.points.reasons import Reasons, filter_error
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import FilterPlugin, ReasonCodes
from berth.framework.status import SUCCESS, Status
from berth.snapshot.columns.growing import Mask


async def run_filters(
    plugins: Sequence[FilterPlugin], attempt: Attempt, candidates: Mask, diagnosis: Diagnosis
) -> Mask:
    """Where the pod fits, among the candidates; every rejection of a candidate goes into the diagnosis.

    Shapes: candidates and result bool (n,). Raises: PluginError with upstream's text where a plugin fails.
    """
    accumulator = FilterAccumulator(Reasons(), candidates)
    point = attempt.record.begin("Filter")
    try:
        await ask_filters(list(enumerate(plugins, 1)), attempt, accumulator, point)
    finally:
        attempt.record.end(point)
    record_rejections(diagnosis, accumulator.why, accumulator.reasons)
    return accumulator.feasible


async def ask_filters(
    plugins: Sequence[OrderedFilter], attempt: Attempt, accumulator: FilterAccumulator, point: int
) -> None:
    """Run the plugins in order on the attempt's nodes, until no further result can change anything.

    Raises: PluginError with upstream's text where a plugin fails, or has no code for each node.
    """
    record, meter, state = attempt.record, attempt.meter, attempt.state
    active = [placed for placed in plugins if placed[1].name not in state.skip_filter]
    async with _answers([plugin for _, plugin in active], attempt) as answers:
        for i, (place, plugin) in enumerate(active):
            if not (accumulator.left or accumulator.leaves_any(place)):
                break
            name = plugin.name
            mark = record.begin(name, point)
            codes = answers.of(i)
            if not isinstance(codes, np.ndarray):
                codes = await answers.read(i, codes)
            _check_shape(plugin, codes, len(attempt.nodes))
            record.end(mark, rejected=accumulator.turn_down(place, plugin, state, codes))
            if meter.worked(name):
                await meter.breathe()


def _answers(
    plugins: Sequence[FilterPlugin], attempt: Attempt
) -> ConcurrentPluginCalls[FilterPlugin, ReasonCodes]:
    state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
    return ConcurrentPluginCalls(plugins, lambda plugin: plugin.filter(state, pod, nodes), filter_error)


async def filter_codes(plugin: FilterPlugin, attempt: Attempt) -> ReasonCodes:
    """The plugin's codes for the attempt's nodes.

    Raises: PluginError with upstream's text where the plugin fails, or has no code for each node.
    """
    async with _answers([plugin], attempt) as answers:
        codes = await answers.read(0, answers.of(0))
    _check_shape(plugin, codes, len(attempt.nodes))
    return codes


def _check_shape(plugin: FilterPlugin, codes: ReasonCodes, n: int) -> None:
    if getattr(codes, "shape", None) != (n,):
        raise filter_error(plugin, f"no verdict for each of {n} nodes")


async def filter_one(plugins: Sequence[FilterPlugin], attempt: Attempt) -> Status:
    """The status of a table of one row: the first rejection, or success.

    Raises: PluginError where a plugin fails.
    """
    diagnosis = Diagnosis(attempt.nodes.names)
    fits = await run_filters(plugins, attempt, np.ones(1, dtype=bool), diagnosis)
    return SUCCESS if fits[0] else diagnosis.node_status(0)
