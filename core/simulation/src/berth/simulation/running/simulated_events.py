"""Events of a scheduler whose cluster is in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berth.framework.mirrors.group_trees import AnyGroup
from berth.objects.pods.pod import Pod


@dataclass
class SimulatedEvents:
    """Implements berth.framework.handle.EventRecorder; `on_event` gets what a simulation reports."""

    on_event: Callable[[Pod, str, str, Any], None]

    def event(
        self,
        pod: Pod,
        kind: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Pod | AnyGroup | None = None,
        controller: str = "",
    ) -> None:
        """Pass the event on."""
        del kind, action, controller
        self.on_event(pod, reason, note, related)
