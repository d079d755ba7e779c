"""Pods that were refused, kind by kind, as long as nothing has happened that may help them.

    refused --a pod got a node, and may help--> to be tried again

A pod that got a node may help one for whose refusal a plugin is to blame that waits for pods, claims or
volumes. What plugins wait for is what they register for the scheduling queue.

Called by: fitting.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from berth.framework.cluster_event import EventResource
from berth.framework.diagnosis import FitError
from berth.framework.object_events import ASSIGNED_POD_ADD
from berth.framework.status import Status
from berth.objects.pod_template import PodTemplate
from berth.queue.queue_profile import QueueProfile
from berth.snapshot.pod_group_states import GroupKey

Kind = PodTemplate | str | GroupKey
"""Pods of one template, one pod by its UID, or a group."""
TAKEN: Final = frozenset(
    (EventResource.PERSISTENT_VOLUME, EventResource.PERSISTENT_VOLUME_CLAIM, EventResource.RESOURCE_CLAIM)
)
"""What else changes where a pod gets a node."""


class Refusals:
    """Why pods have no node."""

    def __init__(self, profiles: Mapping[str, QueueProfile]) -> None:
        self._profiles = profiles
        self._statuses: dict[Kind, Status] = {}
        self._to_be_helped: list[Kind] = []
        self._waiting: dict[tuple[str, str], bool] = {}
        """Which plugins of which profiles wait for what a pod changes that gets a node."""

    @property
    def lasting(self) -> bool:
        """Whether no pod that gets a node helps any of them."""
        return not self._to_be_helped

    def of(self, kind: Kind) -> Status | None:
        """Why pods of this kind have no node; None where they are to be tried."""
        return self._statuses.get(kind)

    def note(self, kind: Kind, profile: str, status: Status) -> None:
        """Take note that a pod of this kind was refused now."""
        self._statuses[kind] = status
        if isinstance(kind, GroupKey) or self._may_be_helped(profile, status):
            self._to_be_helped.append(kind)

    def clear(self) -> None:
        """Forget all of them."""
        self._statuses.clear()
        self._to_be_helped.clear()

    def pod_placed(self) -> Sequence[Kind]:
        """Forget those that a pod may help which got a node now; which they are."""
        helped, self._to_be_helped = self._to_be_helped, []
        for kind in helped:
            del self._statuses[kind]
        return helped

    def _may_be_helped(self, profile: str, status: Status) -> bool:
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
