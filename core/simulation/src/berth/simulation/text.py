"""An outcome as text for a person."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from berth.demo.checker.summary import reasons_of
from berth.framework.pluralize import pluralize
from berth.simulation.comparing.compare import PlacementDifference, VariantComparison
from berth.simulation.placing.fill import Fill
from berth.simulation.plugins.plugin_calls import PluginUse
from berth.simulation.queue_shares.queue_text import queue_lines, queues_side_by_side
from berth.simulation.recordings.replay import Replay, ReplayDifference
from berth.simulation.running.outcome import (
    WITHOUT,
    PendingPod,
    ResourceUtilization,
    SimulatedPreemption,
    SimulationOutcome,
    SimulationSummary,
    summed_up,
)
from berth.simulation.running.scores import NodeScore
from berth.simulation.table_text import Cells, amount, side_by_side

WITH: Final = "with --what-if"
MAX_REASONS: Final = 12
MAX_PODS: Final = 10
USE_THE_CLOCK: Final = (
    "its author can have it read the time from the SDK's clock, and say so (docs/protocol.md, Time)"
)
"""What gives a simulation a verdict on a plugin with timers."""


def outcome_lines(outcome: SimulationOutcome) -> Iterator[str]:
    """The outcome, a line an item; lists are cut, and say so."""
    nodes, pods = pluralize(outcome.nodes, "node"), pluralize(outcome.pods, "pod")
    yield f"{nodes}, {pods} to schedule, seed {outcome.seed}, as kube-scheduler {outcome.release}"
    yield (
        f"placed {len(outcome.placements)}, pending {len(outcome.pending)}, "
        f"preempted {len(outcome.preemptions)}, {outcome.seconds:g} s of virtual time"
    )
    yield from left_out_lines(outcome.left_out)
    if outcome.before is not None:
        yield from _what_if_lines(outcome, outcome.before)
    if outcome.utilization:
        yield ""
        yield from _uses(outcome.utilization, outcome.nodes_in_use)
    if outcome.waits.longest:
        waits = outcome.waits
        yield ""
        percentiles = f"p50 {waits.p50:g}, p90 {waits.p90:g}, p99 {waits.p99:g}"
        yield f"waits in s: {percentiles}, longest {waits.longest:g}"
    yield from queue_lines(outcome.queues)
    yield from _pending(outcome.pending, outcome.plugins)
    yield from _preemptions(outcome.preemptions)
    yield from _plugins(outcome.plugins)


def _drain(messages: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Messages of kubectl about the pods of drained nodes, a few pods for each message."""
    for message, pods in messages.items():
        more = f" and {len(pods) - MAX_PODS} more" if len(pods) > MAX_PODS else ""
        yield f"kubectl drain: {message.rstrip('.')}: {', '.join(pods[:MAX_PODS])}{more}"


def left_out_lines(left_out: Mapping[str, int]) -> Iterator[str]:
    """The parts of the input that were left out."""
    yield from (f"left out: {count} {kind}" for kind, count in left_out.items())


def _what_if_lines(outcome: SimulationOutcome, before: SimulationSummary) -> Iterator[str]:
    """The result of --what-if, compared with the unchanged cluster."""
    pending = {each.pod for each in outcome.pending}.intersection(outcome.evicted)
    if outcome.evicted:
        yield (
            f"{pluralize(len(outcome.evicted), 'pod')} evicted by --what-if: "
            f"{len(outcome.evicted) - len(pending)} placed on another node, {len(pending)} pending"
        )
    yield from _drain(outcome.drain)
    yield ""
    yield from summary_lines([before, summed_up(WITH, outcome)])


