"""What may help a pod that affinity kept from being scheduled.

Each hint answers QUEUE for every change after which the filter may pass a node that it rejected before.
Upstream v1.36 misses several of these (kubernetes/kubernetes#139161, #141354, #141953);
docs/upstream-faults.md lists them.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go (Kubernetes v1.36).
"""

from collections.abc import Iterable
from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.handle import Handle
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.workloads import Namespace
from berth.plugins.inter_pod_affinity.terms import TermsAbout
from berth.plugins.queueing import expected, is_own, maybe, queue_if, unplaced
from berth.snapshot.affinity_terms import AffinityTerm, TermKind, held_terms

POD_EVENTS = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
NODE_DELETED = ClusterEvent(EventResource.NODE, ActionType.DELETE)
NAMESPACE_EVENTS = ClusterEvent(
    EventResource.NAMESPACE, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE
)


class AffinityHints:
    """The queueing hints of InterPodAffinity.

    `handle` gives the labels of namespaces and the snapshot of the latest cycle: what blocked a pod in its
    latest attempt is in it, or its departure was an event.
    """

    def __init__(self, handle: Handle, terms_about: TermsAbout) -> None:
        self._handle = handle
        self._terms_about = terms_about

    def registrations(self) -> list[ClusterEventWithHint]:
        """The events with their hints."""
        return [
            ClusterEventWithHint(POD_EVENTS, self.after_pod_change),
            ClusterEventWithHint(NODE_EVENTS, self.after_node_change),
            ClusterEventWithHint(NODE_DELETED, self.after_node_change),
            ClusterEventWithHint(NAMESPACE_EVENTS, self.after_namespace_change),
        ]

    def after_pod_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where a pod comes that affinity needs, or a pod goes that was in the way.

        A pod that satisfies its own affinity may start a domain once no other pod satisfies it, so the end
        of the last match counts as well.
        """
        before, after = maybe(Pod, old), maybe(Pod, new)
        if before is not None and after is not None and is_own(pod, after):
            return QueueingHint.QUEUE
        if any(other is not None and unplaced(other) for other in (before, after)):
            return QueueingHint.SKIP
        affinity = _terms(pod, TermKind.REQUIRED_AFFINITY)
        was_near, is_near = self._means_by_all(affinity, before), self._means_by_all(affinity, after)
        if was_near != is_near and (is_near or self._means_by_all(affinity, pod)):
            return QueueingHint.QUEUE
        return queue_if(self._stops_blocking(pod, before, after))

    def _stops_blocking(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        """Whether an anti-affinity term of either side applied before and no longer does."""
        if before is None:
            return False
        own = _terms(pod, TermKind.REQUIRED_ANTI_AFFINITY)
        if any(self._means(term, before) and not self._means(term, after) for term in own):
            return True
        held = _terms(before, TermKind.REQUIRED_ANTI_AFFINITY) if after is None else ()
        return any(self._means(term, pod) for term in held)

    def after_node_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where a node joins a domain that affinity needs, or leaves one that anti-affinity avoids.

        A node that goes takes its pods along: these may have blocked the rest of a domain, or been the only
        ones that satisfy the affinity of a pod that may start a domain itself.
        """
        before, after = maybe(Node, old), maybe(Node, new)
        affinity = _terms(pod, TermKind.REQUIRED_AFFINITY)
        near, away = _keys(affinity), self._avoided_keys(pod)
        if after is None:
            return queue_if(away or self._means_by_all(affinity, pod))
        if before is None:
            return queue_if(away or any(key in after.labels for key in near))
        entered = any(key in after.labels and _moved(before, after, key) for key in near)
        return queue_if(entered or any(key in before.labels and _moved(before, after, key) for key in away))

    def _avoided_keys(self, pod: Pod) -> frozenset[str]:
        """The topology keys of the anti-affinity between the pod and placed pods, of either side."""
        own = _keys(_terms(pod, TermKind.REQUIRED_ANTI_AFFINITY))
        return own | self._terms_about.blocking_keys(pod, self._handle.snapshot)

    def after_namespace_change(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """QUEUE where other labels of a namespace change which pods a required term means."""
        before, after = maybe(Namespace, old), maybe(Namespace, new)
        changed = expected(Namespace, after or before)
        was, now = (side.labels if side is not None else {} for side in (before, after))
        if before is not None and after is not None and was == now:
            return QueueingHint.SKIP
        if changed.name == pod.namespace:
            return QueueingHint.QUEUE
        kinds = (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY)
        selectors = (term.namespace_selector for kind in kinds for term in _terms(pod, kind))
        return queue_if(any(s.matches(was) != s.matches(now) for s in selectors))

    def _means(self, term: AffinityTerm, other: Pod | None) -> bool:
        return other is not None and term.matches(
            other, self._handle.listers.namespace_labels(other.namespace)
        )

    def _means_by_all(self, terms: tuple[AffinityTerm, ...], other: Pod | None) -> bool:
        """Whether every term means the pod; False where there are no terms or no pod."""
        return bool(terms) and all(self._means(term, other) for term in terms)


def _terms(pod: Pod, kind: TermKind) -> tuple[AffinityTerm, ...]:
    return tuple(held.term for held in held_terms(pod, kind))


def _keys(terms: Iterable[AffinityTerm]) -> frozenset[str]:
    return frozenset(term.topology_key for term in terms)


def _moved(before: Node, after: Node, key: str) -> bool:
    return before.labels.get(key) != after.labels.get(key)
