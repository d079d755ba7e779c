"""What the host of sidecars counts.

docs/protocol.md, "Failures" and "Hints", says what each number stands for. States are not counted:
`PluginHost.describe()` is read when metrics are collected.
"""

from berth.config.out_of_tree.sidecars import POLICY_POINTS
from berth.framework.ports.measurements import NO_MEASUREMENTS, Measurements

IGNORED = "berth_plugin_failures_ignored_total"
REQUEUED = "berth_plugin_requeues_total"
RESCUED = "berth_plugin_hint_misses_total"


class PluginMetrics:
    """Counts in the given measurements."""

    def __init__(self, measurements: Measurements = NO_MEASUREMENTS) -> None:
        self._measurements = measurements
        self._begun: set[str] = set()

    def called(self, plugin: str, method: str, outcome: str, seconds: float) -> None:
        """Count a call: ok, error (the plugin's own), failed, late, garbled, or refused (never made).

        How long it took is in the cycle's record.
        """
        del seconds
        self._measurements.count("berth_plugin_calls_total", plugin, method, outcome)
        if plugin not in self._begun:
            self._begin(plugin)

    def ignored(self, plugin: str, point: str) -> None:
        """Count a failure that the failure policy ignores."""
        self._measurements.count(IGNORED, plugin, point)

    def hinted(self, plugin: str, answer: str, count: int) -> None:
        """Count the pods that got that answer about an event: Queue, QueueSkip or Error."""
        self._measurements.count("berth_plugin_hints_total", plugin, answer, by=count)

    def sorted(self, plugin: str, outcome: str, count: int) -> None:
        """Count sort keys: given, changed, failed, late, or unknown (of pods it was not asked about)."""
        self._measurements.count("berth_plugin_sort_keys_total", plugin, outcome, by=count)

    def requeued(self, plugin: str) -> None:
        """Count a plugin's request that pods are tried again."""
        self._measurements.count(REQUEUED, plugin)

    def rescued(self, plugin: str) -> None:
        """Count a pod that the plugin had rejected and that was bound only by the five-minute flush."""
        self._measurements.count(RESCUED, plugin)

    def compared(self, plugin: str, profile: str, outcome: str, nodes_rejected: int) -> None:
        """Count an attempt that was compared with a shadow, and the nodes that it would have rejected."""
        self._measurements.count("berth_plugin_shadow_attempts_total", plugin, profile, outcome)
        self._measurements.count(
            "berth_plugin_shadow_nodes_rejected_total", plugin, profile, by=nodes_rejected
        )

    def reset(self) -> None:
        """Begin the series of each plugin anew with its next call."""
        self._begun.clear()

    def _begin(self, plugin: str) -> None:
        """Export 0 of what may never be counted: increase() needs a sample from before the first one."""
        self._begun.add(plugin)
        for name in (RESCUED, REQUEUED):
            self._measurements.count(name, plugin, by=0)
        for point in POLICY_POINTS:
            self._measurements.count(IGNORED, plugin, point.value, by=0)
