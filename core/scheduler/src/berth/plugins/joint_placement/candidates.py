"""Which of the nodes that a kind of pods fits on have a column: the best, and the best of each domain."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec
import numpy as np

from berth.framework.node_scores import NodeScores
from berth.plugins.joint_placement.model import PodKind
from berth.plugins.joint_placement.rules import Apart, Near, Rule
from berth.snapshot.columns.growing import Ints, Mask, Rows

MAX_ROWS = 4096
"""This many columns all kinds of a group have together, or one for each pod of the group if that is more."""
SPARE = 2
"""This many times the rows that an even share of the pods needs are looked at in each domain."""
NEVER = 1 << 62
MAX_FOCUSED = 3


def candidates(
    kind: int, size: int, many: int, scores: NodeScores, *, rules: Sequence[Rule], wanted: AbstractSet[int]
) -> Rows:
    """Places in `scores` of the rows to look at, ascending, for `size` pods of a group of `many`.

    The best `many` rows, since the others of the group can take no more than that; the best of each domain
    that a rule of the kind names, since the best nodes may all be in one; and the `wanted` rows.
    Shapes: result intp (k,).
    """
    best_first = np.argsort(-scores.totals, kind="stable")
    taken = np.zeros(scores.rows.size, dtype=bool)
    taken[best_first[:many]] = True
    taken |= np.isin(scores.rows, np.fromiter(wanted, dtype=np.intp, count=len(wanted)))
    limit = max(MAX_ROWS * size // many, many)
    for place_of, each in _quotas(kind, size, many, rules):
        if np.count_nonzero(taken) >= limit:
            break
        order = best_first[_in_domain(place_of[scores.rows[best_first]]) < each]
        left = limit - np.count_nonzero(taken)
        taken[order[~taken[order]][:left]] = True
    found: Rows = np.flatnonzero(taken)
    return found


def _quotas(kind: int, size: int, many: int, rules: Sequence[Rule]) -> list[tuple[Ints, int]]:
    """How many rows each domain gives: all that the group can use where pods are to be near each other."""
    found = []
    for rule in rules:
        if rule.kind == kind or kind in _others(rule):
            domains = int(rule.place_of.max(initial=0)) or 1
            each = many if isinstance(rule, Near) else SPARE * -(-size // domains)
            found.append((rule.place_of, each))
    return found


def _others(rule: Rule) -> AbstractSet[int]:
    if isinstance(rule, Apart):
        return rule.avoided
    return rule.sought if isinstance(rule, Near) else rule.counted


def _in_domain(places: Ints) -> Ints:
    """How many earlier entries have the same place; more than any quota for place 0.

    Shapes: places, result int64 (k,).
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    before = np.empty(places.size, dtype=np.int64)
    before[order] = np.arange(places.size) - starts
    before[places == 0] = NEVER
    return before


def focused(kinds: Sequence[PodKind], rules: Sequence[Rule]) -> list[list[PodKind]]:
    """The kinds within one domain of those that pods are to be near each other in, the most promising ones.

    Near each other in another domain pods may score more than near each other in the first one that was
    found: that takes all of them to move at once.
    """
    rule = next((rule for rule in rules if isinstance(rule, Near)), None)
    if rule is None:
        return []
    place_of = rule.place_of
    domains = {place for kind in kinds for place in place_of[kind.rows].tolist() if place}
    within = [[_within(kind, place_of[kind.rows] == place) for kind in kinds] for place in sorted(domains)]
    return sorted(within, key=_promise, reverse=True)[:MAX_FOCUSED]


def _within(kind: PodKind, there: Mask) -> PodKind:
    rows, scores, most, drops = kind.rows[there], kind.scores[there], kind.most[there], kind.drops[there]
    return msgspec.structs.replace(kind, rows=rows, scores=scores, most=most, drops=drops)


def _promise(kinds: Sequence[PodKind]) -> tuple[int, int]:
    """How many pods fit, each kind by itself, and what they would score on their best nodes."""
    fit = sum(min(len(kind.pods), int(kind.most.sum())) for kind in kinds)
    return fit, sum(len(kind.pods) * int(kind.scores.max(initial=0)) for kind in kinds)
