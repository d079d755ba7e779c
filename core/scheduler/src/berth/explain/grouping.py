"""Nodes that are turned down alike, the most first, with a few names: a page, however many there are."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from berth.explain.schema import NodeGroup, NodeVerdicts, Refusal, ScoredNode, ScorePart
from berth.explain.trying import PodTrial, Verdict
from berth.framework.node_scores import NodeScores
from berth.framework.status import Code

MAX_GROUPS = 100
NAMES_IN_A_GROUP = 5
MAX_NAMES = 500
"""In all groups together, where all names are wanted."""
MAX_SCORED = 10
MAX_REASONS = 20
MAX_TEXT = 1024

Kind = tuple[Refusal, ...]


def nodes_of(
    tried: PodTrial, every: Sequence[Mapping[int, Verdict]] | None, own: str, *, wide: bool = False
) -> NodeVerdicts:
    """The verdicts on all nodes; `every` has those of all plugins, where they were asked for."""
    against = {row: [verdict] for row, verdict in tried.against.items()}
    if every is not None:
        against = merged(tried, every)
    whole, against = _by_pod(against)
    groups = grouped(against, tried.nodes.names, MAX_NAMES if wide else NAMES_IN_A_GROUP)
    scored, left_out = scored_nodes(tried, own)
    return NodeVerdicts(
        total=len(tried.nodes),
        feasible=int(np.count_nonzero(tried.fits)),
        message=tried.message,
        all_reasons=every is not None,
        refusals=[refusal(v.plugin, int(v.status.code), v.status.reasons) for v in whole],
        groups=groups[:MAX_GROUPS],
        groups_left_out=max(0, len(groups) - MAX_GROUPS),
        scored=scored,
        scored_left_out=left_out,
    )


def _by_pod(against: Mapping[int, Sequence[Verdict]]) -> tuple[list[Verdict], dict[int, list[Verdict]]]:
    """Give the verdicts on the pod itself, each once, and those on nodes."""
    whole: dict[str, Verdict] = {}
    left: dict[int, list[Verdict]] = {}
    for row, verdicts in against.items():
        whole |= {each.plugin: each for each in verdicts if each.of_pod and each.plugin not in whole}
        if own := [each for each in verdicts if not each.of_pod]:
            left[row] = own
    return list(whole.values()), left


def merged(tried: PodTrial, every: Iterable[Mapping[int, Verdict]]) -> dict[int, list[Verdict]]:
    """All verdicts against each row that does not fit; extenders' are in none of `every`."""
    against: dict[int, list[Verdict]] = {row: [] for row in tried.against}
    for verdicts in every:
        for row, verdict in verdicts.items():
            if row in against:
                against[row].append(verdict)
    for row, found in against.items():
        if not found:
            found.append(tried.against[row])
    return against


def grouped(against: Mapping[int, Sequence[Verdict]], names: Sequence[str], most: int) -> list[NodeGroup]:
    """The groups, the largest first; so many names of each, and no more than MAX_NAMES of all together."""
    rows_of: dict[tuple[tuple[str, int, tuple[str, ...]], ...], list[int]] = {}
    for row, verdicts in against.items():
        key = tuple((v.plugin, int(v.status.code), v.status.reasons) for v in verdicts)
        rows_of.setdefault(key, []).append(row)
    groups, left = [], MAX_NAMES
    # Among groups of one size, the nodes with the fewest plugins against them are the nearest.
    for key, rows in sorted(rows_of.items(), key=lambda item: (-len(item[1]), len(item[0]), item[0])):
        shown = sorted(names[row] for row in rows)[: min(most, left)]
        left -= len(shown)
        refusals = [refusal(plugin, code, reasons) for plugin, code, reasons in key]
        groups.append(NodeGroup(count=len(rows), refusals=refusals, nodes=shown))
    return groups


def refusal(plugin: str, code: int, reasons: Sequence[str]) -> Refusal:
    """A plugin's verdict, in bounded words."""
    texts = [reason[:MAX_TEXT] for reason in reasons[:MAX_REASONS]]
    return Refusal(plugin=plugin, reasons=texts, resolvable=code == Code.UNSCHEDULABLE)


def scored_nodes(tried: PodTrial, own: str) -> tuple[list[ScoredNode], int]:
    """The nodes that scored highest, the pod's own among them whatever its place; how many are left out."""
    scores = tried.scores
    if scores is None:
        return [], 0
    names = [tried.nodes.names[row] for row in scores.rows.tolist()]
    order = sorted(range(len(names)), key=lambda i: (-int(scores.totals[i]), names[i]))
    shown = list(enumerate(order[:MAX_SCORED], 1))
    shown += [(place, i) for place, i in enumerate(order, 1) if names[i] == own and place > MAX_SCORED]
    return [_scored(scores, i, names[i], place, own) for place, i in shown], len(order) - len(shown)


def _scored(scores: NodeScores, i: int, name: str, place: int, own: str) -> ScoredNode:
    parts = [
        ScorePart(
            plugin=part.plugin,
            raw=int(part.raw[i]),
            score=int(part.final[i]),
            weighted=int(part.final[i]) * part.weight,
        )
        for part in scores.parts
    ]
    return ScoredNode(name=name, total=int(scores.totals[i]), place=place, own=name == own, parts=parts)
