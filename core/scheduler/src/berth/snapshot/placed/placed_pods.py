"""Counts of placed pods: for each question that is asked, a column kept up to date as pods come and go.

Pods are counted by class (namespace, labels, terminating or not) and by the affinity terms they hold. A
question's column is filled from the classes at its first asking and then changed by one number for each pod
that comes or goes, so that spreading and affinity cost O(nodes) in a cycle, however many pods there are. Sums
over the domains of a label follow in the same way. All columns together take a bounded amount of memory: the
one that was asked for longest ago goes, and is filled anew when it is asked for again.
"""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from berth.objects.label_selector import Selector, allowed, rules_of
from berth.snapshot.bounded_cache import BoundedCache, size_of
from berth.snapshot.columns.growing import Ints
from berth.snapshot.placed.pod_counts import LEAST_BYTES, Counts, Division, Sums, count_on, max_bytes
from berth.snapshot.placed.selector_index import ByLabels, BySelector
from berth.snapshot.placed.term_holders import TermHolders
from berth.snapshot.pod_info import PodClass, PodInfo

MAX_ANSWERING = 1 << 20


class PodsLike(NamedTuple):
    """Pods of these namespaces (None: of any) that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector


class PodQuery(NamedTuple):
    """How many pods meet all of these at once; terminating ones only where `terminating`."""

    likes: tuple[PodsLike, ...]
    terminating: bool = True


class _Asked:
    """A question that has a column, and what all that it asks comes to."""

    __slots__ = ("counts", "namespaces", "nothing", "rules", "terminating")

    def __init__(self, question: PodQuery, counts: Counts) -> None:
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
        self.columns: list[Counts] | None = None


class PlacedPods:
    """Counts by node row for pod classes, held terms and the questions asked so far.

    Shapes: every column int64 (capacity,).
    """

    def __init__(self, capacity: int) -> None:
        self._classes: dict[PodClass, _Counted] = {}
        self._answering_size = 0
        self._classes_by_labels: ByLabels[_Counted] = ByLabels()
        self.terms = TermHolders(capacity)
        self._begin(capacity)

    def _begin(self, capacity: int) -> None:
        self._capacity = capacity
        self._asked: BoundedCache[PodQuery, _Asked] = BoundedCache(max_bytes(capacity))
        self._sums = Sums(capacity)
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
        count_on(counted.rows, row, sign)
        if not counted.rows:
            del self._classes[info.pod_class]
            self._classes_by_labels.discard(counted)
        if info.held:
            self.terms.add(info.held, row, sign)

    def count(self, question: PodQuery, n: int) -> Ints:
        """How many pods on each of the first n nodes meet the question."""
        return self._counts(question).column[:n]

    def count_in(self, question: PodQuery, division: Division) -> Ints:
        """How many pods in each domain meet the question, not to be written to. Shapes: result (width,)."""
        return self._sums.of(self._counts(question), division)

    def count_in_each(self, question: PodQuery, divisions: Iterable[Division]) -> list[Ints]:
        """The same for several divisions, asked once, however large the question is."""
        counts = self._counts(question)
        return [self._sums.of(counts, division) for division in divisions]

    def forget_sums(self) -> None:
        """Forget all sums: nodes may be in other domains now."""
        self._sums.forget()
        self.terms.forget_sums()

    def _counts(self, question: PodQuery) -> Counts:
        asked = self._asked.get(question)
        return self._ask(question) if asked is None else asked.counts

    def grow(self, capacity: int) -> None:
        """Make room for more nodes; columns are filled anew when they are asked for."""
        self._begin(capacity)
        self.terms.grow(capacity)
        self._forget_answering()

    def move_row(self, source: int, target: int, pods: Iterable[PodInfo]) -> None:
        """Carry the counts of the pods on one row to another row, which has none."""
        for info in pods:
            self.add(source, info, -1)
            self.add(target, info)

    def _ask(self, question: PodQuery) -> Counts:
        counts = Counts(self._capacity)
        asked, size = _Asked(question, counts), _size(question, counts)
        # What is too large to be kept is not filed either: nothing that is known has to go for it.
        kept = self._asked.may_keep(size)
        for counted in self._classes_by_labels.matching(asked.rules):
            if asked.reaches(counted.pod_class):
                counts.add_up(counted.rows)
                if kept and counted.columns is not None:
                    counted.columns.append(counts)
                    self._answering_size += 1
        if kept:
            self._asked_by_selector.add(asked, asked.rules)
            self._evicted(self._asked.put(question, asked, size))
        return counts

    def _evicted(self, evicted: list[_Asked]) -> None:
        """Take evicted questions out of the index, and the columns of all classes with them.

        Half of all questions go at a time: classes are matched anew only once in many new questions.
        """
        if not evicted:
            return
        while self._asked.size_bytes > self._asked.max_bytes / 2:
            evicted.append(self._asked.pop_oldest())
        for gone in evicted:
            self._asked_by_selector.discard(gone, gone.rules)
        self._forget_answering()

    def _columns_of(self, counted: _Counted) -> list[Counts]:
        """The columns that pods of the class count in, kept until one of these goes."""
        if self._answering_size > MAX_ANSWERING:
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


def _size(key: PodQuery, counts: Counts) -> int:
    """How much a column counts: that it is kept, and what its key takes there and where it is filed."""
    return max(counts.column.nbytes + 2 * size_of(key), LEAST_BYTES)