def fill_lines(fill: Fill) -> Iterator[str]:
    """How many fit, on which nodes, and why the next one does not."""
    yield f"{fill.count} more fit"
    yield from left_out_lines(fill.left_out)
    if fill.evicted:
        placed = fill.evicted - len(fill.evicted_pending)
        evicted = pluralize(fill.evicted, "pod")
        yield f"before them {evicted} evicted by --what-if, {placed} placed on another node"
    yield from _drain(fill.drain)
    if fill.before is not None:
        yield ""
        yield from side_by_side([(WITHOUT, _fill_columns(fill.before)), (WITH, _fill_columns(fill))])
    if len(fill.pods) > 1:
        yield from (f"{count:>8}  {pod}" for pod, count in fill.pods.items())
    for label, counts in fill.by_label.items():
        yield ""
        yield f"by {label}:"
        yield from _cut(
            (f"{n:>8}  {value}" for value, n in _most(Counter(counts))), len(counts), MAX_PODS, "values"
        )
    if fill.nodes:
        yield ""
        yield f"by node ({pluralize(len(fill.nodes), 'node')}):"
        yield from _cut(
            (f"{n:>8}  {node}" for node, n in _most(Counter(fill.nodes))), len(fill.nodes), MAX_PODS, "nodes"
        )
    yield ""
    yield from _uses(fill.utilization, fill.nodes_in_use)
    yield ""
    if fill.stopped_by is None:
        yield "as many as were asked for; add --most to ask for more"
    else:
        yield f"the next one ({fill.stopped_by.pod}) does not fit: {fill.stopped_by.message}"
    yield from _pending(fill.evicted_pending, fill.plugins)
    yield from _plugins(fill.plugins)


def comparison_lines(comparison: VariantComparison) -> Iterator[str]:
    """What differs between the variants, and where they first differ."""
    yield from left_out_lines(comparison.left_out)
    yield from summary_lines(comparison.variants)
    first = comparison.variants[0].name
    for name, count in comparison.differing.items():
        yield ""
        if not count:
            yield f"{name} puts every pod where {first} does"
            continue
        yield f"{name} puts {pluralize(count, 'pod')} on other nodes than {first} does"
        yield from _nodes(f"  nodes that {first} uses and {name} does not", comparison.emptied[name])
        yield from _nodes(f"  nodes that {name} uses and {first} does not", comparison.newly_used[name])
        for each in comparison.differences:
            if each.other.variant == name:
                yield from _difference(each)


def _nodes(head: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - MAX_PODS} more" if len(names) > MAX_PODS else ""
        yield f"{head}, {len(names)}: {', '.join(names[:MAX_PODS])}{more}"


def summary_lines(summaries: Sequence[SimulationSummary]) -> Iterator[str]:
    """A row for each variant, with what differs between them; then what is the same in all."""
    yield from side_by_side([(each.name, _columns(each)) for each in summaries])
    yield from queues_side_by_side([(each.name, each.queues) for each in summaries])
    for each in summaries:
        yield from (f"{each.name}: {_plugin(use)}" for use in each.plugins)


def _fill_columns(fill: Fill) -> Cells:
    shares = {f"{name} %": f"{use.percent:.2f}" for name, use in fill.utilization.items()}
    return {"more fit": str(fill.count), "nodes in use": str(len(fill.nodes_in_use)), **shares}


def _columns(summary: SimulationSummary) -> Cells:
    """The cells of a row by the heads of their columns."""
    cells = {
        "placed": str(summary.placed),
        "pending": str(summary.pending),
        "preempted": str(summary.preempted),
        "nodes in use": str(summary.nodes_in_use),
        "wait p50": f"{summary.waits.p50:.1f}",
        "wait p99": f"{summary.waits.p99:.1f}",
    }
    for name, use in summary.utilization.items():
        cells[f"{name} %"] = f"{use.percent:.2f}"
        if name in summary.fragmentation:
            cells[f"{name} lost %"] = f"{summary.fragmentation[name]:.1f}"
    return cells


def _difference(difference: PlacementDifference) -> Iterator[str]:
    first, other = difference.first, difference.other
    yield f"  {difference.pod}: {first.node or 'pending'} -> {other.node or 'pending'}"
    for choice in (first, other):
        yield from _scored(choice.variant, choice.scores)


def _scored(variant: str, scores: Mapping[str, NodeScore]) -> Iterator[str]:
    for node, score in scores.items():
        parts = ", ".join(f"{plugin} {part}" for plugin, part in score.parts.items() if part)
        said = score.message if score.total is None else f"{score.total} ({parts})"
        yield f"      {variant}: {node} {said}"


