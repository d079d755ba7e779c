"""Figures of sidecars, as Prometheus wants them.

Implements framework/ports/plugin_metrics.py; docs/protocol.md, "Failures" and "Hints", says what they count.
"""

import prometheus_client as prometheus

from berth.config.out_of_tree.sidecars import POLICY_POINTS
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.telemetry.metrics.metric_families import Families


class PrometheusPluginMetrics(PluginMetrics):
    """What the host of plugins is given as its PluginMetrics."""

    def __init__(self, families: Families) -> None:
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families
        self._calls: dict[tuple[str, str, str], prometheus.Counter] = {}

    def called(self, plugin: str, method: str, outcome: str, seconds: float) -> None:
        """Count a call; how long it took is in the cycle's record."""
        del seconds
        child = self._calls.get((plugin, method, outcome))
        if child is None:
            child = self._families.counters["berth_plugin_calls_total"].labels(plugin, method, outcome)
            self._calls[plugin, method, outcome] = child
            self._begin(plugin)
        child.inc()

    def ignored(self, plugin: str, point: str) -> None:
        """Count a failure that was passed over."""
        self._families.counters["berth_plugin_failures_ignored_total"].labels(plugin, point).inc()

    def hinted(self, plugin: str, answer: str, count: int) -> None:
        """Count answers about pods and events."""
        self._families.counters["berth_plugin_hints_total"].labels(plugin, answer).inc(count)

    def sorted(self, plugin: str, outcome: str, count: int) -> None:
        """Count sort keys of pods."""
        self._families.counters["berth_plugin_sort_keys_total"].labels(plugin, outcome).inc(count)

    def requeued(self, plugin: str) -> None:
        """Count a plugin's news."""
        self._families.counters["berth_plugin_requeues_total"].labels(plugin).inc()

    def rescued(self, plugin: str) -> None:
        """Count a pod that the plugin's hints missed."""
        self._families.counters["berth_plugin_hint_misses_total"].labels(plugin).inc()

    def compared(self, plugin: str, profile: str, outcome: str, nodes_rejected: int) -> None:
        """Count an attempt that a shadow followed, or did not."""
        counters = self._families.counters
        counters["berth_plugin_shadow_attempts_total"].labels(plugin, profile, outcome).inc()
        counters["berth_plugin_shadow_nodes_rejected_total"].labels(plugin, profile).inc(nodes_rejected)

    def _begin(self, plugin: str) -> None:
        """Export 0 of what may never be counted: increase() needs a sample from before the first one."""
        counters = self._families.counters
        for name in ("berth_plugin_hint_misses_total", "berth_plugin_requeues_total"):
            counters[name].labels(plugin)
        for point in POLICY_POINTS:
            counters["berth_plugin_failures_ignored_total"].labels(plugin, point.value)
