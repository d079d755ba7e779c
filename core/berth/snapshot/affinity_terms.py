"""Pod affinity terms in the form in which they are compared and counted.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go AffinityTerm (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from berth.objects.label_selector import InvalidSelectorError, Selector, compile_selector
from berth.objects.pod import Pod
from berth.objects.pod_spec import PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm


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


def affinity_term(term: PodAffinityTerm, pod: Pod) -> AffinityTerm:
    """The term of that pod, ready to match.

    Raises: InvalidSelectorError where a selector does not parse.
    """
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        frozenset((pod.namespace,) if own else term.namespaces),
        compile_selector(term.namespace_selector),
        compile_selector(term.label_selector),
        term.topology_key,
    )


def held_terms(pod: Pod, kind: TermKind) -> tuple[HeldTerm, ...]:
    """The pod's terms of one kind.

    Raises: InvalidSelectorError where one does not parse.
    """
    return tuple(HeldTerm(kind, affinity_term(t, pod), weight) for t, weight in _raw_terms(pod, kind))


def placed_terms(pod: Pod) -> tuple[HeldTerm, ...]:
    """All terms of a placed pod; should a list not parse, all of the pod's lists count as empty."""
    if pod.spec.affinity is None:
        return ()
    try:
        return tuple(held for kind in TermKind for held in held_terms(pod, kind))
    except InvalidSelectorError:
        return ()


def _raw_terms(pod: Pod, kind: TermKind) -> Iterable[tuple[PodAffinityTerm, int]]:
    affinity = pod.spec.affinity
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
