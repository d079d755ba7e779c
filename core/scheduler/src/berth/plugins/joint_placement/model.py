"""From what the engine says of each kind of pods alone to a program for all of them together.

    maximise   pods placed first, then the sum of their scores, less what pods on one node cost each other
    such that  nodes have the room; pods are apart, near and evenly spread as `rules.py` says

Columns are numbers of pods by kind and node, so pods that are alike do not multiply the work. What pods on
one node cost each other is taken from one look by the engine at a node with one pod more; a plan that this
is wrong about is not taken, for the engine scores each plan.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import Units
from berth.plugins.joint_placement.program import Program, Term
from berth.plugins.joint_placement.rules import Apart, Even, Near, Rule
from berth.snapshot.columns.growing import Ints, Rows
from berth.snapshot.snapshot import Snapshot

SEGMENTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48)
"""Where the cost of so many pods on one node is exact; in between it is a little less than it should be."""
MAX_STEPS = 16
"""Gains from packing grow up to so many pods on a node."""

Counts = Mapping[tuple[int, int], int]
"""How many pods of a kind are on a row, by (kind, row)."""


class PodKind(msgspec.Struct, frozen=True):
    """Pods that are alike, and what the engine says of one of them.

    Shapes: rows intp (k,); scores, most int64 (k,), the total score and how many fit on the node; drops
        float64 (k,), by how much less the next one scores, negative where it scores more, NaN where
        the engine was not asked, or no other fits.
    """

    pods: Sequence[Pod]
    requests: Units
    rows: Rows
    scores: Ints
    most: Ints
    drops: NDArray[np.float64]


class Model(msgspec.Struct):
    """The program, and which column stands for which kind on which row."""

    kinds: Sequence[PodKind]
    nodes: Snapshot
    program: Program = msgspec.field(default_factory=Program)
    numbers: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)
    _on_row: dict[int, list[int]] = msgspec.field(default_factory=dict)
    _used: dict[tuple[int, int, int], int] = msgspec.field(default_factory=dict)
    _first: dict[tuple[int, int, frozenset[int]], int] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Sequence[PodKind], rules: Sequence[Rule], nodes: Snapshot) -> "Model":
        """The model of these kinds under these rules."""
        model = cls(kinds, nodes)
        model._place_pods()
        model._keep_room()
        model._share_nodes()
        model._keep_all_apart([rule for rule in rules if isinstance(rule, Apart)])
        for rule in rules:
            if isinstance(rule, Near):
                model._keep_near(rule)
            elif isinstance(rule, Even):
                model._keep_even(rule)
        model._start_once()
        return model

    def counts(self, values: Sequence[float]) -> Counts:
        """How many pods of which kind a solution puts on which row."""
        found = {key: round(values[column]) for key, column in self.numbers.items()}
        return {key: count for key, count in found.items() if count > 0}

    def values(self, counts: Counts) -> dict[int, float]:
        """The columns of a solution with these counts."""
        return {column: float(counts.get(key, 0)) for key, column in self.numbers.items()}

    def _place_pods(self) -> None:
        placed = 1.0 + sum(len(k.pods) * int(k.scores.max(initial=0)) for k in self.kinds)
        for i, kind in enumerate(self.kinds):
            rows, scores, most = kind.rows.tolist(), kind.scores.tolist(), kind.most.tolist()
            for row, score, fit in zip(rows, scores, most, strict=True):
                self.numbers[i, row] = self.program.column(placed + score, min(fit, len(kind.pods)))
                self._on_row.setdefault(row, []).append(i)
            everywhere = self._sum(i, rows)
            if everywhere:
                self.program.row(everywhere, upper=len(kind.pods))

    def _sum(self, kind: int, rows: Sequence[int], times: float = 1.0) -> list[Term]:
        return [(self.numbers[kind, row], times) for row in rows]

    def _most_on(self, kind: int, row: int) -> int:
        return int(self.program.upper[self.numbers[kind, row]])

    def _keep_room(self) -> None:
        nodes = self.nodes
        free = nodes.allocatable - nodes.requested
        free_pods = nodes.allowed_pods - nodes.pod_count
        for row, here in self._on_row.items():
            self._keep_sum(here, row, dict.fromkeys(here, 1), int(free_pods[row]))
            for place, name in enumerate(nodes.resource_names):
                asked = {i: self.kinds[i].requests.get(name, 0) for i in here}
                self._keep_sum(here, row, asked, int(free[place, row]))

    def _keep_sum(self, here: Sequence[int], row: int, asked: Mapping[int, int], free: int) -> None:
        """Keep the sum within the room, where it could exceed it; as shares, for large numbers are inexact.

        A request that exceeds the room alone, and fits nevertheless, is one that the engine does not count.
        """
        total = sum(asked[i] * self._most_on(i, row) for i in here)
        if total > free and max(asked.values()) <= free:
            terms = [(self.numbers[i, row], asked[i] / free) for i in here if asked[i]]
            self.program.row(terms, upper=1.0)

    def _share_nodes(self) -> None:
        """Count what pods on one node cost each other, or gain by it."""
        drops: dict[int, float] = {}
        weights: dict[int, float] = {}
        for kind in self.kinds:
            known = ~np.isnan(kind.drops)
            for row, drop in zip(kind.rows[known].tolist(), kind.drops[known].tolist(), strict=True):
                drops[row] = drops.get(row, 0.0) + drop * len(kind.pods)
                weights[row] = weights.get(row, 0.0) + len(kind.pods)
        for row, weight in weights.items():
            here = self._on_row[row]
            most = sum(self._most_on(i, row) for i in here)
            drop = drops[row] / weight
            terms = [(self.numbers[i, row], 1.0) for i in here]
            if most > 1 and drop > 0:
                self._costs(terms, most, drop)
            elif most > 1 and drop < 0:
                self._gains(terms, most, -drop)

    def _costs(self, pods: Sequence[Term], most: int, drop: float) -> None:
        """Each further pod costs `drop` more than the one before: 0, 1, 3, 6 times for 1, 2, 3, 4 pods."""
        cost = self.program.column(-1.0, float("inf"), whole=False)
        for n in SEGMENTS:
            if n < most or n == 1:
                below = [(column, -n * drop) for column, _ in pods]
                self.program.row([(cost, 1.0), *below], lower=-drop * n * (n + 1) / 2)

    def _gains(self, pods: Sequence[Term], most: int, rise: float) -> None:
        steps = [
            self.program.column(n * rise, 1.0 if n + 1 < MAX_STEPS else max(1, most - n))
            for n in range(min(most, MAX_STEPS))
        ]
        self.program.row([*pods, *((step, -1.0) for step in steps)], lower=0.0, upper=0.0)
        for step, after in pairwise(steps):
            self.program.row([(after, 1.0), (step, -self.program.upper[after])], upper=0.0)

    def _places(self, kind: int, place_of: Ints) -> dict[int, list[int]]:
        """The kind's rows by domain, without those that are in none."""
        rows = self.kinds[kind].rows
        places: dict[int, list[int]] = {}
        for row, place in zip(rows.tolist(), place_of[rows].tolist(), strict=True):
            if place:
                places.setdefault(place, []).append(row)
        return places

    def _is_used(self, kind: int, place_of: Ints, place: int, rows: Sequence[int]) -> int:
        """The column that is 1 where the kind has a pod in the domain, else 0."""
        key = kind, id(place_of), place
        known = self._used.get(key)
        if known is None:
            known = self._used[key] = self.program.column(0.0, 1.0)
            most = min(len(self.kinds[kind].pods), sum(self._most_on(kind, row) for row in rows))
            pods = self._sum(kind, rows)
            self.program.row([*pods, (known, -float(most))], upper=0.0)
            self.program.row([*pods, (known, -1.0)], lower=0.0)
        return known

    def _keep_all_apart(self, rules: Sequence[Apart]) -> None:
        """Kinds that all avoid each other, themselves included, have one pod in a domain together."""
        alike: dict[tuple[int, frozenset[int]], list[Apart]] = {}
        for rule in rules:
            alike.setdefault((id(rule.place_of), rule.avoided), []).append(rule)
        for (_, avoided), same in alike.items():
            mutual = avoided <= {rule.kind for rule in same}
            if mutual:
                for terms in self._by_place(avoided, same[0].place_of).values():
                    self.program.row(terms, upper=1.0)
            for rule in same:
                if not (mutual and rule.kind in avoided):
                    self._keep_apart(rule)

    def _keep_apart(self, rule: Apart) -> None:
        """Where the kind is, there is none of the others, and one of itself if it avoids itself."""
        others = self._by_place(rule.avoided - {rule.kind}, rule.place_of)
        for place, rows in self._places(rule.kind, rule.place_of).items():
            if rule.kind in rule.avoided:
                self.program.row(self._sum(rule.kind, rows), upper=1.0)
            if place in others:
                most = sum(self.program.upper[column] for column, _ in others[place])
                used = self._is_used(rule.kind, rule.place_of, place, rows)
                self.program.row([*others[place], (used, most)], upper=most)

    def _by_place(self, kinds: AbstractSet[int], place_of: Ints) -> dict[int, list[Term]]:
        """The pods of these kinds by domain."""
        found: dict[int, list[Term]] = {}
        for kind in sorted(kinds):
            for place, rows in self._places(kind, place_of).items():
                found.setdefault(place, []).extend(self._sum(kind, rows))
        return found

    def _keep_near(self, rule: Near) -> None:
        self._nowhere(rule.kind, np.flatnonzero(rule.place_of == 0).tolist())
        others = {i: self._places(i, rule.place_of) for i in rule.sought if i != rule.kind}
        for place, rows in self._places(rule.kind, rule.place_of).items():
            if rule.met[place]:
                continue
            terms = [(self._is_used(rule.kind, rule.place_of, place, rows), 1.0)]
            for other, places in others.items():
                if place in places:
                    used = self._is_used(other, rule.place_of, place, places[place])
                    terms.append((used, -1.0))
            if rule.starts:
                terms.append((self._starts_in(rule, place), -1.0))
            self.program.row(terms, upper=0.0)

    def _nowhere(self, kind: int, rows: Sequence[int]) -> None:
        for row in rows:
            column = self.numbers.get((kind, row))
            if column is not None:
                self.program.upper[column] = 0.0

    def _starts_in(self, rule: Near, place: int) -> int:
        key = id(rule.place_of), place, rule.sought
        if key not in self._first:
            self._first[key] = self.program.column(0.0, 1.0)
        return self._first[key]

    def _start_once(self) -> None:
        """The first pod of those that seek each other is in one domain."""
        groups: dict[tuple[int, AbstractSet[int]], list[Term]] = {}
        for (place_of, _, sought), column in self._first.items():
            groups.setdefault((place_of, sought), []).append((column, 1.0))
        for terms in groups.values():
            self.program.row(terms, upper=1.0)

    def _keep_even(self, rule: Even) -> None:
        program = self.program
        counted = {i: self._places(i, rule.place_of) for i in rule.counted}
        known = np.flatnonzero(rule.known).tolist()
        pods = {
            place: [t for i, places in counted.items() for t in self._sum(i, places.get(place, ()))]
            for place in {*known, *self._places(rule.kind, rule.place_of)}
        }
        emptiest = self._emptiest(rule, known, pods)
        many = sum(len(kind.pods) for kind in self.kinds)
        for place, rows in self._places(rule.kind, rule.place_of).items():
            there = int(rule.pods[place])
            used = self._is_used(rule.kind, rule.place_of, place, rows)
            program.row(
                [*pods[place], (used, float(many + there)), (emptiest, -1.0)],
                upper=float(rule.max_skew + many),
            )

    def _emptiest(self, rule: Even, known: Sequence[int], pods: Mapping[int, Sequence[Term]]) -> int:
        """The column of how many pods the emptiest domain has, at most."""
        few = len(known) < max(rule.min_domains, 1)
        settled = [int(rule.pods[place]) for place in known if not pods[place]]
        emptiest = self.program.column(0.0, 0.0 if few else float(min(settled, default=1 << 20)), whole=False)
        for place in known:
            if pods[place] and not few:
                terms = [(column, -1.0) for column, _ in pods[place]]
                self.program.row([(emptiest, 1.0), *terms], upper=float(rule.pods[place]))
        return emptiest
