"""Whether a placed pod may help a pod that was rejected, or only a new node.

A placed pod may help a pod that was rejected by a plugin which registers events of pods, claims or
volumes (EventsToRegister). A pod that is not helped so is
rejected by the present nodes for good: no further pod and no further node makes
one of them fit.

Called by: growing_cluster.
"""

from collections.abc import Mapping
from typing import Final

from berth.framework.attempts.diagnosis import FitError
from berth.framework.cluster_event import EventResource
from berth.framework.queueing.object_events import ASSIGNED_POD_ADD
from berth.framework.status import Status
from berth.queue.requeueing.queue_profile import QueueProfile

TAKEN: Final = frozenset(
    (EventResource.PERSISTENT_VOLUME, EventResource.PERSISTENT_VOLUME_CLAIM, EventResource.RESOURCE_CLAIM)
)
"""What else changes where a pod gets a node."""


class Refusals:
    """The events that the plugins of these profiles register."""

    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._waiting: dict[tuple[str, str], bool] = {}
        """Which plugins of which profiles wait for what a pod changes that gets a node."""

    def may_be_helped(self, profile: str, status: Status) -> bool:
        """Whether a placed pod may help a pod of the profile that was rejected with that status."""
        if not isinstance(status.error, FitError):
            return True
        plugins = status.error.diagnosis.unschedulable_plugins
        return not plugins or any(self._waits(profile, plugin) for plugin in plugins)

    def _waits(self, profile: str, plugin: str) -> bool:
        known = self._waiting.get((profile, plugin))
        if known is None:
            events = self._profiles[profile].hints.events_of(plugin)
            known = any(event.matches(ASSIGNED_POD_ADD) or event.resource in TAKEN for event in events)
            self._waiting[profile, plugin] = known
        return known
