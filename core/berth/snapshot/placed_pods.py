"""Counts of placed pods: for each question that is asked, a column kept up to date as pods come and go.

Pods are counted by class (namespace, labels, terminating or not) and by the affinity terms they hold. A
question's column is filled from the classes at its first asking and then changed by one number for each pod
that comes or goes, so that spreading and affinity cost O(nodes) in a cycle, however many pods there are. All
columns together take a bounded amount of memory: the one that was asked for longest ago goes, and is filled
anew when it is asked for again.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from berth.objects.label_selector import EVERYTHING, Selector
from berth.snapshot.affinity_terms import HeldTerm
from berth.snapshot.columns import Ints, grown
from berth.snapshot.pod_info import PodClass, PodInfo
from berth.snapshot.recent import Recent, size_of
from berth.snapshot.selector_index import ByLabels, BySelector, narrowest

MOST_BYTES = 32 << 20
MOST_ANSWERING = 1 << 20

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PodsLike:
    """Pods of these namespaces (None: of any) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, pod_class: PodClass) -> bool:
        """Whether pods of that class are meant."""
        inside = self.namespaces is None or pod_class.namespace in self.namespaces
        return inside and self.selector.matches(pod_class.labels)


@dataclass(frozen=True, slots=True)
class Question:
    """How many pods meet all of these at once; terminating ones only where `terminating`."""

    likes: tuple[PodsLike, ...]
    terminating: bool = True

    def counts(self, pod_class: PodClass) -> bool:
        """Whether pods of that class count."""
        return (self.terminating or not pod_class.terminating) and all(
            k.matches(pod_class) for k in self.likes
        )

    @property
    def narrowest(self) -> Selector:
        """A selector that matches whatever counts, one that names labels if there is one."""
        selectors = [like.selector for like in self.likes]
        return next((s for s in selectors if narrowest(s) is not None), EVERYTHING)


class PlacedPods:
    """Counts by node row for pod classes, held terms and the questions asked so far.

    Shapes: every column int64 (capacity,).
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._classes: dict[PodClass, dict[int, int]] = {}
        self._terms: dict[HeldTerm, dict[int, int]] = {}
        self._columns: Recent[Question | HeldTerm, Ints] = Recent(MOST_BYTES)
        self._answering: dict[PodClass, list[Ints]] = {}
        self._answering_size = 0
        self._classes_by_labels: ByLabels[PodClass] = ByLabels()
        self._terms_by_selector: BySelector[HeldTerm] = BySelector()
        self._questions_by_selector: BySelector[Question] = BySelector()
        self.terms_generation = 0
        """Grows when a term is held for the first time, or not any more."""

    def add(self, row: int, info: PodInfo, sign: int = 1) -> None:
        """Count a pod in on that row, or out where `sign` is -1."""
        pod_class = info.pod_class
        for column in self._columns_counting(pod_class):
            column[row] += sign
        known = pod_class in self._classes
        left = _bump(self._classes, pod_class, row, sign)
        if not left:
            del self._classes[pod_class]
            self._answering.pop(pod_class, None)
            self._classes_by_labels.discard(pod_class, pod_class.labels)
        elif not known:
            self._classes_by_labels.add(pod_class, pod_class.labels)
        for held in info.terms:
            self._add_term(held, row, sign)

    def _add_term(self, held: HeldTerm, row: int, sign: int) -> None:
        column = self._columns.peek(held)
        if column is not None:
            column[row] += sign
        known = held in self._terms
        left = _bump(self._terms, held, row, sign)
        if not left:
            del self._terms[held]
            self._columns.discard(held)
            self._terms_by_selector.discard(held, held.term.selector)
        elif not known:
            self._terms_by_selector.add(held, held.term.selector)
        if not (known and left):
            self.terms_generation += 1

    def count(self, question: Question, n: int) -> Ints:
        """How many pods on each of the first n nodes meet the question."""
        column = self._columns.get(question)
        if column is None:
            column = self._ask(question)
        return column[:n]

    def held(self) -> Iterable[HeldTerm]:
        """The distinct affinity terms that placed pods hold."""
        return self._terms.keys()

    def held_about(self, labels: Mapping[str, str]) -> Iterator[HeldTerm]:
        """The distinct affinity terms that placed pods hold and whose label selector may match the labels."""
        return self._terms_by_selector.candidates(labels)

    def holders(self, held: HeldTerm, n: int) -> Ints:
        """How many pods on each of the first n nodes hold the term."""
        column = self._columns.get(held)
        if column is None:
            column = self._dense(self._terms.get(held, {}))
            self._keep(held, column)
        return column[:n]

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._capacity = capacity
        for key in [*self._columns]:
            column = self._columns.peek(key)
            if column is not None:  # a longer one may have taken its room
                self._keep(key, grown(column, capacity))
        self._forget_answering()

    def move_row(self, source: int, target: int, pods: Iterable[PodInfo]) -> None:
        """Carry the counts of the pods on one row to another row, which has none."""
        for info in pods:
            self.add(source, info, -1)
            self.add(target, info)

    def _ask(self, question: Question) -> Ints:
        column = np.zeros(self._capacity, dtype=np.int64)
        for pod_class in self._classes_by_labels.candidates(question.narrowest):
            if question.counts(pod_class):
                rows = self._classes[pod_class]
                column[list(rows.keys())] += np.fromiter(rows.values(), np.int64, len(rows))
                if pod_class in self._answering:
                    self._answering[pod_class].append(column)
                    self._answering_size += 1
        self._questions_by_selector.add(question, question.narrowest)
        self._keep(question, column)
        return column

    def _keep(self, key: Question | HeldTerm, column: Ints) -> None:
        for gone in self._columns.put(key, column, column.nbytes + 2 * size_of(key)):
            if isinstance(gone, Question):
                self._questions_by_selector.discard(gone, gone.narrowest)
                self._forget_answering()

    def _columns_counting(self, pod_class: PodClass) -> list[Ints]:
        known = self._answering.get(pod_class)
        if known is None:
            if self._answering_size > MOST_ANSWERING:
                self._forget_answering()
            asked = self._questions_by_selector.candidates(pod_class.labels)
            columns = (self._columns.peek(question) for question in asked if question.counts(pod_class))
            known = self._answering[pod_class] = [column for column in columns if column is not None]
            self._answering_size += len(known) + 1
        return known

    def _forget_answering(self) -> None:
        self._answering.clear()
        self._answering_size = 0

    def _dense(self, rows: dict[int, int]) -> Ints:
        column = np.zeros(self._capacity, dtype=np.int64)
        column[list(rows.keys())] = list(rows.values())
        return column


def _bump(table: dict[K, dict[int, int]], key: K, row: int, sign: int) -> dict[int, int]:
    """Count on one row; the rows that are left, none once nothing is counted any more."""
    rows = table.setdefault(key, {})
    count = rows.get(row, 0) + sign
    if count:
        rows[row] = count
    else:
        rows.pop(row, None)
    return rows
