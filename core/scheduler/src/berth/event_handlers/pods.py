"""Pods: into the cache where they are on a node, into the queue where they are to be scheduled.

Source: pkg/scheduler/eventhandlers.go addPod, updatePod, deletePod (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable, Container

from berth.cache.cache import Cache
from berth.cache.errors import PodStateError
from berth.event_handlers.handler import EventHandled, MovingHandler, ignore_duration
from berth.framework.clock import Clock
from berth.framework.handle import WaitingPods
from berth.framework.mirrors.listers import Store
from berth.framework.queueing.object_events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    UNSPLIT,
    UnassignedPodEvents,
    pod_events,
)
from berth.objects.pods.pod import Pod
from berth.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)


def _ignore(pod: Pod) -> None:
    """Nothing is to be done."""
    del pod


class PodHandler(MovingHandler):
    """Carries pods on nodes into the cache and pods of our profiles that are on none into the queue.

    `unassigned` holds the latter; the queue reads it through `lister`. A group's pods are reported to the
    cache's `pod_groups`, before the queue asks its plugins about them.

    `sync_calls` gets each new version, so that writes under way are compared to it
    (SchedulerAsyncAPICalls). `resizes_count_by_pod` is as in the cache. `on_gone` is called with each pod
    that is deleted, once it is in neither queue nor cache.
    """

    def __init__(
        self,
        queue: SchedulingQueue,
        cache: Cache,
        *,
        unassigned: Store[Pod],
        profiles: Container[str],
        waiting_pods: WaitingPods,
        clock: Clock,
        handled: EventHandled = ignore_duration,
        gang_scheduling: bool = False,
        sync_calls: Callable[[Pod], None] | None = None,
        resizes_count_by_pod: bool = False,
        unassigned_events: UnassignedPodEvents = UNSPLIT,
        on_gone: Callable[[Pod], None] = _ignore,
    ) -> None:
        super().__init__(queue, clock, handled)
        self._cache = cache
        self._events = unassigned_events
        self._sync_calls = sync_calls
        self._unassigned = unassigned
        self._profiles = profiles
        self._waiting_pods = waiting_pods
        self._gang_scheduling = gang_scheduling
        self._by_pod = resizes_count_by_pod
        self._on_gone = on_gone

    def on_add(self, pod: Pod) -> None:
        """A pod is new, or new to us."""
        if pod.node_name:
            self._assigned_add(pod)
        elif self._ours(pod):
            self._unscheduled_add(pod)

    def on_update(self, old: Pod, new: Pod) -> None:
        """A pod changed; one that got a node leaves the queue for the cache."""
        if self._sync_calls is not None:
            self._sync_calls(new)
        if old.node_name:
            self._assigned_update(old, new)
        elif new.node_name:
            self._got_a_node(old, new)
        elif self._ours(old):
            self._unscheduled_update(old, new)

    def on_delete(self, pod: Pod, *, final_state_unknown: bool = False) -> None:
        """A pod is gone, or finished; one whose last state was not seen may have got a node by then."""
        self._unassigned.remove(pod)
        try:
            if pod.node_name or final_state_unknown:
                self._assigned_delete(pod)
        finally:
            if self._ours(pod) and (final_state_unknown or not pod.node_name):
                self._unscheduled_delete(pod)
        self._on_gone(pod)

    def _ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles

    # Pods on nodes, of any scheduler.

    def _assigned_add(self, pod: Pod) -> None:
        started = self._clock.monotonic()
        self._log_refusal(self._cache.add_pod, pod)
        self._move(ASSIGNED_POD_ADD, None, pod, started)

    def _got_a_node(self, old: Pod, new: Pod) -> None:
        started = self._clock.monotonic()
        self._unassigned.remove(old)
        try:
            self._log_refusal(self._cache.add_pod, new)
        except Exception:
            self._unassigned.put(old)
            raise
        try:
            self._move(ASSIGNED_POD_ADD, None, new, started)
        finally:
            if self._ours(old):
                self._follow_up(self._queue.delete, old)

    def _assigned_update(self, old: Pod, new: Pod) -> None:
        started = self._clock.monotonic()
        events = pod_events(old, new, resizes_count_by_pod=self._by_pod)
        self._log_refusal(self._cache.update_pod, old, new)
        self._move_each(events, old, new, started)
        self._handled(ASSIGNED_POD_UPDATE.label, self._clock.monotonic() - started)

    def _assigned_delete(self, pod: Pod) -> None:
        started = self._clock.monotonic()
        self._log_refusal(self._cache.remove_pod, pod)
        self._move(ASSIGNED_POD_DELETE, pod, None, started)

    # Pods to schedule.

    def _unscheduled_add(self, pod: Pod) -> None:
        started = self._clock.monotonic()
        self._unassigned.put(pod)
        if self._cache.pod_groups is not None:
            self._cache.pod_groups.add(pod)
        try:
            self._queue.add(pod)
        except Exception:
            self._unassigned.remove(pod)
            if self._cache.pod_groups is not None:
                self._cache.pod_groups.delete(pod)
            raise
        if self._gang_scheduling:
            self._follow_up(self._queue.move_all, self._events.add, None, pod)
        self._handled(self._events.add.label, self._clock.monotonic() - started)

    def _unscheduled_update(self, old: Pod, new: Pod) -> None:
        started = self._clock.monotonic()
        events = [event.label for event in pod_events(old, new, unassigned=self._events.own)]
        self._unassigned.put(new)
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        if self._cache.pod_groups is not None:
            self._cache.pod_groups.update(new)
        if self._cache.is_assumed(new.uid):
            if new.terminating and not old.terminating:
                self._follow_up(self._assumed_deletion, new)
        else:
            self._requeue(old, new)
            if old.nominated_node_name not in ("", new.nominated_node_name):
                self._follow_up(self._nomination_lost, old)
        seconds = self._clock.monotonic() - started
        for label in {self._events.update.label, *events}:
            self._handled(label, seconds)

    def _requeue(self, old: Pod, new: Pod) -> None:
        try:
            self._queue.update(old, new)
        except Exception:
            self._unassigned.put(old)
            if self._cache.pod_groups is not None:
                self._cache.pod_groups.update(old)
            raise

    def _unscheduled_delete(self, pod: Pod) -> None:
        started = self._clock.monotonic()
        if self._cache.pod_groups is not None:
            self._cache.pod_groups.delete(pod)
        try:
            self._follow_up(self._queue.delete, pod)
        finally:
            if self._cache.is_assumed(pod.uid):
                self._follow_up(self._assumed_deletion, pod)
            elif pod.nominated_node_name:
                self._follow_up(self._nomination_lost, pod)
        self._handled(self._events.delete.label, self._clock.monotonic() - started)

    def _nomination_lost(self, pod: Pod) -> None:
        """Let the pods retry that the nomination held off: those of no higher priority."""
        self._queue.move_all(
            ASSIGNED_POD_DELETE, pod, None, predicate=lambda other: other.priority <= pod.priority
        )

    def _assumed_deletion(self, pod: Pod) -> None:
        """Free what a pod holds that is deleted on its way to a node."""
        cached = self._cache.get_pod(pod.uid)
        if cached is None:
            return
        if not self._ours(cached):
            log.error("no profile of that name pod=%s profile=%s", cached.key, cached.spec.scheduler_name)
            return
        waiting = self._waiting_pods.get(pod.uid)
        if waiting is None or not waiting.reject("", "removed"):
            self._log_refusal(self._cache.forget_pod, cached)
        self._queue.move_all(ASSIGNED_POD_DELETE, cached, None)

    def _log_refusal(self, operation: Callable[..., None], *pods: Pod) -> None:
        try:
            operation(*pods)
        except PodStateError as error:
            log.error("refused by the cache err=%s", error)  # noqa: TRY400 - expected, one line


def lister(unassigned: Store[Pod]) -> Callable[[str, str], Pod | None]:
    """Pods without a node by (namespace, name), for the queue and for failed attempts.

    None stands for a pod that is gone and for one that is on a node: neither is to be scheduled.
    """
    return lambda namespace, name: unassigned.get(name, namespace)
