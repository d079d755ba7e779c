"""Which pods a term means: those of an incoming pod's terms, and terms of placed pods that mean it."""

import sys
from collections.abc import Hashable, Mapping
from typing import NamedTuple

import msgspec

from berth.framework.listers import Listers
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.pod import Pod
from berth.snapshot.affinity_terms import AffinityTerm, HeldTerm, TermKind, held_terms
from berth.snapshot.placed_pods import PlacedPods, PodsLike
from berth.snapshot.recent import Recent, size_of
from berth.snapshot.snapshot import Snapshot

NO_LABELS: Mapping[str, str] = {}
MOST_BYTES = 16 << 20

encode = msgspec.json.Encoder().encode


class Wanted(NamedTuple):
    """A term of an incoming pod: the pods that it means, over the domains of a label."""

    like: PodsLike
    topology_key: str
    weight: int = 0

    def means(self, pod: Pod) -> bool:
        """Whether the term means that pod."""
        inside = self.like.namespaces is None or pod.namespace in self.like.namespaces
        return inside and self.like.selector.matches(pod.labels)


class UnparsableTermError(ValueError):
    """A term of the incoming pod that upstream cannot parse."""


class OwnTerms(NamedTuple):
    """The terms of an incoming pod."""

    affinity: tuple[Wanted, ...] = ()
    anti_affinity: tuple[Wanted, ...] = ()
    preferred: tuple[Wanted, ...] = ()
    """Weights of anti-affinity are negative."""

    def all_mean(self, pod: Pod) -> bool:
        """Whether that pod satisfies every required affinity term; False where there is none."""
        return bool(self.affinity) and all(term.means(pod) for term in self.affinity)


NO_TERMS = OwnTerms()


def own_terms(pod: Pod, listers: Listers) -> OwnTerms:
    """The pod's terms, with namespace selectors resolved.

    Raises: UnparsableTermError naming the list.
    """
    held = {kind: _parsed(pod, kind) for kind in TermKind}
    return OwnTerms(
        tuple(_wanted(h, listers) for h in held[TermKind.REQUIRED_AFFINITY]),
        tuple(_wanted(h, listers) for h in held[TermKind.REQUIRED_ANTI_AFFINITY]),
        (
            *(_wanted(h, listers) for h in held[TermKind.PREFERRED_AFFINITY]),
            *(_wanted(h, listers, -1) for h in held[TermKind.PREFERRED_ANTI_AFFINITY]),
        ),
    )


def _parsed(pod: Pod, kind: TermKind) -> tuple[HeldTerm, ...]:
    try:
        return held_terms(pod, kind)
    except InvalidSelectorError as error:
        raise UnparsableTermError(f"parsing pod: {kind.value}: {error}") from error


def _wanted(held: HeldTerm, listers: Listers, sign: int = 1) -> Wanted:
    return Wanted(meant(held.term, listers), held.term.topology_key, sign * held.weight)


def meant(term: AffinityTerm, listers: Listers) -> PodsLike:
    """The pods that an incoming pod's term means.

    Placed pods are matched without their namespace's labels after the selector was resolved, so that a
    selector which also matches no labels at all means every namespace: upstream's behaviour.
    """
    chosen = term.namespace_selector
    if chosen.matches(NO_LABELS):
        return PodsLike(None, term.selector)
    if chosen.nothing:
        return PodsLike(term.namespaces, term.selector)
    more = (namespace.name for namespace in listers.namespaces if chosen.matches(namespace.labels))
    return PodsLike(term.namespaces.union(more), term.selector)


def has_terms(pod: Pod) -> bool:
    """Whether the pod says anything about other pods, be it an empty list."""
    affinity = pod.spec.affinity
    return affinity is not None and not (affinity.pod_affinity is None and affinity.pod_anti_affinity is None)


class OwnTermsReader:
    """Reads pods' own terms, once for all pods that are written alike, as those of one workload are."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._generation = 0
        self._known: Recent[bytes, OwnTerms] = Recent(MOST_BYTES)

    def read(self, pod: Pod) -> OwnTerms:
        """The pod's terms, with namespace selectors resolved.

        Raises: UnparsableTermError naming the list.
        """
        affinity = pod.spec.affinity
        if affinity is None or not has_terms(pod):
            return NO_TERMS
        if self._generation != self._listers.namespaces.generation:
            self._known.clear()
            self._generation = self._listers.namespaces.generation
        written = encode((pod.namespace, affinity.pod_affinity, affinity.pod_anti_affinity))
        known = self._known[written]
        if known is None:
            known = own_terms(pod, self._listers)
            self._known.put(written, known, len(written) + size_of(known))
        return known


class TermsAbout:
    """Finds the terms of placed pods that mean an incoming pod.

    Pods of one class ask alike, so answers are remembered for as long as the same terms are held.
    """

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._placed: PlacedPods | None = None
        self._generation = 0
        self._known: Recent[Hashable, tuple[HeldTerm, ...]] = Recent(MOST_BYTES)

    def find(self, pod: Pod, nodes: Snapshot) -> tuple[HeldTerm, ...]:
        """All terms, required and preferred, that placed pods hold and that mean the pod."""
        if not nodes.placed.held():
            return ()
        self._forget_outdated(nodes.placed)
        namespace_labels = self._listers.namespace_labels(pod.namespace)
        question = (
            pod.namespace,
            frozenset(pod.labels.items()),
            frozenset(namespace_labels.items()),
        )
        known = self._known[question]
        if known is None:
            known = tuple(
                held
                for held in nodes.placed.held_about(pod.labels)
                if held.term.matches(pod, namespace_labels)
            )
            self._known.put(question, known, size_of(question) + sys.getsizeof(known))
        return known

    def _forget_outdated(self, placed: PlacedPods) -> None:
        if placed is not self._placed or placed.terms_generation != self._generation:
            self._known.clear()
            self._placed, self._generation = placed, placed.terms_generation
