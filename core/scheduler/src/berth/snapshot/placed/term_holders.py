"""The affinity terms that placed pods hold: which of them mean a pod, and on which nodes these pods are.

A pod's terms of one kind with one topology key count together (`HeldTerms`), so that others' cycles pay for a
pod once, however many terms it has. Which of them mean a pod is worked out once for each class of pods; after
that, only for pods with other terms that came since. Terms over a label that no node has change nothing; they
are not filed, so that a pod of thousands of such topology keys costs what a pod without terms does.
"""

from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from berth.objects.pods.pod import Pod
from berth.snapshot.affinity_terms import HeldTerm, HeldTerms, TermKind
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.growing import Ints
from berth.snapshot.journal import Journal
from berth.snapshot.placed.pod_counts import LEAST_BYTES, Counts, Division, Sums, count_on, max_bytes
from berth.snapshot.placed.selector_index import BySelector
from berth.snapshot.pod_info import PodClass, class_of

MAX_ABOUT_BYTES = 16 << 20
ENTRY_BYTES = 200
"""About what one weight takes."""
LABEL_BYTES = 50
"""About what a label takes; its text is that of the pod or the namespace."""

MAX_ROWS_ADDED_UP = 64
"""Holders on so few nodes are added up each time: no column is kept for them."""

TERMS_A_STEP = 64

Weights = dict[HeldTerms, int]
About: TypeAlias = Mapping[str, Weights]
"""By topology key: the lists of terms of which some mean a pod, and how much a pod that holds one counts."""

NOTHING: About = {}
Asked: TypeAlias = Iterable[tuple[HeldTerm, Collection[HeldTerms]]]


class _Known(NamedTuple):
    """What was worked out for a class of pods, when the journal ended at `position`."""

    position: int
    about: About


class _NamespaceLabels:
    """The labels of a namespace, hashed once."""

    __slots__ = ("_hash", "labels")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self._hash = hash(frozenset(labels.items()))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, _NamespaceLabels) and self._hash == other._hash and self.labels == other.labels
        )

    def __hash__(self) -> int:
        return self._hash


class _Asking(NamedTuple):
    """All that terms ask of a pod."""

    pod_class: PodClass
    namespace: _NamespaceLabels


class _Holders:
    """The pods that hold the same terms, by row; `version` is that of the last one that came or went."""

    __slots__ = ("rows", "version")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.version = 0


class _Pods:
    """The pods of one footprint, by row, and those of their lists that are filed."""

    __slots__ = ("filed", "lists", "rows")

    def __init__(self, lists: Sequence[HeldTerms], keys: Collection[str]) -> None:
        self.lists = lists
        self.rows: dict[int, int] = {}
        self.file(keys)

    def file(self, keys: Collection[str]) -> None:
        """Take the labels that nodes have."""
        self.filed = [held for held in self.lists if held.topology_key in keys]


