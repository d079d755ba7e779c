"""Which pods that were refused may be helped by a pod that gets a node, and which by a new node alone.

A pod that got a node may help one for whose refusal a plugin is to blame that waits for pods, claims or
volumes. What plugins wait for is what they register for the scheduling queue. A pod that is not helped so is
refused by the nodes that are there, whatever gets a place on them: no further pod and no further node makes
one of them take it.

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
    """What plugins of these profiles wait for."""

    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._waiting: dict[tuple[str, str], bool] = {}
        """Which plugins of which profiles wait for what a pod changes that gets a node."""

    def may_be_helped(self, profile: str, status: Status) -> bool:
        """Whether a pod that gets a node may help a pod of the profile that was refused so."""
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
