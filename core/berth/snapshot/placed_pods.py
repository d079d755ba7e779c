"""Counts of placed pods: for each question that is asked, a column kept up to date as pods come and go.

Pods are counted by class (namespace, labels, terminating or not) and by the affinity terms they hold. A
question's column is filled from the classes at its first asking and then changed by one number for each pod
that comes or goes, so that spreading and affinity cost O(nodes) in a cycle, however many pods there are. All
columns together take a bounded amount of memory: the one that was asked for longest ago goes, and is filled
anew when it is asked for again.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from berth.objects.label_selector import Selector, allowed, rules_of
from berth.snapshot.affinity_terms import HeldTerm
from berth.snapshot.columns import Ints
from berth.snapshot.pod_info import PodClass, PodInfo
from berth.snapshot.recent import Recent, size_of
from berth.snapshot.selector_index import ByLabels, BySelector

MOST_BYTES = 32 << 20
LEAST_COLUMNS = 512
"""So many columns are kept in clusters so large that they take more than `MOST_BYTES`."""

LEAST_BYTES = 8192
"""A column counts as that large at least: each placed pod changes all columns that it counts in."""

MOST_ANSWERING = 1 << 20


class PodsLike(NamedTuple):
    """Pods of these namespaces (None: of any) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector


class Question(NamedTuple):
    """How many pods meet all of these at once; terminating ones only where `terminating`."""

    likes: tuple[PodsLike, ...]
    terminating: bool = True


class _Asked:
    """A question that has a column, and what all that it asks comes to. Shapes: column int64 (capacity,)."""

    __slots__ = ("column", "namespaces", "nothing", "rules", "terminating")

    def __init__(self, question: Question, column: Ints) -> None:
        self.column = column
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
    """The pods of one class, by row; `columns` are those that they count in, None until that is asked."""

    __slots__ = ("columns", "pod_class", "rows")

    def __init__(self, pod_class: PodClass) -> None:
        self.pod_class = pod_class
        self.rows: dict[int, int] = {}
        self.columns: list[Ints] | None = None


class PlacedPods:
    """Counts by node row for pod classes, held terms and the questions asked so far.

    Shapes: every column int64 (capacity,).
    """

    def __init__(self, capacity: int) -> None:
        self._classes: dict[PodClass, _Counted] = {}
        self._terms: dict[HeldTerm, dict[int, int]] = {}
        self._answering_size = 0
        self._classes_by_labels: ByLabels[_Counted] = ByLabels()
        self._terms_by_selector: BySelector[HeldTerm] = BySelector()
        self.terms_generation = 0
        """Grows when a term is held for the first time, or not any more."""
        self._begin(capacity)

    def _begin(self, capacity: int) -> None:
        self._capacity = capacity
        most_bytes = max(MOST_BYTES, LEAST_COLUMNS * capacity * np.dtype(np.int64).itemsize)
        self._asked: Recent[Question, _Asked] = Recent(most_bytes)
        self._holders: Recent[HeldTerm, Ints] = Recent(most_bytes)
        self._asked_by_selector: BySelector[_Asked] = BySelector()

    def add(self, row: int, info: PodInfo, sign: int = 1) -> None:
        """Count a pod in on that row, or out where `sign` is -1."""
        counted = self._classes.get(info.pod_class)
        if counted is None:
            counted = self._classes[info.pod_class] = _Counted(info.pod_class)
            self._classes_by_labels.add(counted, info.pod_class.labels)
        columns = counted.columns
        for column in self._columns_of(counted) if columns is None else columns:
            column[row] += sign
        _count(counted.rows, row, sign)
        if not counted.rows:
            del self._classes[info.pod_class]
            self._classes_by_labels.discard(counted)
        for held in info.terms:
            self._add_term(held, row, sign)

    def _add_term(self, held: HeldTerm, row: int, sign: int) -> None:
        column = self._holders.peek(held)
        if column is not None:
            column[row] += sign
        rows = self._terms.get(held)
        if rows is None:
            rows = self._terms[held] = {}
            self._terms_by_selector.add(held, held.term.selector.rules)
            self.terms_generation += 1
        _count(rows, row, sign)
        if not rows:
            del self._terms[held]
            self._holders.discard(held)
            self._terms_by_selector.discard(held, held.term.selector.rules)
            self.terms_generation += 1

    def count(self, question: Question, n: int) -> Ints:
        """How many pods on each of the first n nodes meet the question."""
        asked = self._asked[question]
        column = self._ask(question) if asked is None else asked.column
        return column[:n]

    def held(self) -> Iterable[HeldTerm]:
        """The distinct affinity terms that placed pods hold."""
        return self._terms.keys()

    def held_about(self, labels: Mapping[str, str]) -> Iterator[HeldTerm]:
        """The distinct affinity terms that placed pods hold and whose label selector may match the labels."""
        return self._terms_by_selector.candidates(labels)

    def holders(self, held: HeldTerm, n: int) -> Ints:
        """How many pods on each of the first n nodes hold the term."""
        column = self._holders[held]
        if column is None:
            column = np.zeros(self._capacity, dtype=np.int64)
            _add_up(column, self._terms.get(held, {}))
            self._holders.put(held, column, _size(held, column))
        return column[:n]

    def grow(self, capacity: int) -> None:
        """Make room for more nodes; columns are filled anew when they are asked for."""
        self._begin(capacity)
        self._forget_answering()

    def move_row(self, source: int, target: int, pods: Iterable[PodInfo]) -> None:
        """Carry the counts of the pods on one row to another row, which has none."""
        for info in pods:
            self.add(source, info, -1)
            self.add(target, info)

    def _ask(self, question: Question) -> Ints:
        column = np.zeros(self._capacity, dtype=np.int64)
        asked = _Asked(question, column)
        for counted in self._classes_by_labels.matching(asked.rules):
            if asked.reaches(counted.pod_class):
                _add_up(column, counted.rows)
                if counted.columns is not None:
                    counted.columns.append(column)
                    self._answering_size += 1
        self._asked_by_selector.add(asked, asked.rules)
        for gone in self._asked.put(question, asked, _size(question, column)):
            self._asked_by_selector.discard(gone, gone.rules)
            self._forget_answering()
        return column

    def _columns_of(self, counted: _Counted) -> list[Ints]:
        """The columns that pods of the class count in, kept until one of these goes."""
        if self._answering_size > MOST_ANSWERING:
            self._forget_answering()
        pod_class = counted.pod_class
        counted.columns = [
            asked.column
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


def _size(key: Question | HeldTerm, column: Ints) -> int:
    """How much a column counts: that it is kept, and what its key takes there and where it is filed."""
    return max(column.nbytes + 2 * size_of(key), LEAST_BYTES)


def _add_up(column: Ints, rows: Mapping[int, int]) -> None:
    column[[*rows]] += np.fromiter(rows.values(), np.int64, len(rows))


def _count(rows: dict[int, int], row: int, sign: int) -> None:
    """Count on one row; a row that is left without any goes."""
    count = rows.get(row, 0) + sign
    if count:
        rows[row] = count
    else:
        rows.pop(row, None)
