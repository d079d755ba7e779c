"""Counts of placed pods: for each question that is asked, a column kept up to date as pods come and go.

Pods are counted by class (namespace, labels, terminating or not) and by the affinity terms they hold. A
question's column is filled from the classes at its first asking and then changed by one number for each pod
that comes or goes, so that spreading and affinity cost O(nodes) in a cycle, however many pods there are. Sums
over the domains of a label follow in the same way. All columns together take a bounded amount of memory: the
one that was asked for longest ago goes, and is filled anew when it is asked for again.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple
from weakref import WeakSet

import numpy as np

from berth.objects.label_selector import Selector, allowed, rules_of
from berth.snapshot.affinity_terms import HeldTerm
from berth.snapshot.columns import Ints, Mask
from berth.snapshot.pod_info import PodClass, PodInfo
from berth.snapshot.recent import Recent, size_of
from berth.snapshot.selector_index import ByLabels, BySelector

MOST_BYTES = 32 << 20
LEAST_COLUMNS = 512
"""So many columns are kept in clusters so large that they take more than `MOST_BYTES`."""

LEAST_BYTES = 8192
"""A column counts as that large at least: each placed pod changes all columns that it counts in."""

MOST_ANSWERING = 1 << 20

MOST_DIVISIONS = 4
"""So many sums over domains are kept beside a column, each of them small beside it."""

NODES_PER_DOMAIN = 16
"""Domains of fewer nodes than this are summed up each time."""

MOST_ROWS_ADDED_UP = 64
"""So are holders of a term on so few nodes: no column is kept for them."""


class PodsLike(NamedTuple):
    """Pods of these namespaces (None: of any) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector


class PodQuery(NamedTuple):
    """How many pods meet all of these at once; terminating ones only where `terminating`."""

    likes: tuple[PodsLike, ...]
    terminating: bool = True


class Division(NamedTuple):
    """Nodes divided into numbered domains, 0 for nodes that count in none; `key` names the division.

    Shapes: domain_of int64 (n,); known bool (width,), which domains have nodes.
    """

    key: Hashable
    domain_of: Ints
    known: Mask

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.domain_of.nbytes + self.known.nbytes


class _Counts:
    """Numbers of pods by row, and their sums by domain. Shapes: column int64 (capacity,), sums (width,)."""

    __slots__ = ("__weakref__", "column", "sums")

    def __init__(self, capacity: int) -> None:
        self.column: Ints = np.zeros(capacity, dtype=np.int64)
        self.sums: dict[Hashable, tuple[Ints, Ints]] = {}

    def add(self, row: int, sign: int) -> None:
        """Count a pod in or out."""
        self.column[row] += sign
        if self.sums:
            for domain_of, sums in self.sums.values():
                sums[domain_of[row]] += sign

    def add_up(self, rows: Mapping[int, int]) -> None:
        """Count so many pods in on each of the rows, before any sum is asked for."""
        self.column[[*rows]] += np.fromiter(rows.values(), np.int64, len(rows))

    def by_domain(self, division: Division) -> Ints:
        """The sums over the division's domains, added up."""
        here = self.column[: division.domain_of.size]
        return np.bincount(division.domain_of, here, division.known.size).astype(np.int64)


class _Asked:
    """A question that has a column, and what all that it asks comes to."""

    __slots__ = ("counts", "namespaces", "nothing", "rules", "terminating")

    def __init__(self, question: PodQuery, counts: _Counts) -> None:
        self.counts = counts
        self.terminating = question.terminating
        likes = question.likes
        listed = [like.namespaces for like in likes if like.namespaces is not None]
        self.namespaces = frozenset.intersection(*listed) if listed else None
        self.nothing = any(like.selector.nothing for like in likes)
        if len(likes) == 1:
            self.rules = likes[0].selector.rules
        else:
            self.rules = rules_of(chain.from_iterable([like.selector.requirements for like in likes]))

    def reaches(self, pod_class: PodClass) -> bool:
        """Whether pods of that class count as far as labels do not matter."""
        if self.nothing or (pod_class.terminating and not self.terminating):
            return False
        return self.namespaces is None or pod_class.namespace in self.namespaces


