"""The state of a plugin as conditions: type, status, reason, message, since.

Source: Kubernetes API conventions on conditions; `berth plugin describe` shows them.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum

import msgspec

from berth.out_of_tree.limits import REFUSAL_BYTES
from berth.out_of_tree.plugin_text import bounded


class ConditionType(StrEnum):
    """The types of a plugin's conditions."""

    CONNECTED = "Connected"
    CONFIGURED = "Configured"
    SYNCED = "Synced"
    READY = "Ready"
    CIRCUIT_CLOSED = "CircuitClosed"
    SOCKET_PRIVATE = "SocketPrivate"
    """No folder on the way to the socket may be changed by others."""
    KINDS_LISTED = "KindsListed"
    """All further kinds that it wants to see were listed."""
    ARGUMENTS_ACCEPTED = "ArgumentsAccepted"
    """It took the arguments that it is to have; where it did not, those before may go on serving."""


class PluginCondition(msgspec.Struct, frozen=True):
    """A condition; its status has been the same since `since` (wall-clock seconds since the epoch)."""

    kind: ConditionType
    holds: bool
    reason: str
    message: str
    since: float


OnChange = Callable[[str, PluginCondition], None]
"""Notified of a plugin's condition whenever it comes to hold, or ceases to."""


class Conditions:
    """One plugin's conditions."""

    def __init__(self, plugin: str, now: Callable[[], float], on_change: OnChange) -> None:
        self._plugin = plugin
        self._now = now
        self._on_change = on_change
        self._by_kind: dict[ConditionType, PluginCondition] = {}

    def __iter__(self) -> Iterator[PluginCondition]:
        # Metrics are read in another thread: only a copy made in one step is safe to iterate over.
        return iter(self._by_kind.copy().values())

    def holds(self, kind: ConditionType) -> bool:
        """Whether the condition is True."""
        known = self._by_kind.get(kind)
        return known is not None and known.holds

    def begin(self, kind: ConditionType, reason: str, *, holds: bool) -> None:
        """Set the first status, which is not reported as a change."""
        self._by_kind[kind] = PluginCondition(kind, holds, reason, "", self._now())

    def put(self, kind: ConditionType, reason: str, message: str = "", *, holds: bool) -> bool:
        """Set a condition; returns whether it changed. `since` moves where the status changes."""
        message = bounded(message, REFUSAL_BYTES)
        known = self._by_kind.get(kind)
        if known is not None and (known.holds, known.reason, known.message) == (holds, reason, message):
            return False
        turned = known is None or known.holds is not holds
        since = self._now() if known is None or turned else known.since
        condition = self._by_kind[kind] = PluginCondition(kind, holds, reason, message, since)
        if turned:
            self._on_change(self._plugin, condition)
        return True