def replay_lines(found: Replay) -> Iterator[str]:
    """The result of a replay, and the first difference with its scores."""
    yield f"recorded by berth {found.version}, {found.began}"
    yield from (f"warning: {warning}" for warning in found.warnings)
    counts = f"{found.events} events, {found.attempts} attempts, {found.writes} writes"
    yield f"{'different after' if found.broken else 'the same:'} {counts}"
    if found.compared:
        yield f"of {found.compared} decisions, {found.different - found.broken} would be different"
    yield from difference_lines(found.differences, found.different)


def difference_lines(differences: Sequence[ReplayDifference], count: int) -> Iterator[str]:
    """The differences of a replay, each with its scores, and how many there are beside them."""
    for different in differences:
        yield f"  {different.at} {different.pod}: {different.recorded} -> {different.now}"
        yield from _scored("recorded", different.recorded_scores)
        yield from _scored("now", different.scores)
    if (left := count - len(differences)) > 0:
        yield f"  ... and {left} more: --show has them"


def _uses(utilization: Mapping[str, ResourceUtilization], nodes_in_use: Sequence[str]) -> Iterator[str]:
    """How many nodes are in use, and a row for each resource."""
    yield f"{pluralize(len(nodes_in_use), 'node')} in use"
    yield f"{'resource':<36}{'allocatable':>14}{'requested':>14}{'%':>8}"
    for name, use in utilization.items():
        amounts = f"{amount(name, use.allocatable):>14}{amount(name, use.requested):>14}"
        yield f"{name:<36}{amounts}{use.percent:>8.1f}"


def _cut_off(pending: list[PendingPod], plugins: Sequence[PluginUse]) -> Iterator[str]:
    """Why there is no verdict on pods that a plugin may let go on later, and what to do about it."""
    counts = Counter(pod.no_verdict for pod in pending if pod.no_verdict)
    clocked = {use.name for use in plugins if use.clock}
    for plugin, count in sorted(counts.items()):
        why = (
            "for 10,000 of its timers or a week nothing came of it, which is as long as it is waited for"
            if plugin in clocked
            else f"its timers run in real time, and virtual time ended before them: {USE_THE_CLOCK}"
        )
        yield ""
        yield (
            f"no verdict on {pluralize(count, 'pending pod')}: plugin {plugin} has them wait and may let "
            f"them go on by itself; {why}"
        )


def _pending(pending: list[PendingPod], plugins: Sequence[PluginUse]) -> Iterator[str]:
    if not pending:
        return
    yield ""
    counts: Counter[str] = Counter()
    for pod in pending:
        counts.update(reasons_of(pod.message).keys() or {_short(pod.message) or pod.reason})
    yield "why pods are pending (pods that were turned down for it):"
    yield from _cut(
        (f"{count:>8}  {text}" for text, count in _most(counts)), len(counts), MAX_REASONS, "reasons"
    )
    yield ""
    lines = (f"  {pod.pod}  {pod.reason}: {pod.message}" for pod in pending)
    yield from _cut(lines, len(pending), MAX_PODS, "pods")
    yield from _cut_off(pending, plugins)


def _preemptions(preemptions: list[SimulatedPreemption]) -> Iterator[str]:
    if not preemptions:
        return
    yield ""
    yield "preempted (pod, node, for which pod):"
    lines = (f"  {each.pod}  {each.node}  {each.by}" for each in preemptions)
    yield from _cut(lines, len(preemptions), MAX_PODS, "pods")


def _plugins(uses: Sequence[PluginUse]) -> Iterator[str]:
    if uses:
        yield ""
        yield "sidecars:"
        yield from (f"  {_plugin(use)}" for use in uses)


def _plugin(use: PluginUse) -> str:
    named = use.name if use.name == use.source else f"{use.name} {use.version} ({use.source})"
    how = ", ".join(f"{count} {outcome}" for outcome, count in use.failed.items())
    failed = f"{sum(use.failed.values())} failed" + (
        f" ({how}; {use.passed_over} passed over)" if how else ""
    )
    lacking = f"; the input has no {', '.join(use.not_in_input)}" if use.not_in_input else ""
    return f"{named}: {use.calls} calls, {failed}{lacking}"


def _short(message: str) -> str:
    return re.sub(r"\s+", " ", message)[:100]


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _cut(lines: Iterable[str], count: int, most: int, noun: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == most:
            yield f"  and {count - most} more {noun}; -o json has them all"
            return
        yield line