class _Counted:
    """The pods of one class, by row; `columns` are what they count in, None until that is asked."""

    __slots__ = ("columns", "pod_class", "rows")

    def __init__(self, pod_class: PodClass) -> None:
        self.pod_class = pod_class
        self.rows: dict[int, int] = {}
        self.columns: list[_Counts] | None = None


class _Holders:
    """The pods that hold one term, by row; `version` is that of the last one that came or went."""

    __slots__ = ("rows", "version")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.version = 0


class PlacedPods:
    """Counts by node row for pod classes, held terms and the questions asked so far.

    Shapes: every column int64 (capacity,).
    """

    def __init__(self, capacity: int) -> None:
        self._classes: dict[PodClass, _Counted] = {}
        self._terms: dict[HeldTerm, _Holders] = {}
        self._answering_size = 0
        self._classes_by_labels: ByLabels[_Counted] = ByLabels()
        self._terms_by_selector: BySelector[HeldTerm] = BySelector()
        self.terms_generation = 0
        """Grows when a term is held for the first time, or not any more."""
        self.holders_generation = 0
        """Grows whenever a pod that holds a term comes or goes."""
        self._begin(capacity)

    def _begin(self, capacity: int) -> None:
        self._capacity = capacity
        most_bytes = max(MOST_BYTES, LEAST_COLUMNS * capacity * np.dtype(np.int64).itemsize)
        self._asked: Recent[PodQuery, _Asked] = Recent(most_bytes)
        self._holders: Recent[HeldTerm, _Counts] = Recent(most_bytes)
        self._divided: WeakSet[_Counts] = WeakSet()
        self._asked_by_selector: BySelector[_Asked] = BySelector()

    def add(self, row: int, info: PodInfo, sign: int = 1) -> None:
        """Count a pod in on that row, or out where `sign` is -1."""
        counted = self._classes.get(info.pod_class)
        if counted is None:
            counted = self._classes[info.pod_class] = _Counted(info.pod_class)
            self._classes_by_labels.add(counted, info.pod_class.labels)
        columns = counted.columns
        for counts in self._columns_of(counted) if columns is None else columns:
            counts.add(row, sign)
        _count(counted.rows, row, sign)
        if not counted.rows:
            del self._classes[info.pod_class]
            self._classes_by_labels.discard(counted)
        for held in info.terms:
            self._add_term(held, row, sign)

    def _add_term(self, held: HeldTerm, row: int, sign: int) -> None:
        counts = self._holders.peek(held)
        if counts is not None:
            counts.add(row, sign)
        holders = self._terms.get(held)
        if holders is None:
            holders = self._terms[held] = _Holders()
            self._terms_by_selector.add(held, held.term.selector.rules)
            self.terms_generation += 1
        self.holders_generation += 1
        holders.version = self.holders_generation
        _count(holders.rows, row, sign)
        if not holders.rows:
            del self._terms[held]
            self._holders.discard(held)
            self._terms_by_selector.discard(held, held.term.selector.rules)
            self.terms_generation += 1

    def count(self, question: PodQuery, n: int) -> Ints:
        """How many pods on each of the first n nodes meet the question."""
        return self._counts(question).column[:n]

    def count_in(self, question: PodQuery, division: Division) -> Ints:
        """How many pods in each domain meet the question, not to be written to. Shapes: result (width,)."""
        return self._by_domain(self._counts(question), division)

    def held(self) -> Collection[HeldTerm]:
        """The distinct affinity terms that placed pods hold."""
        return self._terms.keys()

    def held_about(self, labels: Mapping[str, str]) -> Iterator[HeldTerm]:
        """The distinct affinity terms that placed pods hold and whose label selector may match the labels."""
        return self._terms_by_selector.candidates(labels)

    def holders_version(self, held: HeldTerm) -> int:
        """A number that no other term has, and this one only until a pod that holds it comes or goes."""
        return self._terms[held].version

    def holders(self, held: HeldTerm, n: int) -> Ints:
        """How many pods on each of the first n nodes hold the term."""
        return self._held(held).column[:n]

    def holders_in(self, held: HeldTerm, division: Division) -> Ints:
        """How many pods in each domain hold the term, not to be written to. Shapes: result (width,)."""
        rows = self._terms[held].rows
        if len(rows) <= MOST_ROWS_ADDED_UP:
            return _added_up(rows, division)
        return self._by_domain(self._held(held), division)

    def forget_sums(self) -> None:
        """Forget all sums: nodes may be in other domains now."""
        for counts in self._divided:
            counts.sums.clear()
        self._divided.clear()

    def _by_domain(self, counts: _Counts, division: Division) -> Ints:
        known = counts.sums.get(division.key)
        if known is not None:
            return known[1]
        sums = counts.by_domain(division)
        if division.known.size * NODES_PER_DOMAIN <= self._capacity:
            if len(counts.sums) == MOST_DIVISIONS:
                counts.sums.clear()
            self._divided.add(counts)
            counts.sums[division.key] = division.domain_of, sums
        return sums

    def _held(self, held: HeldTerm) -> _Counts:
        counts = self._holders[held]
        if counts is None:
            counts = _Counts(self._capacity)
            if held in self._terms:
                counts.add_up(self._terms[held].rows)
            self._holders.put(held, counts, _size(held, counts))
        return counts

    def _counts(self, question: PodQuery) -> _Counts:
        asked = self._asked[question]
        return self._ask(question) if asked is None else asked.counts

    def grow(self, capacity: int) -> None:
        """Make room for more nodes; columns are filled anew when they are asked for."""
        self._begin(capacity)
        self._forget_answering()

    def move_row(self, source: int, target: int, pods: Iterable[PodInfo]) -> None:
        """Carry the counts of the pods on one row to another row, which has none."""
        for info in pods:
            self.add(source, info, -1)
            self.add(target, info)

    def _ask(self, question: PodQuery) -> _Counts:
        counts = _Counts(self._capacity)
        asked = _Asked(question, counts)
        for counted in self._classes_by_labels.matching(asked.rules):
            if asked.reaches(counted.pod_class):
                counts.add_up(counted.rows)
                if counted.columns is not None:
                    counted.columns.append(counts)
                    self._answering_size += 1
        self._asked_by_selector.add(asked, asked.rules)
        for gone in self._asked.put(question, asked, _size(question, counts)):
            self._asked_by_selector.discard(gone, gone.rules)
            self._forget_answering()
        return counts

    def _columns_of(self, counted: _Counted) -> list[_Counts]:
        """The columns that pods of the class count in, kept until one of these goes."""
        if self._answering_size > MOST_ANSWERING:
            self._forget_answering()
        pod_class = counted.pod_class
        counted.columns = [
            asked.counts
            for asked in self._asked_by_selector.candidates(pod_class.labels)
            if asked.reaches(pod_class) and allowed(asked.rules, pod_class.labels)
        ]
        self._answering_size += len(counted.columns) + 1
        return counted.columns

    def _forget_answering(self) -> None:
        if self._answering_size:
            for counted in self._classes.values():
                counted.columns = None
            self._answering_size = 0


def _added_up(rows: Mapping[int, int], division: Division) -> Ints:
    domains = division.domain_of[[*rows]]
    weights = np.fromiter(rows.values(), np.float64, len(rows))
    return np.bincount(domains, weights, division.known.size).astype(np.int64)


def _size(key: PodQuery | HeldTerm, counts: _Counts) -> int:
    """How much a column counts: that it is kept, and what its key takes there and where it is filed."""
    return max(counts.column.nbytes + 2 * size_of(key), LEAST_BYTES)


def _count(rows: dict[int, int], row: int, sign: int) -> None:
    """Count on one row; a row that is left without any goes."""
    count = rows.get(row, 0) + sign
    if count:
        rows[row] = count
    else:
        rows.pop(row, None)
