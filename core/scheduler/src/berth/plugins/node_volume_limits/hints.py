"""The events after which a node may take more volumes.

Upstream v1.36 hears neither of nodes and drivers nor of limits that are lifted: pods wait for the flush then.
"""

from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.pods.pod_volumes import named_claims
from berth.objects.volumes.csi_migration import migration_of
from berth.objects.volumes.storage import CSIDriver, CSINode, VolumeAttachment
from berth.plugins.pod_volumes import USED_CLAIM
from berth.plugins.queueing import expected, maybe, queue_if, unplaced


def registrations() -> list[ClusterEventWithHint]:
    """The plugin's events."""
    return [
        ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), after_driver_change),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_DRIVER, ActionType.DELETE), after_driver_change),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), after_csi_node_update),
        ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deletion),
        ClusterEventWithHint(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), USED_CLAIM),
        ClusterEventWithHint(
            ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), after_detaching
        ),
    ]


def after_driver_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where pods may now be on nodes without the driver."""
    del pod
    before, after = expected(CSIDriver, old), maybe(CSIDriver, new)
    needed = after is not None and after.spec.prevent_pod_scheduling_if_missing
    return queue_if(before.spec.prevent_pod_scheduling_if_missing and not needed)


def after_csi_node_update(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where a driver came, or its limit grew from a number or none, was lifted, or went with it."""
    del pod
    before, after = _limits(expected(CSINode, old)), _limits(expected(CSINode, new))
    grew = any(name not in before or (limit or 0) > (before[name] or 0) for name, limit in after.items())
    lifted = any(after.get(name) is None for name, limit in before.items() if limit is not None)
    return queue_if(grew or lifted)


def _limits(csi_node: CSINode) -> dict[str, int | None]:
    return {driver.name: driver.limit for driver in csi_node.spec.drivers}


def after_pod_deletion(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the deleted pod had a volume that a driver may have counted."""
    del pod, new
    deleted = expected(Pod, old)
    if unplaced(deleted):
        return QueueingHint.SKIP
    return queue_if(deleted.template.derived(_may_have_been_counted))


def _may_have_been_counted(template: PodTemplate) -> bool:
    """Whether a volume of the template's pods is one that a driver may count. Asked for each waiting pod."""
    return any(
        volume.get("persistentVolumeClaim") is not None
        or volume.get("ephemeral") is not None
        or migration_of(volume) is not None
        for volume in template.spec.volumes
    )


def after_detaching(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the pod has claims of its own, or a volume of the attachment's driver."""
    del new
    attacher = expected(VolumeAttachment, old).spec.attacher
    migrations = (migration_of(volume) for volume in pod.spec.volumes)
    return queue_if(named_claims(pod) or any(m is not None and m.driver == attacher for m in migrations))
