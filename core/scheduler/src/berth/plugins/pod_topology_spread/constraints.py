"""Topology spread constraints as they are counted: a pod's own, or else the profile's defaults."""

from collections.abc import Callable, Hashable, Sequence
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np

from berth.config.plugin_args import PodTopologySpreadArgs
from berth.framework.handle import Handle
from berth.objects.decode import decoder
from berth.objects.label_selector import (
    NOTHING,
    InvalidSelectorError,
    Requirement,
    Selector,
    compile_selector,
)
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import TopologySpreadConstraint
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.steps import Steps, at_once
from berth.plugins.controller_selector import ControllerSelectors
from berth.plugins.required_affinity import RequiredAffinity
from berth.plugins.tolerance import Tolerance
from berth.plugins.topology import division, with_all
from berth.snapshot.columns.growing import Mask
from berth.snapshot.placed.placed_pods import PodQuery, PodsLike
from berth.snapshot.placed.pod_counts import Division
from berth.snapshot.snapshot import Snapshot

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
HONOR = "Honor"


class Action(StrEnum):
    """What a constraint does where it cannot be met."""

    HARD = "DoNotSchedule"
    SOFT = "ScheduleAnyway"


SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=Action.SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=Action.SOFT),
)

encode = msgspec.json.Encoder().encode
read_constraints = decoder(tuple[TopologySpreadConstraint, ...])


class SpreadConstraint(NamedTuple):
    """One constraint, ready to count."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


class Defaults:
    """The constraints of pods that have none of their own."""

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self.listed = args.defaulting_type == "List"
        written = read_constraints(msgspec.json.encode(args.default_constraints))
        self.constraints = written if self.listed else SYSTEM_DEFAULTS
        self._selectors = ControllerSelectors(handle.listers)

    def effective(self, pod: Pod, action: Action) -> tuple[SpreadConstraint, ...]:
        """The constraints of that kind that hold for the pod.

        Raises: InvalidSelectorError where a selector does not parse, or is too large.
        """
        return at_once(self.in_steps(pod, action))

    def in_steps(self, pod: Pod, action: Action) -> Steps[tuple[SpreadConstraint, ...]]:
        """The same, found in steps."""
        if pod.spec.topology_spread_constraints:
            own = yield from _own(pod, action)
            return own
        wanted = [c for c in self.constraints if c.when_unsatisfiable == action]
        if not wanted:
            return ()
        selector = self._selectors.of(pod)
        return () if selector.empty else tuple(prepared(c, selector) for c in wanted)

    @property
    def generation(self) -> int:
        """Grows when a service or a controller changes, whose selectors the constraints may be given."""
        return self._selectors.generation

    def none_for(self, pod: Pod) -> bool:
        """Whether no constraint holds for the pod."""
        if pod.spec.topology_spread_constraints:
            return False
        try:
            return not self.constraints or self._selectors.of(pod).empty
        except InvalidSelectorError:
            return False


def _own(pod: Pod, action: Action) -> Steps[tuple[SpreadConstraint, ...]]:
    """The pod's own, prepared once for all pods of its template. Raises: InvalidSelectorError."""
    found = yield from pod.template.derived_in_steps(_HARD if action is Action.HARD else _SOFT)
    if isinstance(found, InvalidSelectorError):
        raise InvalidSelectorError(*found.args)
    return found


def _prepared(
    template: PodTemplate, action: Action
) -> Steps[tuple[SpreadConstraint, ...] | InvalidSelectorError]:
    made = []
    try:
        for constraint in template.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable == action:
                made.append(prepared(constraint, _selector(constraint, template)))
                yield
    except InvalidSelectorError as error:
        return error
    return tuple(made)


_HARD, _SOFT = partial(_prepared, action=Action.HARD), partial(_prepared, action=Action.SOFT)


def prepared(constraint: TopologySpreadConstraint, selector: Selector) -> SpreadConstraint:
    """The constraint with its selector and what is left out filled in."""
    return SpreadConstraint(
        constraint.max_skew,
        constraint.topology_key,
        selector,
        1 if constraint.min_domains is None else constraint.min_domains,
        constraint.node_affinity_policy in (None, HONOR),
        constraint.node_taints_policy == HONOR,
    )


def _selector(constraint: TopologySpreadConstraint, template: PodTemplate) -> Selector:
    selector, labels = compile_selector(constraint.label_selector), template.labels
    keys = [key for key in constraint.match_label_keys if key in labels]
    if selector == NOTHING or not keys:
        return selector
    return selector.and_also(tuple(Requirement(key, "In", (labels[key],)) for key in keys))


