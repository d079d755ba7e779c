"""Counts a simulation's calls to sidecars and extenders, and their failures."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from berth.framework.ports.plugin_metrics import PluginMetrics

OK = "ok"
GAVE_UP = "gave up"
"""The caller needed no answer any more."""


class PluginUse(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A plugin or extender, and the outcomes of its calls."""

    name: str
    version: str = ""
    source: str
    """Its address, or the command that it was started with."""
    calls: int
    failed: dict[str, int] = {}
    """Calls that failed, by how: late, failed, error (its own), garbled, refused (not made)."""
    passed_over: int = 0
    """Failures in spite of which the pod went on, as the failure policy says."""
    clock: bool = False
    """Whether it uses the clock of the protocol: it was said the virtual time, and woken by it."""
    not_in_input: list[str] = []
    """Kinds that it watches, and of which the input has no object."""


class CallCounts(PluginMetrics):
    """Counts calls. Implements berth.framework.ports.plugin_metrics.PluginMetrics."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._passed_over: Counter[str] = Counter()

    def called(self, plugin: str, method: str, outcome: str, seconds: float) -> None:
        """Count the call, unless its caller was cancelled."""
        del method, seconds
        if outcome != GAVE_UP:
            self._calls[plugin, outcome] += 1

    def ignored(self, plugin: str, point: str) -> None:
        """Count the failure as ignored."""
        del point
        self._passed_over[plugin] += 1

    def of(self, plugin: str) -> Mapping[str, int]:
        """The number of its calls by outcome."""
        return {outcome: count for (name, outcome), count in sorted(self._calls.items()) if name == plugin}

    def use(
        self,
        name: str,
        source: str,
        *,
        version: str = "",
        clock: bool = False,
        not_in_input: list[str] | None = None,
    ) -> PluginUse:
        """The outcomes of that plugin's calls."""
        outcomes = self.of(name)
        return PluginUse(
            name=name,
            version=version,
            source=source,
            calls=sum(outcomes.values()),
            failed={outcome: count for outcome, count in outcomes.items() if outcome != OK},
            passed_over=self._passed_over[name],
            clock=clock,
            not_in_input=not_in_input or [],
        )
