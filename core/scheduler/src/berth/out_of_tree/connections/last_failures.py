"""The last failures of one plugin at its extension points, for `berth plugin describe` and the log.

Equal failures are counted: a plugin that fails at every pod takes one entry, and few log lines. Called by:
points/answers.py, where a failure policy is applied.
"""

import logging
from collections.abc import Iterator

import msgspec

from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.clock import SYSTEM_CLOCK
from berth.out_of_tree.plugin_log import PluginLog
from berth.snapshot.bounded_cache import BoundedCache

log = logging.getLogger(__name__)

MAX_FAILURES = 16


class Failure(msgspec.Struct):
    """A failure at an extension point, and the effect of the failure policy. Units: `last` as the clock."""

    point: str
    text: str
    policy: FailurePolicy
    pod: str = ""
    """The latest pod that it was about, as namespace/name."""
    count: int = 0
    last: float = 0.0


class LastFailures:
    """The distinct failures of a plugin, the latest last; the oldest is dropped where there are too many.

    Ignored failures are logged here; any other fails an attempt, which has a log line of its own.
    """

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._log = PluginLog(log)
        self._by_kind: BoundedCache[tuple[str, str, FailurePolicy], Failure] = BoundedCache(
            max_entries=MAX_FAILURES
        )

    def __iter__(self) -> Iterator[Failure]:
        return self._by_kind.values()

    def add(self, point: str, text: str, policy: FailurePolicy, pod: str) -> None:
        """Record a failure."""
        kind = point, text, policy
        failure = self._by_kind.peek(kind) or Failure(point, text, policy)
        failure.pod, failure.last = pod, SYSTEM_CLOCK.wall()
        failure.count += 1
        self._by_kind.put(kind, failure)
        if policy is FailurePolicy.IGNORE:
            self._log.warning(
                "plugin failure ignored plugin=%s point=%s pod=%s err=%s", self._plugin, point, pod, text
            )
