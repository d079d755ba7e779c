"""Which pods a term means: those of an incoming pod's terms, and terms of placed pods that mean it."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.mirrors.listers import NO_LABELS, Listers
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps
from berth.snapshot.affinity_terms import HeldTerm, TermKind, held_terms_in_steps
from berth.snapshot.bounded_cache import BoundedCache, size_of
from berth.snapshot.placed.placed_pods import PodsLike
from berth.snapshot.placed.term_holders import About
from berth.snapshot.snapshot import Snapshot

MAX_BYTES = 16 << 20
PREFERRED = frozenset({TermKind.PREFERRED_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY})

encode = msgspec.json.Encoder().encode


class TermTargets(NamedTuple):
    """Pods that an incoming pod's term means, over the domains of a label."""

    like: PodsLike
    topology_key: str

    def means(self, pod: Pod) -> bool:
        """Whether the term means that pod."""
        return _means(self.like, pod)


def _means(like: PodsLike, pod: Pod) -> bool:
    inside = like.namespaces is None or pod.namespace in like.namespaces
    return inside and like.selector.matches(pod.labels)


class UnparsableTermError(ValueError):
    """A term of the incoming pod that upstream cannot parse."""


class OwnTerms(NamedTuple):
    """The terms of an incoming pod, equal ones together."""

    near: tuple[PodsLike, ...] = ()
    """What required affinity means: pods that all of its terms mean."""
    near_keys: Mapping[str, int] = {}
    """How many terms of required affinity have that topology key."""
    away: Mapping[TermTargets, int] = {}
    """How often the pod has a term of required anti-affinity."""
    preferred: Mapping[TermTargets, int] = {}
    """The sum of the weights of a preferred term; those of anti-affinity are negative."""

    def all_mean(self, pod: Pod) -> bool:
        """Whether that pod satisfies every required affinity term; False where there is none."""
        return bool(self.near) and all(_means(like, pod) for like in self.near)


NO_TERMS = OwnTerms()


def own_terms(pod: Pod, listers: Listers) -> Steps[OwnTerms]:
    """The pod's terms, with namespace selectors resolved.

    Raises: UnparsableTermError naming the list.
    """
    near: dict[PodsLike, None] = {}
    near_keys, away, preferred = Counter[str](), Counter[TermTargets](), Counter[TermTargets]()
    held = {}
    for kind in TermKind:
        held[kind] = yield from _parsed(pod, kind)
    for kind, terms in held.items():
        for each in terms:
            term = TermTargets(_meant(each, listers), each.term.topology_key)
            match kind:
                case TermKind.REQUIRED_AFFINITY:
                    near[term.like] = None
                    near_keys[term.topology_key] += 1
                case TermKind.REQUIRED_ANTI_AFFINITY:
                    away[term] += 1
                case TermKind.PREFERRED_AFFINITY:
                    preferred[term] += each.weight
                case _:
                    preferred[term] -= each.weight
            yield
    return OwnTerms(tuple(near), near_keys, away, preferred)


def _parsed(pod: Pod, kind: TermKind) -> Steps[tuple[HeldTerm, ...]]:
    try:
        terms = yield from held_terms_in_steps(pod, kind)
    except InvalidSelectorError as error:
        raise UnparsableTermError(f"parsing pod: {kind.value}: {error}") from error
    return terms


def _meant(held: HeldTerm, listers: Listers) -> PodsLike:
    """The pods that an incoming pod's term means.

    Upstream v1.36 to v1.38 take a namespace selector that matches no labels, such as NotIn, for every
    namespace (kubernetes/kubernetes#141526). A required term that does so keeps a pod from every node, so
    here only the empty selector means that; preferred terms, which choose between nodes, choose as upstream.
    """
    chosen, namespaces = held.term.namespace_selector, held.term.namespaces
    if chosen.empty or (held.kind in PREFERRED and chosen.matches(NO_LABELS)):
        return PodsLike(None, held.term.selector)
    if chosen.nothing:
        return PodsLike(namespaces, held.term.selector)
    more = (namespace.name for namespace in listers.namespaces if chosen.matches(namespace.labels))
    return PodsLike(namespaces.union(more), held.term.selector)


def has_terms(pod: Pod) -> bool:
    """Whether the pod says anything about other pods, be it an empty list."""
    affinity = pod.spec.affinity
    return affinity is not None and not (affinity.pod_affinity is None and affinity.pod_anti_affinity is None)


class OwnTermsReader:
    """Reads pods' own terms, once for all pods that are written alike, as those of one workload are."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._generation = 0
        self._known: BoundedCache[bytes, OwnTerms] = BoundedCache(MAX_BYTES)

    def read(self, pod: Pod) -> Steps[OwnTerms]:
        """The pod's terms, with namespace selectors resolved, in steps.

        Raises: UnparsableTermError naming the list.
        """
        affinity = pod.spec.affinity
        if affinity is None or not has_terms(pod):
            return NO_TERMS
        if self._generation != self._listers.namespaces.generation:
            self._known.clear()
            self._generation = self._listers.namespaces.generation
        written = encode((pod.namespace, affinity.pod_affinity, affinity.pod_anti_affinity))
        known = self._known.get(written)
        if known is None:
            known = yield from own_terms(pod, self._listers)
            size = size_of((known.near, [*known.near_keys], [*known.away], [*known.preferred]))
            self._known.put(written, known, len(written) + size)
        return known


class TermsAbout:
    """Finds the terms of placed pods that mean an incoming pod; their owners are charged for it."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers

    def known(self, pod: Pod, nodes: Snapshot) -> About | None:
        """What `find` would return; None if that takes more than one step."""
        labels = self._listers.namespace_labels(pod.namespace)
        return nodes.placed.terms.known_about(pod, labels)

    def blocking_keys(self, pod: Pod, nodes: Snapshot) -> frozenset[str]:
        """The topology keys over which required anti-affinity of placed pods may apply to the pod."""
        about = self.known(pod, nodes)
        if about is None:
            return frozenset(nodes.label_keys)
        kind = TermKind.REQUIRED_ANTI_AFFINITY
        return frozenset(key for key, lists in about.items() if any(held.kind is kind for held in lists))

    def find(self, pod: Pod, nodes: Snapshot, meter: CycleMeter) -> Steps[About]:
        """All terms, required and preferred, that placed pods hold and that mean the pod, in steps."""
        known = self.known(pod, nodes)
        if known is not None:
            return known
        terms, labels = nodes.placed.terms, self._listers.namespace_labels(pod.namespace)
        with meter.on_account_of(terms.terms_by_namespace):
            return (yield from terms.about(pod, labels))
