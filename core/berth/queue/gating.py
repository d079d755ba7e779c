"""PreEnqueue: plugins that keep a pod out of activeQ and backoffQ.

Source: spec/core.md 2.6.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from berth.framework.clock import Clock
from berth.framework.cluster_event import ClusterEvent
from berth.framework.interface import PreEnqueuePlugin
from berth.framework.queued_pod import QueuedPodInfo
from berth.framework.status import Code, failed
from berth.queue.queue_metrics import QueueMetrics
from berth.queue.queue_profile import QueueProfile

log = logging.getLogger(__name__)


class Gating:
    """Runs a profile's PreEnqueue plugins and notes in the record which one holds the pod back."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        events_of: Callable[[str], tuple[ClusterEvent, ...]],
        clock: Clock,
        metrics: QueueMetrics,
    ) -> None:
        self._profiles = profiles
        self._events_of = events_of
        self._clock = clock
        self._metrics = metrics

    def check(self, record: QueuedPodInfo) -> bool:
        """Whether the pod may be queued; else the record names the plugin that holds it back."""
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is not None and profile.pre_enqueue and not self._run(profile, record):
            return False
        record.gating_plugin = ""
        record.gating_plugin_events = ()
        return True

    def _run(self, profile: QueueProfile, record: QueuedPodInfo) -> bool:
        started = self._clock.monotonic()
        plugins = _gating_first(profile, record) if record.gating_plugin else profile.pre_enqueue
        passed = all(self._passes(plugin, record) for plugin in plugins)
        self._metrics.pre_enqueue_executed(record.pod.spec.scheduler_name, self._clock.monotonic() - started)
        return passed

    def _passes(self, plugin: PreEnqueuePlugin, record: QueuedPodInfo) -> bool:
        try:
            status = plugin.pre_enqueue(record.pod)
        except Exception as error:  # noqa: BLE001 - a broken gate holds its pod back, not the queue
            status = failed(error)
        if status.ok:
            return True
        if status.code is Code.ERROR:
            log.error(
                "PreEnqueue failed, the pod is held back: plugin=%s pod=%s error=%s",
                plugin.name,
                record.pod.key,
                status.message,
            )
        if plugin.name not in record.rejectors:
            self._metrics.rejected_pods(plugin.name, record.pod.spec.scheduler_name, 1)
        record.unschedulable_plugins.add(plugin.name)
        record.gating_plugin = plugin.name
        record.gating_plugin_events = self._events_of(plugin.name)
        return False


def _gating_first(profile: QueueProfile, record: QueuedPodInfo) -> Iterator[PreEnqueuePlugin]:
    """The plugins in the profile's order, the one that gated the pod before them."""
    yield from (plugin for plugin in profile.pre_enqueue if plugin.name == record.gating_plugin)
    yield from (plugin for plugin in profile.pre_enqueue if plugin.name != record.gating_plugin)