class Inclusion(msgspec.Struct):
    """Which nodes count for a pod's constraints, of which it may have many: each policy is asked once.

    `keys` are labels that nodes need to have, those that the constraints spread over.
    """

    pod: Pod
    required: RequiredAffinity
    tolerance: Tolerance
    keys: frozenset[str] = frozenset()
    empty_matches_all: bool = False
    """Whether a selector that asks nothing counts all pods of the namespace."""
    _asked: tuple[Snapshot, int, dict[str, Mask]] | None = None
    _names: tuple[bytes, bytes, bytes] | None = None

    def possible(self, nodes: Snapshot) -> bool:
        """Whether some node has all the labels: only then is there a domain in which pods are counted."""
        return len(self.keys) <= len(nodes.label_keys) and bool(self.with_keys(nodes.whole).any())

    def with_keys(self, nodes: Snapshot) -> Mask:
        """Which nodes have all the labels. Shapes: result bool (n,)."""
        return self._once("keys", nodes, lambda whole: with_all(whole, self.keys))

    def look(self, nodes: Snapshot) -> Steps[None]:
        """Work out in steps where the pod's node affinity holds, which may have any number of terms."""
        if not self.required.empty:
            allowed = yield from nodes.fact_in_steps(self.required, self.required.in_steps)
            self._once("affinity", nodes, lambda _: allowed)

    def question(self, constraint: SpreadConstraint) -> PodQuery | None:
        """The question for the pods that the constraint counts; None where it counts none."""
        return pods_counted(self.pod, constraint.selector, empty_matches_all=self.empty_matches_all)

    def mask(self, nodes: Snapshot, constraint: SpreadConstraint) -> Mask | None:
        """The nodes that the constraint's policies let count; None for all.

        Shapes: result bool (n,).
        """
        masks = []
        if constraint.honors_affinity and not self.required.empty:
            masks.append(self._once("affinity", nodes, self.required.answer))
        if constraint.honors_taints:
            masks.append(self._once("taints", nodes, self._tolerated))
        return np.logical_and.reduce(masks) if masks else None

    def division(self, nodes: Snapshot, constraint: SpreadConstraint) -> Division:
        """The constraint's domains, of the nodes that have all labels and that its policies let count."""

        def counting(whole: Snapshot) -> Mask:
            with_keys, included = self.with_keys(whole), self.mask(whole, constraint)
            return with_keys if included is None else with_keys & included

        return division(nodes, constraint.topology_key, self.name(constraint), counting)

    def name(self, constraint: SpreadConstraint) -> Hashable:
        """All that the nodes of the constraint's domains depend on besides the nodes themselves.

        As digests: each of a pod's constraints asks with all of its keys, terms and tolerations.
        """
        if self._names is None:
            tolerations = self.pod.spec.tolerations, self.tolerance.comparisons
            self._names = _digest(sorted(self.keys)), _digest(self.required), _digest(tolerations)
        keys, required, tolerated = self._names
        return (
            keys,
            required if constraint.honors_affinity else None,
            tolerated if constraint.honors_taints else None,
        )

    def _tolerated(self, nodes: Snapshot) -> Mask:
        return ~self.tolerance.kept_away(self.pod.spec.tolerations, nodes)

    def _once(self, policy: str, nodes: Snapshot, ask: Callable[[Snapshot], Mask]) -> Mask:
        whole = nodes.whole
        if self._asked is None or self._asked[0] is not whole or self._asked[1] != whole.static_generation:
            self._asked = whole, whole.static_generation, {}
        known = self._asked[2]
        if policy not in known:
            known[policy] = ask(whole)
        return known[policy][nodes.rows]


def _digest(value: Any) -> bytes:
    return blake2b(encode(value), digest_size=32).digest()


def pods_counted(pod: Pod, selector: Selector, *, empty_matches_all: bool) -> PodQuery | None:
    """The question for pods beside this one that the selector means; terminating ones do not count.

    Up to Kubernetes v1.37 a selector that asks nothing counts none, although the pod itself is matched.
    """
    if selector.empty and not empty_matches_all:
        return None
    return PodQuery((PodsLike(frozenset((pod.namespace,)), selector),), terminating=False)


def topology_keys(constraints: Sequence[SpreadConstraint]) -> frozenset[str]:
    """The labels that the constraints spread over."""
    return frozenset(constraint.topology_key for constraint in constraints)
