"""Nodes: into the cache, then a move pass.

Source: pkg/scheduler/eventhandlers.go addNodeToCache, updateNodeInCache, deleteNodeFromCache (Kubernetes
v1.36).
"""

import logging

from berth.cache.cache import Cache
from berth.event_handlers.handler import EventHandled, MovingHandler, ignore_duration
from berth.framework.clock import Clock
from berth.framework.queueing.object_events import NODE_ADD, NODE_DELETE, node_events
from berth.objects.node import Node
from berth.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)


class NodeHandler(MovingHandler):
    """Carries nodes into the cache."""

    def __init__(
        self,
        queue: SchedulingQueue,
        cache: Cache,
        *,
        clock: Clock,
        handled: EventHandled = ignore_duration,
        declared_features: bool = True,
    ) -> None:
        super().__init__(queue, clock, handled)
        self._cache = cache
        self._declared_features = declared_features

    def on_add(self, node: Node) -> None:
        """Add it, then retry pods."""
        started = self._clock.monotonic()
        self._cache.add_node(node)
        self._move(NODE_ADD, None, node, started)

    def on_update(self, old: Node, new: Node) -> None:
        """Update it, then retry pods, once for each thing that changed."""
        started = self._clock.monotonic()
        events = list(node_events(old, new, declared_features=self._declared_features))
        self._cache.update_node(old, new)
        self._move_each(events, old, new, started)

    def on_delete(self, node: Node) -> None:
        """Retry pods, then remove it: the order is upstream's."""
        try:
            self._move(NODE_DELETE, node, None, self._clock.monotonic())
        finally:
            self._remove(node)

    def _remove(self, node: Node) -> None:
        try:
            self._cache.remove_node(node)
        except KeyError as error:
            log.error("node not removed node=%s err=%s", node.name, error)  # noqa: TRY400 - expected
