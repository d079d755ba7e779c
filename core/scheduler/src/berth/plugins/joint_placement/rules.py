"""What the members of a group require of each other, by domain: kept apart, kept near, spread evenly.

These are the rules that a plan keeps by itself, so the engine is asked about members without them (`alone`).
Towards pods that are placed already, anti-affinity stays with the engine.
"""

from collections.abc import Iterator, Sequence

import msgspec

from berth.config.plugin_args import PodTopologySpreadArgs
from berth.framework.handle import Handle
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import Affinity, PodSpec
from berth.objects.steps import at_once
from berth.plugins.inter_pod_affinity.terms import OwnTerms, OwnTermsReader
from berth.plugins.pod_topology_spread.constraints import (
    Action,
    Defaults,
    Inclusion,
    SpreadConstraint,
)
from berth.plugins.required_affinity import RequiredAffinity
from berth.plugins.tolerance import Tolerance
from berth.plugins.topology import Domains, count_in, count_in_each, no_domains, topology
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.placed.placed_pods import PodQuery
from berth.snapshot.snapshot import Snapshot

ANY_SKEW = 2**31 - 1

encode = msgspec.json.Encoder(order="deterministic").encode


class Apart(msgspec.Struct, frozen=True):
    """No pod of the `avoided` kinds is in a domain that has a pod of the kind.

    Shapes: place_of int64 (n,), each node's domain, 0 for nodes without the label.
    """

    kind: int
    avoided: frozenset[int]
    place_of: Ints


class Near(msgspec.Struct, frozen=True):
    """A pod of the kind goes where pods of the `sought` kinds are.

    `starts` says that the first one may go to any domain, because the kind seeks itself and none is there.
    Shapes: place_of int64 (n,); met bool (v + 1,), the domains that have such pods already.
    """

    kind: int
    sought: frozenset[int]
    starts: bool
    place_of: Ints
    met: Mask


class Even(msgspec.Struct, frozen=True):
    """Where a pod of the kind is, its domain has at most `max_skew` pods more than the emptiest one.

    Shapes: place_of int64 (n,), 0 also for nodes that do not count; pods int64 (v + 1,), placed already;
        known bool (v + 1,), the domains that there are.
    """

    kind: int
    counted: frozenset[int]
    max_skew: int
    min_domains: int
    place_of: Ints
    pods: Domains
    known: Mask


Rule = Apart | Near | Even


class Demands(msgspec.Struct, frozen=True):
    """What one pod requires of others."""

    terms: OwnTerms
    constraints: tuple[SpreadConstraint, ...]

    def label_keys(self) -> Iterator[str]:
        """The pod labels that these read."""
        likes = (*self.terms.near, *(term.like for term in self.terms.away))
        selectors = (*(like.selector for like in likes), *(c.selector for c in self.constraints))
        for selector in selectors:
            for requirement in selector.requirements:
                yield requirement.key


