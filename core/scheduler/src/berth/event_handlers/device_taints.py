"""DeviceTaintRules: into their store; each slice whose devices' taints change counts as updated.

Source: dynamic-resource-allocation resourceslice/tracker/tracker.go (Kubernetes v1.36).
"""

from collections.abc import Callable
from functools import partial

from berth.event_handlers.handler import EventHandled, MovingHandler, ignore_duration
from berth.framework.clock import Clock
from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.mirrors.listers import Listers
from berth.objects.devices.devices import DeviceTaintRule
from berth.queue.scheduling_queue import SchedulingQueue

SLICE_UPDATE = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE)


class DeviceTaintRuleHandler(MovingHandler):
    """Keeps the rules, and retries pods that a slice with other taints may help."""

    def __init__(
        self,
        queue: SchedulingQueue,
        listers: Listers,
        *,
        clock: Clock,
        handled: EventHandled = ignore_duration,
    ) -> None:
        super().__init__(queue, clock, handled)
        self._rules = listers.device_taint_rules
        self._slices = listers.slice_tracker

    def on_add(self, rule: DeviceTaintRule) -> None:
        """Add the taint."""
        self._change(partial(self._rules.put, rule))

    def on_update(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        """Take one taint for another."""
        del old
        self._change(partial(self._rules.put, new))

    def on_delete(self, rule: DeviceTaintRule) -> None:
        """Take the taint away."""
        self._change(partial(self._rules.remove, rule))

    def _change(self, change: Callable[[], None]) -> None:
        started = self._clock.monotonic()
        before = list(self._slices)
        change()
        for old, new in zip(before, self._slices, strict=True):
            if new is not old:
                self._move(SLICE_UPDATE, old, new, started)
