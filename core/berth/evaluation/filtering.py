"""Asking Filter plugins about the nodes of a table.

The first plugin, in the profile's order, that turns a node down owns the rejection. Plugins in other
processes work while this one does.

Source: spec/core.md 4.7; spec/plugins.md 1.3.
"""

from collections.abc import Container, Sequence
from inspect import isawaitable

import numpy as np

from berth.evaluation.asking import LET_OTHERS_RUN, drop_unread
from berth.evaluation.reasons import Reasons, filter_error
from berth.evaluation.sieve import Placed, Sieve, record_rejections
from berth.framework.attempt import Attempt
from berth.framework.diagnosis import Diagnosis
from berth.framework.interface import FilterPlugin, MaybeAwaitable, ReasonCodes
from berth.framework.status import SUCCESS, Status
from berth.snapshot.columns import Mask


async def run_filters(
    plugins: Sequence[FilterPlugin], attempt: Attempt, candidates: Mask, diagnosis: Diagnosis
) -> Mask:
    """Where the pod fits, among the candidates; every rejection of a candidate goes into the diagnosis.

    Shapes: candidates and result bool (n,). Raises: PluginError with upstream's text where a plugin fails.
    """
    sieve = Sieve(Reasons(), candidates)
    point = attempt.record.begin("Filter")
    try:
        await ask_filters(list(enumerate(plugins, 1)), attempt, sieve, point)
    finally:
        attempt.record.end(point)
    record_rejections(diagnosis, sieve.why, sieve.reasons)
    return sieve.alive


async def ask_filters(plugins: Sequence[Placed], attempt: Attempt, sieve: Sieve, point: int) -> None:
    """Ask one plugin after the other about the attempt's nodes, until none of their answers matters any more.

    Raises: PluginError with upstream's text where a plugin fails, or has no code for each node.
    """
    record, meter, state = attempt.record, attempt.meter, attempt.state
    active = [placed for placed in plugins if placed[1].name not in state.skip_filter]
    asked: dict[str, MaybeAwaitable[ReasonCodes]] = {}
    try:
        asked = {plugin.name: _ask(plugin, attempt) for _, plugin in active if not plugin.in_process}
        if asked:
            await LET_OTHERS_RUN
        for i, (place, plugin) in enumerate(active):
            if not sieve.leaves_any(place):
                break
            name = plugin.name
            mark = record.begin(name, point)
            if not plugin.in_process:
                asked |= _asked_here(active[i + 1 :], asked, attempt)
            answer = asked.pop(name, None) if asked else None
            codes = await _codes(plugin, _ask(plugin, attempt) if answer is None else answer)
            _check_shape(plugin, codes, len(attempt.nodes))
            record.end(mark, rejected=sieve.turn_down(place, plugin, state, codes))
            if meter.worked(name):
                await meter.breathe()
    finally:
        drop_unread(asked.values())


def _asked_here(
    later: Sequence[Placed], asked: Container[str], attempt: Attempt
) -> dict[str, MaybeAwaitable[ReasonCodes]]:
    """What the plugins of this process say whose turn is later, found while another process is at work."""
    return {p.name: _ask(p, attempt) for _, p in later if p.in_process and p.name not in asked}


def _ask(plugin: FilterPlugin, attempt: Attempt) -> MaybeAwaitable[ReasonCodes]:
    try:
        return plugin.filter(attempt.state, attempt.pod, attempt.nodes)
    except Exception as error:
        raise filter_error(plugin, error) from error


async def codes_on(plugin: FilterPlugin, attempt: Attempt) -> ReasonCodes:
    """The plugin's codes for the attempt's nodes.

    Raises: PluginError with upstream's text where the plugin fails, or has no code for each node.
    """
    codes = await _codes(plugin, _ask(plugin, attempt))
    _check_shape(plugin, codes, len(attempt.nodes))
    return codes


async def _codes(plugin: FilterPlugin, answer: MaybeAwaitable[ReasonCodes]) -> ReasonCodes:
    # Vectors come first: asking whether something can be awaited takes longer than many a filter.
    if isinstance(answer, np.ndarray) or not isawaitable(answer):
        return answer
    try:
        return await answer
    except Exception as error:
        raise filter_error(plugin, error) from error


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
