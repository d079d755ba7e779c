"""NodeAffinity: node selectors, required and preferred node affinity, and what the profile adds to them.

Source: pkg/scheduler/framework/plugins/nodeaffinity (Kubernetes v1.36).
"""

from collections.abc import Hashable
from typing import Any

import msgspec
import numpy as np

from berth.config.plugin_args import NodeAffinityArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.handle import Handle
from berth.framework.interface import (
    Depends,
    EnqueueExtensions,
    FilterPlugin,
    MaybeAwaitable,
    NormalizedBy,
    NormalizeScorePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reason,
    ReasonCodes,
    Scores,
)
from berth.framework.score import default_normalize
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unresolvable
from berth.objects.decode import decoder
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.node import Node
from berth.objects.node_selector import NodeAffinity as Affinity
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.objects.steps import Steps
from berth.plugins.in_tree import InTreePlugin, all_pass
from berth.plugins.queueing import expected, maybe, queue_if
from berth.plugins.required_affinity import NO_AFFINITY, RequiredAffinity
from berth.snapshot.columns.growing import Mask
from berth.snapshot.node_matching import (
    IN_A_STEP,
    NAME_FIELD,
    check_term,
    matching_nodes,
    matching_term,
    node_matches,
)
from berth.snapshot.snapshot import Snapshot

NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
read_affinity = decoder(Affinity)

HOSTNAME = "kubernetes.io/hostname"
CONFLICT = "pod affinity terms conflict"


