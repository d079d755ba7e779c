"""What may help a pod that affinity kept from being scheduled.

Terms are compared without looking up any namespace's labels, and anti-affinity asks for all terms where the
filter asks for one: upstream's behaviour.
"""

from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.plugins.inter_pod_affinity.terms import NO_LABELS
from berth.plugins.queueing import expected, is_own, maybe, queue_if, unplaced
from berth.snapshot.affinity_terms import TermKind, held_terms

POD_EVENTS = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)

AFFINITY, ANTI_AFFINITY = TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY


def registrations() -> list[ClusterEventWithHint]:
    """The events with their hints."""
    return [
        ClusterEventWithHint(POD_EVENTS, after_pod_change),
        ClusterEventWithHint(NODE_EVENTS, after_node_change),
    ]


def after_pod_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where a pod comes that the waiting one wants to be near, or goes that was in its way."""
    before, after = maybe(Pod, old), maybe(Pod, new)
    if before is not None and after is not None and is_own(pod, after):
        return QueueingHint.QUEUE
    if any(other is not None and unplaced(other) for other in (before, after)):
        return QueueingHint.SKIP
    wanted, avoided = (_meant_by_all(pod, before, kind) for kind in (AFFINITY, ANTI_AFFINITY))
    if after is None:
        blocked = before is not None and _meant_by_all(before, pod, ANTI_AFFINITY)
        return queue_if(avoided or blocked)
    comes = not wanted and _meant_by_all(pod, after, AFFINITY)
    return queue_if(comes or (avoided and not _meant_by_all(pod, after, ANTI_AFFINITY)))


def _meant_by_all(holder: Pod, other: Pod | None, kind: TermKind) -> bool:
    """Whether every term of the holder means the other pod; False where there are no terms or no pod."""
    terms = held_terms(holder, kind)
    return other is not None and bool(terms) and all(h.term.matches(other, NO_LABELS) for h in terms)


def after_node_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where a node enters a domain that affinity needs, or leaves one that anti-affinity avoids."""
    before, after = maybe(Node, old), expected(Node, new)
    near, away = (
        [held.term.topology_key for held in held_terms(pod, kind)] for kind in (AFFINITY, ANTI_AFFINITY)
    )
    if before is None:
        return queue_if(away or any(key in after.labels for key in near))
    entered = any(key in after.labels and _moved(before, after, key) for key in near)
    return queue_if(entered or any(key in before.labels and _moved(before, after, key) for key in away))


def _moved(before: Node, after: Node, key: str) -> bool:
    return before.labels.get(key) != after.labels.get(key)