class TermHolders:
    """Who holds which terms, by node row.

    Shapes: every column int64 (capacity,).
    """

    def __init__(self, capacity: int) -> None:
        self._pods: dict[int, _Pods] = {}
        """Pods with terms, by the identity of their lists, which pods of one template share."""
        self._label_keys: frozenset[str] = frozenset()
        self._label_keys_version = 0
        self._holders: dict[HeldTerms, _Holders] = {}
        """Who holds lists whose topology key is a label of some node."""
        self._lists: dict[HeldTerm, dict[HeldTerms, None]] = {}
        """By term: the lists in which it stands."""
        self._by_selector: BySelector[HeldTerm] = BySelector()
        self._changes: Journal[tuple[int, HeldTerms]] = Journal(size_of=lambda change: change[1].size_bytes)
        self._known: BoundedCache[Hashable, _Known] = BoundedCache(MAX_ABOUT_BYTES)
        self._namespaces: BoundedCache[str, _NamespaceLabels] = BoundedCache(MAX_ABOUT_BYTES)
        self.generation = 0
        """Grows whenever a pod that holds a term comes or goes."""
        self.terms_by_namespace: Counter[str] = Counter()
        """How many terms the pods of each namespace hold, equal ones of several pods once."""
        self.grow(capacity)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes; columns are filled anew when they are asked for."""
        self._capacity = capacity
        self._columns: BoundedCache[HeldTerms, Counts] = BoundedCache(max_bytes(capacity))
        self._sums = Sums(capacity)

    def follow_label_keys(self, keys: Collection[str], version: int) -> None:
        """File what is held over these labels, which some node has; `version` changes whenever they do."""
        if version == self._label_keys_version:
            return
        before, now = self._label_keys, frozenset(keys)
        self._label_keys, self._label_keys_version = now, version
        self._known.clear()
        for pods in self._pods.values():
            for held in pods.lists:
                is_label = held.topology_key in now
                if is_label != (held.topology_key in before):
                    for row, count in pods.rows.items():
                        self._count(held, row, count if is_label else -count)
            pods.file(now)

    def add(self, lists: Sequence[HeldTerms], row: int, sign: int) -> None:
        """Count a pod that holds these in on that row, or out where `sign` is -1."""
        pods = self._pods.get(id(lists))
        if pods is None:
            pods = self._pods[id(lists)] = _Pods(lists, self._label_keys)
        for held in pods.filed:
            self._count(held, row, sign)
        count_on(pods.rows, row, sign)
        if not pods.rows:
            del self._pods[id(lists)]

    def _count(self, held: HeldTerms, row: int, more: int) -> None:
        """Count so many pods in, or out where it is negative."""
        holders = self._holders.get(held)
        if holders is None:
            holders = self._holders[held] = _Holders()
            self._file(held)
        elif (counts := self._columns.peek(held)) is not None:
            counts.add(row, more)
        self.generation += 1
        holders.version = self.generation
        count_on(holders.rows, row, more)
        if not holders.rows:
            del self._holders[held]
            self._columns.drop(held)
            self._take_out(held)

    def _file(self, held: HeldTerms) -> None:
        for term in held.times:
            lists = self._lists.get(term)
            if lists is None:
                lists = self._lists[term] = {}
                self._by_selector.add(term, term.term.selector.rules)
            lists[held] = None
        self.terms_by_namespace[held.namespace] += len(held.times)
        self._changes.note((1, held))

    def _take_out(self, held: HeldTerms) -> None:
        for term in held.times:
            lists = self._lists[term]
            del lists[held]
            if not lists:
                del self._lists[term]
                self._by_selector.discard(term, term.term.selector.rules)
        self.terms_by_namespace[held.namespace] -= len(held.times)
        if not self.terms_by_namespace[held.namespace]:
            del self.terms_by_namespace[held.namespace]
        self._changes.note((-1, held))

    def held(self) -> Collection[HeldTerms]:
        """The distinct lists of terms over labels of nodes that placed pods hold."""
        return self._holders.keys()

    def version(self, held: HeldTerms) -> int:
        """A number that no other list has, and this one only until a pod that holds it comes or goes."""
        return self._holders[held].version

    def known_about(self, pod: Pod, namespace_labels: Mapping[str, str]) -> About | None:
        """What `about` would return; None if that takes more than one step."""
        if not self._holders:
            return NOTHING
        steps = self.about(pod, namespace_labels)
        try:
            next(steps)
        except StopIteration as end:
            about: About = end.value
            return about
        return None

    def about(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Generator[None, None, About]:
        """Which lists of terms mean the pod, in steps. Not to be written to.

        Cost: one step for each term that may mean a pod with these labels, for the first pod of a class; for
        further ones one for each term that is held for the first time since.
        """
        question = self._question(pod, namespace_labels)
        known, end = self._known.get(question), self._changes.end
        if known is not None and known.position == end:
            return known.about
        weights, asked = self._left(pod, known)
        meaning: dict[HeldTerms, list[HeldTerm]] = {}
        for i, (term, lists) in enumerate(asked):
            if i % TERMS_A_STEP == TERMS_A_STEP - 1:
                yield
            if term.kind is TermKind.REQUIRED_ANTI_AFFINITY and all(held in meaning for held in lists):
                continue  # One of its terms is as good as all.
            if term.term.matches(pod, namespace_labels):
                for held in lists:
                    meaning.setdefault(held, []).append(term)
        for held, terms in meaning.items():
            weights.setdefault(held.topology_key, {})[held] = held.weight(terms)
        self._remember(question, _Known(end, weights))
        return weights

    def _left(self, pod: Pod, known: _Known | None) -> tuple[dict[str, Weights], Asked]:
        """What is known already, and which terms are to be asked, each with the lists that this is for."""
        changes = None if known is None else self._changes.since(known.position)
        if known is None or changes is None:
            # As a list: there may be others by the time of the last step.
            every = list(self._by_selector.candidates(pod.labels))
            return {}, ((term, self._lists.get(term, ())) for term in every)
        weights = {key: dict(of_key) for key, of_key in known.about.items()}
        came = _followed(weights, changes)
        return weights, ((term, (held,)) for held in came for term in held.times)

    def _question(self, pod: Pod, namespace_labels: Mapping[str, str]) -> "_Asking":
        """All that terms ask of a pod; labels of which there are many are hashed once."""
        known = self._namespaces.get(pod.namespace)
        if known is None or known.labels is not namespace_labels:
            self._namespaces.drop(pod.namespace)
            known = _NamespaceLabels(namespace_labels)
            self._namespaces.put(pod.namespace, known, LABEL_BYTES * len(namespace_labels))
        return _Asking(pod.template.derived(class_of), known)

    def _remember(self, question: "_Asking", known: _Known) -> None:
        self._known.drop(question)
        labels = len(question.pod_class.labels) + len(question.namespace.labels)
        size = LABEL_BYTES * labels + ENTRY_BYTES * sum(map(len, known.about.values()))
        self._known.put(question, known, size)

    def in_domains(self, weights: Mapping[HeldTerms, int], division: Division) -> tuple[Ints, Ints]:
        """How many pods in each domain hold one of these lists, and the sums of what they count.

        Shapes: both results int64 (width,), the caller's; 0 in place 0.
        Cost: O(width + pods on few nodes) and one column for each list that pods on many nodes hold.
        """
        width = division.known.size
        counts, sums = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
        rows: list[int] = []
        pods: list[int] = []
        weighed: list[int] = []
        for held, weight in weights.items():
            holders = self._holders[held].rows
            if len(holders) > MAX_ROWS_ADDED_UP:
                here = self._in_domains_of_many(held, division)
                counts += here
                sums += here * weight
                continue
            rows += holders
            pods += holders.values()
            weighed += [weight * count for count in holders.values()]
        if rows:
            domains = division.domain_of[rows]
            counts += np.bincount(domains, pods, width).astype(np.int64)
            sums += np.bincount(domains, weighed, width).astype(np.int64)
        counts[0] = sums[0] = 0
        return counts, sums

    def _in_domains_of_many(self, held: HeldTerms, division: Division) -> Ints:
        counts = self._columns.get(held)
        if counts is None:
            counts = Counts(self._capacity)
            counts.add_up(self._holders[held].rows)
            # That it is kept, and what its key takes there.
            self._columns.put(held, counts, max(counts.column.nbytes + held.size_bytes, LEAST_BYTES))
        return self._sums.of(counts, division)

    def on_rows(self, held: HeldTerms, n: int) -> Ints:
        """How many pods on each of the first n rows hold the list. Shapes: result int64 (n,)."""
        counts = Counts(self._capacity)
        counts.add_up(self._holders[held].rows)
        return counts.column[:n]

    def forget_sums(self) -> None:
        """Forget all sums: nodes may be in other domains now."""
        self._sums.forget()


def _followed(weights: dict[str, Weights], changes: Iterable[tuple[int, HeldTerms]]) -> Collection[HeldTerms]:
    """Take lists that are not held any more out of the weights; answers those that came."""
    came: dict[HeldTerms, None] = {}
    for sign, held in changes:
        if sign > 0:
            came[held] = None
        else:
            came.pop(held, None)
            weights.get(held.topology_key, {}).pop(held, None)
    return came