class NodeAffinity(
    InTreePlugin, PreFilterPlugin, FilterPlugin, PreScorePlugin, NormalizeScorePlugin, EnqueueExtensions
):
    """Turn down nodes that the pod or the profile excludes; prefer those whose preferences weigh most."""

    depends = Depends.OBJECT
    reasons = (
        Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        Reason("node(s) didn't match Pod's node affinity/selector", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    )

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = read_affinity(msgspec.json.encode(args.added_affinity or NO_AFFINITY))
        self._enforced = added.required
        self._added_preferences = weighed(added.preferred)
        if self._enforced is None and not self._added_preferences:
            self.concerns = frozenset({PodFeature.NODE_AFFINITY})

    def asks_for_name(self, pod: Pod) -> bool:
        """Whether `filter` may say another thing of a node that is the same but for its name and hostname."""
        required = RequiredAffinity.of(pod)
        asked = (required.terms, self._enforced)
        return any(key == HOSTNAME for key, _ in required.labels) or any(map(_asks_for_name, asked))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Skip a pod that asks for nothing; narrow the choice where terms name nodes."""
        del state, nodes
        required = RequiredAffinity.of(pod)
        if required.terms is None and self._enforced is None and pod.spec.node_selector is None:
            return PreFilterResult(SKIP)
        names = named_nodes(required.terms)
        if names is not None and not names:
            return PreFilterResult(unresolvable(CONFLICT))
        return PreFilterResult(node_names=names)

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """Answer 1 where the profile's added affinity does not match, else 2 where the pod's does not."""
        required = RequiredAffinity.of(pod)
        if self._enforced is None and required.empty:
            return all_pass(len(nodes))
        return paced(state.meter, self.name, self._answered(required, nodes))

    def _answered(self, required: RequiredAffinity, nodes: Snapshot) -> Steps[ReasonCodes]:
        question = self.name, "required", self._enforced, required
        codes = yield from nodes.fact_in_steps(question, lambda whole: self._codes(required, whole))
        return codes[nodes.rows]

    def _codes(self, required: RequiredAffinity, nodes: Snapshot) -> Steps[ReasonCodes]:
        allowed = yield from required.in_steps(nodes)
        codes = np.where(allowed, np.uint8(0), np.uint8(2))
        if self._enforced is not None:
            codes[~(yield from matching_nodes(nodes, self._enforced))] = 1
        return codes

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Skip where there are no preferences; a preference that does not parse is an error."""
        del state, nodes, feasible
        preferred = affinity_of(pod).preferred
        if preferred is None and not self._added_preferences:
            return SKIP
        try:
            for wish in weighed(preferred):
                check_term(wish.preference)
        except InvalidSelectorError as error:
            return failed(error)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[Scores]:
        """Sum the weights of all preferences that hold, the profile's and the pod's."""
        wishes = self._added_preferences + weighed(affinity_of(pod).preferred)
        return paced(state.meter, self.name, self._weighed(wishes, nodes))

    def _weighed(self, wishes: tuple[PreferredSchedulingTerm, ...], nodes: Snapshot) -> Steps[Scores]:
        question = self.name, "preferred", wishes
        total = yield from nodes.fact_in_steps(question, lambda whole: weights(wishes, whole))
        return total[nodes.rows]

    def normalized_by(self, state: CycleState) -> NormalizedBy:
        """The lowest and the highest score."""
        del state
        return NormalizedBy.EXTREMES

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Scale so that the best node gets 100."""
        del state, pod
        return default_normalize(scores)

    def sign_pod(self, pod: Pod) -> Hashable:
        """The node selector and the whole node affinity."""
        required = RequiredAffinity.of(pod)
        return required, pod.spec.node_selector is None, affinity_of(pod).preferred

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes that come or change labels."""
        return [ClusterEventWithHint(NODE_EVENTS, self._after_node_change)]

    def _after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        before, node, required = maybe(Node, old), expected(Node, new), RequiredAffinity.of(pod)
        if self._enforced is not None and not _matches_quietly(node, self._enforced):
            return QueueingHint.SKIP
        if not required.matches(node):
            return QueueingHint.SKIP
        # Upstream looks at the pod's own affinity only, so a change that only the added one sees is missed.
        return queue_if(before is None or not required.matches(before))


def affinity_of(pod: Pod) -> Affinity:
    """The pod's node affinity, one that asks for nothing where it has none."""
    affinity = pod.spec.affinity
    return affinity.node_affinity or NO_AFFINITY if affinity else NO_AFFINITY


def weighed(preferred: tuple[PreferredSchedulingTerm, ...] | None) -> tuple[PreferredSchedulingTerm, ...]:
    """The preferences that can count: with a weight, and asking for something."""
    return tuple(wish for wish in preferred or () if wish.weight and not wish.preference.empty)


def weights(wishes: tuple[PreferredSchedulingTerm, ...], nodes: Snapshot) -> Steps[Scores]:
    """The sum of the weights that hold on each node, in steps of some wishes each.

    Shapes: result int64 (n,).
    """
    total = np.zeros(len(nodes), dtype=np.int64)
    for number, wish in enumerate(wishes, 1):
        total += wish.weight * (yield from matching_term(nodes, wish.preference))
        if number % IN_A_STEP == 0:
            yield
    return total


def named_nodes(selector: NodeSelector | None) -> frozenset[str] | None:
    """The only nodes that the terms allow by name; None where some term allows others."""
    if selector is None or not selector.node_selector_terms:
        return None
    names: set[str] = set()
    for term in selector.node_selector_terms:
        wanted = _names_in_term(term)
        if wanted is None:
            return None
        names |= wanted
    return frozenset(names)


def _asks_for_name(selector: NodeSelector | None) -> bool:
    terms = selector.node_selector_terms if selector else ()
    return any(term.match_fields or any(r.key == HOSTNAME for r in term.match_expressions) for term in terms)


def _names_in_term(term: NodeSelectorTerm) -> set[str] | None:
    lists = [set(r.values) for r in term.match_fields if r.key == NAME_FIELD and r.operator == "In"]
    return set.intersection(*lists) if lists else None


def _matches_quietly(node: Node, selector: NodeSelector) -> bool:
    try:
        return node_matches(node, selector)
    except InvalidSelectorError:
        return False
