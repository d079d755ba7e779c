"""The events after which a node may take more volumes."""

from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.objects.csi_migration import migration_of
from berth.objects.pod import Pod
from berth.objects.pod_volumes import claim_use, named_claims
from berth.objects.storage import CSINode, VolumeAttachment
from berth.plugins.pod_volumes import after_used_claim
from berth.plugins.queueing import expected, queue_if, unplaced


def registrations() -> list[ClusterEventWithHint]:
    """The plugin's events."""
    return [
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)),
        ClusterEventWithHint(ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), after_csi_node_update),
        ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deletion),
        ClusterEventWithHint(
            ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_used_claim
        ),
        ClusterEventWithHint(
            ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), after_detaching
        ),
    ]


def after_csi_node_update(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where a driver's limit grew; no limit counts as none left."""
    del pod
    before = {driver.name: driver.limit or 0 for driver in expected(CSINode, old).spec.drivers}
    drivers = expected(CSINode, new).spec.drivers
    return queue_if(any((driver.limit or 0) > before.get(driver.name, 0) for driver in drivers))


def after_pod_deletion(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the deleted pod had a volume that a driver may have counted."""
    del pod, new
    deleted = expected(Pod, old)
    if unplaced(deleted):
        return QueueingHint.SKIP
    return queue_if(any(claim_use(deleted, v) or migration_of(v) for v in deleted.spec.volumes))


def after_detaching(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the pod has claims of its own, or a volume of the attachment's driver."""
    del new
    attacher = expected(VolumeAttachment, old).spec.attacher
    migrations = (migration_of(volume) for volume in pod.spec.volumes)
    return queue_if(named_claims(pod) or any(m is not None and m.driver == attacher for m in migrations))
