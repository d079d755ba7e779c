"""Kinds beside nodes and pods: each into its store, then a move pass where a plugin waits for it.

Source: pkg/scheduler/eventhandlers.go addAllEventHandlers (Kubernetes v1.36).
"""

from collections.abc import Mapping
from typing import Any

from berth.event_handlers.handler import (
    EventHandled,
    MovingHandler,
    ResourceHandler,
    SyncedHandler,
    ignore_duration,
)
from berth.framework.clock import Clock
from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.mirrors.listers import Store
from berth.queue.moves.queued_groups import QueuedGroups
from berth.queue.scheduling_queue import SchedulingQueue

OF_GROUPS = frozenset({EventResource.POD_GROUP, EventResource.COMPOSITE_POD_GROUP})


def resource_handler(
    resource: str,
    store: Store[Any],
    queue: SchedulingQueue,
    wanted: Mapping[str, ActionType],
    *,
    clock: Clock,
    handled: EventHandled = ignore_duration,
) -> ResourceHandler:
    """A handler for a kind beside nodes and pods: pods are retried where a plugin waits for it.

    `resource` is an EventResource or what a plugin registered, `wanted` what `wanted_actions` found.
    """
    if resource in OF_GROUPS and queue.groups is not None:
        actions = wanted.get(resource, ActionType.NONE)
        return PodGroupHandler(resource, queue.groups, actions, store, queue, clock=clock, handled=handled)
    if actions := wanted.get(resource, ActionType.NONE):
        return WaitedForHandler(resource, actions, store, queue, clock=clock, handled=handled)
    return StoreHandler(store)


class StoreHandler(SyncedHandler):
    """Keeps a store up to date with a kind that no pod waits for."""

    def __init__(self, store: Store[Any]) -> None:
        super().__init__()
        self._store = store

    def on_add(self, obj: Any) -> None:
        """Store a new object."""
        self._store.put(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Store the new version."""
        del old
        self._store.put(new)

    def on_delete(self, obj: Any) -> None:
        """Drop the object."""
        self._store.remove(obj)


class WaitedForHandler(MovingHandler):
    """Keeps a store up to date and retries pods, for a kind that plugins registered events of."""

    def __init__(
        self,
        resource: str,
        actions: ActionType,
        store: Store[Any],
        queue: SchedulingQueue,
        *,
        clock: Clock,
        handled: EventHandled = ignore_duration,
    ) -> None:
        super().__init__(queue, clock, handled)
        self._store = store
        self._actions = actions
        self._added = ClusterEvent(resource, ActionType.ADD)
        self._updated = ClusterEvent(resource, ActionType.UPDATE)
        self._deleted = ClusterEvent(resource, ActionType.DELETE)

    def on_add(self, obj: Any) -> None:
        """Store a new object."""
        self._store.put(obj)
        self._tell(self._added, None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        """Store the new version; what changed is for the hints to find out."""
        self._store.put(new)
        self._tell(self._updated, old, new)

    def on_delete(self, obj: Any) -> None:
        """Drop the object."""
        self._store.remove(obj)
        self._tell(self._deleted, obj, None)

    def _tell(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if self._actions & event.action:
            self._move(event, old, new, self._clock.monotonic())


class PodGroupHandler(WaitedForHandler):
    """Keeps a store of groups up to date, and the queue that has their pods wait as one."""

    def __init__(
        self,
        resource: str,
        queued: QueuedGroups,
        actions: ActionType,
        store: Store[Any],
        queue: SchedulingQueue,
        *,
        clock: Clock,
        handled: EventHandled = ignore_duration,
    ) -> None:
        super().__init__(resource, actions, store, queue, clock=clock, handled=handled)
        self._queued = queued

    def on_add(self, obj: AnyGroup) -> None:
        """Store a new group; its pods wait with it from now on."""
        self._store.put(obj)
        self._follow_up(self._queued.group_added, obj)
        self._tell(self._added, None, obj)

    def on_update(self, old: AnyGroup, new: AnyGroup) -> None:
        """Store the new version; one of another tree is another group."""
        if old.spec.parent_composite_pod_group_name != new.spec.parent_composite_pod_group_name:
            self.on_delete(old)
            self.on_add(new)
            return
        self._store.put(new)
        self._follow_up(self._queued.group_updated, new)
        self._tell(self._updated, old, new)

    def on_delete(self, obj: AnyGroup) -> None:
        """Drop the group; its pods wait for another one of its name."""
        self._store.remove(obj)
        self._follow_up(self._queued.group_deleted, obj)
        self._tell(self._deleted, obj, None)