class RuleReader:
    """Reads the rules between members, and says which members are alike."""

    def __init__(self, handle: Handle) -> None:
        self._terms = OwnTermsReader(handle.listers)
        self._constraints = Defaults(PodTopologySpreadArgs(), handle)
        self._tolerance = Tolerance(handle)
        self._empty_matches_all = handle.rules.empty_selectors_match_all

    def demands(self, pod: Pod) -> Demands:
        """What the pod requires of others.

        Raises: ValueError where a selector does not parse.
        """
        return Demands(at_once(self._terms.read(pod)), self._constraints.effective(pod, Action.HARD))

    def kinds(self, pods: Sequence[Pod]) -> list[list[Pod]]:
        """The pods by what they ask for; labels that no member's rule reads make no difference.

        Raises: ValueError where a selector does not parse.
        """
        templates = {id(pod.template): pod for pod in pods}
        keys = {key for pod in templates.values() for key in self.demands(pod).label_keys()}
        kind_of = {each: _kind(pod, keys) for each, pod in templates.items()}
        kinds: dict[bytes, list[Pod]] = {}
        for pod in pods:
            kinds.setdefault(kind_of[id(pod.template)], []).append(pod)
        return list(kinds.values())

    def rules(self, firsts: Sequence[Pod], nodes: Snapshot) -> Iterator[Rule]:
        """The rules between kinds, given the first pod of each.

        Raises: ValueError where a selector does not parse.
        """
        for kind, pod in enumerate(firsts):
            demands = self.demands(pod)
            yield from _apart(kind, demands.terms, firsts, nodes)
            yield from _near(kind, demands.terms, firsts, nodes)
            yield from self._even(kind, demands.constraints, firsts, nodes)

    def _even(
        self, kind: int, constraints: Sequence[SpreadConstraint], firsts: Sequence[Pod], nodes: Snapshot
    ) -> Iterator[Even]:
        pod = firsts[kind]
        keys = frozenset(constraint.topology_key for constraint in constraints)
        inclusion = Inclusion(pod, RequiredAffinity.of(pod), self._tolerance, keys, self._empty_matches_all)
        for constraint in constraints:
            key, selector = constraint.topology_key, constraint.selector
            division = inclusion.division(nodes, constraint)
            question = inclusion.question(constraint)
            yield Even(
                kind,
                frozenset(
                    i
                    for i, other in enumerate(firsts)
                    if other.namespace == pod.namespace and selector.matches(other.labels)
                ),
                constraint.max_skew,
                constraint.min_domains,
                division.domain_of,
                no_domains(nodes, key) if question is None else count_in(nodes, key, question, division),
                division.known,
            )


def _kind(pod: Pod, keys: set[str]) -> bytes:
    labels = sorted((key, value) for key, value in pod.labels.items() if key in keys)
    return encode((pod.namespace, labels, pod.spec))


def _apart(kind: int, terms: OwnTerms, firsts: Sequence[Pod], nodes: Snapshot) -> Iterator[Apart]:
    for term in terms.away:
        avoided = frozenset(i for i, pod in enumerate(firsts) if term.means(pod))
        if avoided:
            yield Apart(kind, avoided, topology(nodes, term.topology_key).places)


def _near(kind: int, terms: OwnTerms, firsts: Sequence[Pod], nodes: Snapshot) -> Iterator[Near]:
    if not terms.near:
        return
    sought = frozenset(i for i, pod in enumerate(firsts) if terms.all_mean(pod))
    counts = count_in_each(nodes, terms.near_keys, PodQuery(terms.near))
    by_key = {key: pods > 0 for key, pods in counts.items()}
    starts = kind in sought and not any(met.any() for met in by_key.values())
    for key, met in by_key.items():
        yield Near(kind, sought, starts, topology(nodes, key).places, met)


def alone(pod: Pod) -> Pod:
    """The pod without affinity to other pods, and with constraints that no skew violates."""
    spec = pod.spec
    spread = tuple(
        msgspec.structs.replace(each, max_skew=ANY_SKEW, min_domains=None)
        for each in spec.topology_spread_constraints
    )
    spec = msgspec.structs.replace(
        spec, affinity=_without_required_affinity(spec.affinity), topology_spread_constraints=spread
    )
    return pod.with_spec(spec)


def _without_required_affinity(affinity: Affinity | None) -> Affinity | None:
    if affinity is None or affinity.pod_affinity is None:
        return affinity
    preferred = msgspec.structs.replace(
        affinity.pod_affinity, required_during_scheduling_ignored_during_execution=()
    )
    return msgspec.structs.replace(affinity, pod_affinity=preferred)


def room_of(pod: Pod, name: str) -> Pod:
    """A pod that takes the same room, and that no other pod's rule means."""
    metadata = msgspec.structs.replace(
        pod.metadata, name=name, uid=name, labels={}, owner_references=(), namespace=pod.namespace
    )
    spec: PodSpec = msgspec.structs.replace(
        pod.spec, affinity=None, topology_spread_constraints=(), scheduling_group=None
    )
    return Pod.of(metadata, spec)
