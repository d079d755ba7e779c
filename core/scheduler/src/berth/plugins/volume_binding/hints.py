"""The events after which a pod's volumes may be found."""

from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_volumes import claim_uses
from berth.objects.volumes.storage import (
    MIGRATED_PLUGINS,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
)
from berth.plugins.pod_volumes import USED_CLAIM
from berth.plugins.queueing import expected, maybe, queue_if

CHANGES = ActionType.ADD | ActionType.UPDATE


def registrations() -> list[ClusterEventWithHint]:
    """The plugin's events."""
    return [
        ClusterEventWithHint(ClusterEvent(EventResource.STORAGE_CLASS, CHANGES), after_storage_class),
        ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, CHANGES), USED_CLAIM),
        ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME, CHANGES)),
        ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, CHANGES), after_csi_node),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), after_csi_driver),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_DRIVER, ActionType.DELETE), after_csi_driver),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, CHANGES), after_capacity),
    ]


def after_storage_class(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE for a new class, and for one that allows other places."""
    del pod
    before, after = maybe(StorageClass, old), expected(StorageClass, new)
    return queue_if(before is None or before.allowed_topologies != after.allowed_topologies)


def after_csi_node(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE for a new CSINode, and for one whose drivers took over other plugins."""
    del pod
    before, after = maybe(CSINode, old), expected(CSINode, new)
    return queue_if(before is None or _migrated(before) != _migrated(after))


def _migrated(csi_node: CSINode) -> str:
    return csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")


def after_csi_driver(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where a driver stops to track capacity that may make a volume for one of the pod's claims.

    Upstream v1.36 looks at the pod's inline volumes alone, and hears of no deletion.
    """
    before, after = expected(CSIDriver, old), maybe(CSIDriver, new)
    tracked = after is not None and after.spec.storage_capacity
    inline = ((volume.get("csi") or {}).get("driver") for volume in pod.spec.volumes)
    may_use = any(claim_uses(pod)) or before.name in inline
    return queue_if(before.spec.storage_capacity and not tracked and may_use)


def after_capacity(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE for a new capacity, and for one that grew or is reported for the first time."""
    del pod
    before, after = maybe(CSIStorageCapacity, old), expected(CSIStorageCapacity, new)
    if before is None:
        return QueueingHint.QUEUE
    if after.limit_nanos is None:
        return QueueingHint.SKIP
    return queue_if(before.limit_nanos is None or after.limit_nanos > before.limit_nanos)
