"""The hint functions of a sidecar, as the queue calls them.

Before a plugin's first handshake, and while it can't be called, its pods are queued at every event: an
attempt too many is harmless, a pod that is not requeued is not.

Source: docs/protocol.md "Hints"; KEP-4247.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.pods.pod import Pod
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.connections.event_interest import Bytes, Interest, actions_of_change
from berth.out_of_tree.queueing.requeue_events import REQUEUE_EVENT_SUFFIX
from berth_plugin_proto import identity_pb2

HINTS = identity_pb2.EXTENSION_POINT_QUEUEING_HINTS
WELL_KNOWN = (EventResource.POD, EventResource.NODE)


def requeue_event(plugin: str) -> ClusterEvent:
    """The event of a plugin's own requeue: something outside the cluster changed."""
    return ClusterEvent(f"{plugin}{REQUEUE_EVENT_SUFFIX}", ActionType.UPDATE, "PluginNews")


class WaitingHints:
    """The registrations of one plugin in one profile; `connection` returns its current version."""

    def __init__(
        self, connection: Callable[[], PluginConnection], data: Bytes, *, resizes_count_by_pod: bool
    ) -> None:
        self.connection = connection
        self._by_pod = resizes_count_by_pod
        self._data = data
        self._latest: tuple[Any, Any, tuple[Interest, ...], tuple[Interest, ...]] | None = None

    def registrations(self) -> list[ClusterEventWithHint]:
        """Events of nodes, pods and the kinds that it is interested in, and its own requeues."""
        connection = self.connection()
        kinds = dict.fromkeys(interest.resource for interest in connection.interests)
        others = [kind for kind in kinds if kind not in WELL_KNOWN]
        return [
            *(
                ClusterEventWithHint(ClusterEvent(resource, ActionType.ALL), _Hint(self, str(resource)))
                for resource in (*WELL_KNOWN, *others)
            ),
            ClusterEventWithHint(requeue_event(connection.spec.name), _named_by_plugin),
        ]

    def covering(
        self, connection: PluginConnection, resource: str, old: Any, new: Any
    ) -> tuple[Interest, ...]:
        """The interests that the event meets: evaluated once for all pods that wait."""
        declared = connection.interests
        if (
            (known := self._latest) is not None
            and known[0] is old
            and known[1] is new
            and known[2] is declared
        ):
            return known[3]
        actions = actions_of_change(old, new, resizes_count_by_pod=self._by_pod)
        found = tuple(
            interest
            for interest in declared
            if interest.resource == resource and interest.covers(actions, old, new, self._data)
        )
        self._latest = old, new, declared, found
        return found


class _Hint:
    """The hint function for events of one kind."""

    def __init__(self, hints: WaitingHints, resource: str) -> None:
        self._hints = hints
        self._resource = resource

    def __call__(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        """Whether the event may help the pod."""
        connection = self._hints.connection()
        if not connection.starts or _is_own_update(pod, old, new):
            return QueueingHint.QUEUE
        obj = new if new is not None else old
        best = QueueingHint.SKIP
        for interest in self._hints.covering(connection, self._resource, old, new):
            if not interest.concerns(pod, obj):
                continue
            if not (interest.asks and connection.offers(HINTS)):
                return QueueingHint.QUEUE
            best = QueueingHint.ASK
        return best

    def of_all(self, old: Any, new: Any) -> QueueingHint | None:
        """The hint for all pods that wait (RequeueStrategies.hint_for_all), None where it differs by pod."""
        connection = self._hints.connection()
        if not connection.starts or isinstance(new, Pod):
            return None
        covering = self._hints.covering(connection, self._resource, old, new)
        if any(interest.distinguishes_pods or not interest.asks for interest in covering):
            return None
        if not covering:
            return QueueingHint.SKIP
        return QueueingHint.ASK if connection.offers(HINTS) else None

    def declared(self) -> list[ClusterEvent]:
        """The events that the plugin declared, for explanations; all events before its first handshake."""
        connection = self._hints.connection()
        if not connection.starts:
            return [ClusterEvent(self._resource, ActionType.ALL)]
        mine = (each for each in connection.interests if each.resource == self._resource)
        return [ClusterEvent(self._resource, each.actions) for each in mine]


def _is_own_update(pod: Pod, old: Any, new: Any) -> bool:
    """Whether the event is an update of the waiting pod itself, beyond what its failed attempt wrote.

    Otherwise every rejection would requeue the pod: its condition comes back as an update of the pod.
    """
    if new is None or new.uid != pod.uid:
        return False
    return not isinstance(old, Pod) or _without_attempt_status(old) != _without_attempt_status(new)


def _without_attempt_status(pod: Pod) -> tuple[Any, ...]:
    """The pod without its resource version and the status fields that schedulers write."""
    meta = pod.metadata
    status = msgspec.structs.replace(pod.status, conditions=(), nominated_node_name="")
    return pod.spec, meta.labels, meta.annotations, meta.owner_references, meta.deletion_timestamp, status


def _named_by_plugin(pod: Pod, old: Any, new: frozenset[str] | None) -> QueueingHint:
    """Queue where the plugin named the pod, or named none, which means all pods that it rejected."""
    del old
    return QueueingHint.QUEUE if new is None or pod.uid in new else QueueingHint.SKIP
