"""What users and operators see of objects that could not be taken in: events on them, and two metrics."""

from collections.abc import Iterable
from typing import Any

from berth.client import resources
from berth.client.events import EventRecorder, Reference
from berth.client.watching.quarantined_objects import NotTaken
from berth.client.watching.reflector import Reflector
from berth.framework.clock import Clock
from berth.framework.pacing import TokenBucket

REASON = "NotTakenIn"
# As many events at once, and then one for so many seconds: objects may be written faster than events.
BURST = 20
SECONDS_FOR_EVENT = 5.0
LONGEST_NAME = 253

KINDS = {
    resources.NODES: "Node",
    resources.PODS: "Pod",
    resources.NAMESPACES: "Namespace",
    resources.SERVICES: "Service",
    resources.REPLICATION_CONTROLLERS: "ReplicationController",
    resources.REPLICA_SETS: "ReplicaSet",
    resources.STATEFUL_SETS: "StatefulSet",
    resources.POD_DISRUPTION_BUDGETS: "PodDisruptionBudget",
    resources.PERSISTENT_VOLUMES: "PersistentVolume",
    resources.PERSISTENT_VOLUME_CLAIMS: "PersistentVolumeClaim",
    resources.STORAGE_CLASSES: "StorageClass",
    resources.CSI_NODES: "CSINode",
    resources.CSI_DRIVERS: "CSIDriver",
    resources.CSI_STORAGE_CAPACITIES: "CSIStorageCapacity",
    resources.VOLUME_ATTACHMENTS: "VolumeAttachment",
    resources.RESOURCE_CLAIMS: "ResourceClaim",
    resources.RESOURCE_SLICES: "ResourceSlice",
    resources.DEVICE_CLASSES: "DeviceClass",
    resources.DEVICE_TAINT_RULES: "DeviceTaintRule",
    resources.POD_GROUPS: "PodGroup",
    resources.COMPOSITE_POD_GROUPS: "CompositePodGroup",
}


class SetAsideEvents:
    """Writes a warning on each object that is set aside, at a bounded rate."""

    def __init__(self, recorder: EventRecorder, controller: str, clock: Clock) -> None:
        self._recorder = recorder
        self._controller = controller
        self._rate = TokenBucket(1 / SECONDS_FOR_EVENT, BURST, clock.monotonic)

    def report(self, not_taken: NotTaken) -> None:
        """Record the event, unless there were too many of late."""
        kind = KINDS.get(not_taken.resource)
        meta = not_taken.meta
        if kind is None or max(len(meta.name), len(meta.namespace)) > LONGEST_NAME or not self._rate.take():
            return
        about = Reference(
            not_taken.resource.api_version,
            kind,
            meta.namespace,
            meta.name,
            meta.uid,
            meta.resource_version,
        )
        self._recorder.event(
            about,
            controller=self._controller,
            type="Warning",
            reason=REASON,
            action="Watching",
            note=f"This version of the object cannot be taken in: {not_taken.problem}",
        )


def set_aside_total(mirrors: Iterable[Reflector[Any]]) -> dict[str, float]:
    """How many versions of objects could not be taken in so far, by resource."""
    return {mirror.source.resource.plural: mirror.aside.total for mirror in mirrors}


def set_aside_now(mirrors: Iterable[Reflector[Any]]) -> dict[str, float]:
    """How many objects are set aside now, by resource."""
    return {mirror.source.resource.plural: len(mirror.aside) for mirror in mirrors}
