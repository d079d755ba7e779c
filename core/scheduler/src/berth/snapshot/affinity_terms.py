"""Pod affinity terms in the form in which they are compared and counted.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go AffinityTerm (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from berth.objects.label_selector import InvalidSelectorError, Selector, compile_selector
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.steps import Steps, at_once
from berth.snapshot.bounded_cache import size_of


class AffinityTerm(NamedTuple):
    """Pods in these namespaces, or in namespaces the selector picks, that the label selector matches."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Whether the pod, in a namespace with those labels, is meant."""
        in_namespace = pod.namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return in_namespace and self.selector.matches(pod.labels)


class TermKind(StrEnum):
    """Which list of the pod a term stands in."""

    REQUIRED_AFFINITY = "requiredAffinityTerms"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinityTerms"
    PREFERRED_AFFINITY = "preferredAffinityTerms"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinityTerms"


class HeldTerm(NamedTuple):
    """A term as a pod holds it; `weight` is 0 for required terms."""

    kind: TermKind
    term: AffinityTerm
    weight: int = 0


def affinity_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """The term of a pod in that namespace, ready to match.

    Raises: InvalidSelectorError where a selector does not parse.
    """
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        frozenset((namespace,) if own else term.namespaces),
        compile_selector(term.namespace_selector),
        compile_selector(term.label_selector),
        term.topology_key,
    )


class HeldTerms:
    """The terms of one list of a pod with one topology key: what counts of them for others counts together.

    `times` says how often the pod has each term. Pods of one template share the object; it is hashed once.
    """

    __slots__ = ("_hash", "_size_bytes", "kind", "namespace", "times", "topology_key")

    def __init__(self, namespace: str, times: Mapping[HeldTerm, int]) -> None:
        first = next(iter(times))
        self.namespace = namespace
        self.kind = first.kind
        self.topology_key = first.term.topology_key
        self.times = times
        self._hash = hash((namespace, frozenset(times.items())))
        self._size_bytes: int | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, HeldTerms)
            and self._hash == other._hash
            and self.namespace == other.namespace
            and self.times == other.times
        )

    def __hash__(self) -> int:
        return self._hash

    @property
    def size_bytes(self) -> int:
        """About how much memory the terms take, worked out when first asked for."""
        if self._size_bytes is None:
            self._size_bytes = size_of([*self.times])
        return self._size_bytes

    def weight(self, meaning: Iterable[HeldTerm]) -> int:
        """How much a pod that has these counts for one that some of them mean.

        Anti-affinity counts once; of required affinity each term counts 1, of preferences its weight.
        """
        match self.kind:
            case TermKind.REQUIRED_ANTI_AFFINITY:
                return 1
            case TermKind.REQUIRED_AFFINITY:
                return sum(self.times[held] for held in meaning)
            case _:
                return sum(held.weight * self.times[held] for held in meaning)

    def __repr__(self) -> str:
        return f"HeldTerms({self.namespace}, {self.kind}, {self.topology_key}, {len(self.times)})"


Lists = Mapping[TermKind, tuple[HeldTerm, ...] | InvalidSelectorError]


def held_terms(pod: Pod, kind: TermKind) -> tuple[HeldTerm, ...]:
    """The pod's terms of one kind, read once for all pods of its template.

    Raises: InvalidSelectorError where one does not parse.
    """
    return at_once(held_terms_in_steps(pod, kind))


def held_terms_in_steps(pod: Pod, kind: TermKind) -> Steps[tuple[HeldTerm, ...]]:
    """The same, read in steps."""
    found = (yield from pod.template.derived_in_steps(_lists))[kind]
    if isinstance(found, InvalidSelectorError):
        raise InvalidSelectorError(*found.args)
    return found


def placed_terms(pod: Pod) -> tuple[HeldTerms, ...]:
    """All terms of a placed pod; should a list not parse, all of the pod's lists count as empty."""
    lists = at_once(pod.template.derived_in_steps(_lists))
    by_key: dict[tuple[TermKind, str], Counter[HeldTerm]] = {}
    for kind, found in lists.items():
        if isinstance(found, InvalidSelectorError):
            return ()
        for held in found:
            by_key.setdefault((kind, held.term.topology_key), Counter())[held] += 1
    return tuple(HeldTerms(pod.namespace, times) for times in by_key.values())


def _lists(template: PodTemplate) -> Steps[Lists]:
    if template.spec.affinity is None:
        return NO_LISTS
    lists = {}
    for kind in TermKind:
        lists[kind] = yield from _list(template, kind)
    return lists


def _list(template: PodTemplate, kind: TermKind) -> Steps[tuple[HeldTerm, ...] | InvalidSelectorError]:
    held = []
    try:
        for term, weight in _raw_terms(template.spec.affinity, kind):
            held.append(HeldTerm(kind, affinity_term(term, template.namespace), weight))
            yield
    except InvalidSelectorError as error:
        return error
    return tuple(held)


NO_LISTS: Lists = dict.fromkeys(TermKind, ())


def _raw_terms(affinity: Affinity | None, kind: TermKind) -> Iterable[tuple[PodAffinityTerm, int]]:
    if affinity is None:
        return ()
    away = kind in (TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY)
    side: PodAffinity | None = affinity.pod_anti_affinity if away else affinity.pod_affinity
    if side is None:
        return ()
    if kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY):
        return ((term, 0) for term in side.required)
    return (_weighted(term) for term in side.preferred)


def _weighted(term: WeightedPodAffinityTerm) -> tuple[PodAffinityTerm, int]:
    return term.pod_affinity_term, term.weight
