"""The profiles of a scheduler: the plugins of each, and what the queue knows of them.

Empty until the plugins are made, which needs the queue that the profiles stand in. Plugins that are attached
or detached later change a profile in place; `rewire` takes over which events they wait for.

Source: pkg/scheduler/profile/profile.go (Kubernetes v1.36).
"""

from collections.abc import Mapping
from typing import Any

from berth.framework.interface import KeyedQueueSortPlugin
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.queue.requeueing.hints import build_hint_map
from berth.queue.requeueing.queue_profile import QueueProfile


class Profiles:
    """Frameworks and queue profiles by scheduler name, in the order of the configuration."""

    def __init__(self, *, extenders: bool, generic_workload: bool) -> None:
        self._extenders = extenders
        self._generic_workload = generic_workload
        self._frameworks: dict[str, Framework] = {}
        self._queue_profiles: dict[str, QueueProfile] = {}

    @property
    def frameworks(self) -> Mapping[str, Framework]:
        """The plugins of each profile, wired."""
        return self._frameworks

    @property
    def queue_profiles(self) -> Mapping[str, QueueProfile]:
        """The PreEnqueue plugins of each profile, and the events that its plugins wait for."""
        return self._queue_profiles

    def add(self, frameworks: Mapping[str, Framework]) -> None:
        """Take these profiles in."""
        self._frameworks.update(frameworks)
        for name in frameworks:
            self.rewire(name)

    def rewire(self, name: str) -> None:
        """Take note that a profile's plugins wait for other events than before, or are others."""
        plugins = self._frameworks[name].plugins
        hints = build_hint_map(
            plugins.by_name.values(), extenders=self._extenders, generic_workload=self._generic_workload
        )
        sorter = next((p for p in plugins.queue_sort if isinstance(p, KeyedQueueSortPlugin)), None)
        self._queue_profiles[name] = QueueProfile(plugins.pre_enqueue, hints, sorter)

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """The order of the queue, by the first profile's QueueSort plugin: it is the same in all of them."""
        return next(iter(self._frameworks.values())).plugins.queue_sort[0].less(a, b)

    def sort_key(self, record: QueuedPodInfo) -> Any:
        """A key that sorts as `less` does."""
        return next(iter(self._frameworks.values())).plugins.queue_sort[0].sort_key(record)
