"""The metrics interface of the host of plugins.

States are not pushed: `PluginHost.describe()` is read when metrics are collected.
"""


class PluginMetrics:
    """Counters and durations of calls to sidecars; this class counts nothing, telemetry's does."""

    def called(self, plugin: str, method: str, outcome: str, seconds: float) -> None:
        """A call ended: ok, error (the plugin's own), failed, late, garbled, or refused (never made)."""

    def ignored(self, plugin: str, point: str) -> None:
        """A failure was passed over, as the failure policy says."""

    def hinted(self, plugin: str, answer: str, count: int) -> None:
        """So many pods got that answer about an event: Queue, QueueSkip or Error."""

    def sorted(self, plugin: str, outcome: str, count: int) -> None:
        """So many sort keys: given, changed, failed, late, or unknown (of pods it was not asked about)."""

    def requeued(self, plugin: str) -> None:
        """The plugin asked for pods to be tried again."""

    def rescued(self, plugin: str) -> None:
        """A pod that the plugin had rejected was bound only because the five-minute flush tried it again."""

    def compared(self, plugin: str, profile: str, outcome: str, nodes_rejected: int) -> None:
        """An attempt was compared with a shadow's word, which would have turned so many nodes down."""
