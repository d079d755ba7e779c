"""Cluster events, and what plugins say of them for pods that wait.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go ClusterEvent; pkg/scheduler/framework/types.go
(Kubernetes v1.36).
"""

from collections.abc import Callable
from enum import Enum, IntFlag, StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate


class EventResource(StrEnum):
    """What an event is about. Plugins register POD; the finer kinds only ever arrive.

    UNSCHEDULABLE_POD is up to Kubernetes 1.36 what is split since: events of pods without a node in
    UNSCHEDULED_POD, and those of the waiting pod itself in TARGET_POD.
    """

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    WILDCARD = "*"


class ActionType(IntFlag):
    """What happened, with upstream's bits."""

    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191

    @property
    def text(self) -> str:
        """Upstream's name; empty for combinations that have none."""
        return _ACTION_TEXTS.get(int(self), "")


_ACTION_TEXTS = {
    0: "None",
    1: "Add",
    2: "Delete",
    4: "UpdateNodeAllocatable",
    8: "UpdateNodeLabel",
    16: "UpdateNodeTaint",
    32: "UpdateNodeCondition",
    64: "UpdateNodeAnnotation",
    128: "UpdateNodeDeclaredFeature",
    256: "UpdatePodLabel",
    512: "UpdatePodScaleDown",
    1024: "UpdatePodToleration",
    2048: "UpdatePodSchedulingGatesEliminated",
    4096: "UpdatePodGeneratedResourceClaim",
    8188: "Update",
    8191: "All",
}


@lru_cache(maxsize=1024)
def _label(resource: str, action: ActionType) -> str:
    return f"{resource}{action.text}"


_POD_KINDS = frozenset(
    {
        EventResource.ASSIGNED_POD,
        EventResource.UNSCHEDULABLE_POD,
        EventResource.UNSCHEDULED_POD,
        EventResource.TARGET_POD,
    }
)


class ClusterEvent(msgspec.Struct, frozen=True):
    """A resource and what happened to it; `custom_label` replaces the label made of both."""

    resource: EventResource | str
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The event's name in metrics and logs, such as `NodeAdd`."""
        return self.custom_label or _label(self.resource, self.action)

    @property
    def wildcard(self) -> bool:
        """Whether the event stands for anything at all."""
        return self.resource == EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: "ClusterEvent") -> bool:
        """Whether a registration for this event covers the incoming one.

        The numeric comparison is upstream's: a general Update only reaches registrations of the full mask.
        """
        if self.wildcard:
            return True
        return (
            self._covers(incoming.resource)
            and bool(self.action & incoming.action)
            and incoming.action <= self.action
        )

    def _covers(self, resource: str) -> bool:
        if self.resource in (EventResource.WILDCARD, resource):
            return True
        return self.resource == EventResource.POD and resource in _POD_KINDS


class QueueingHint(Enum):
    """What a plugin says: the event may make the pod schedulable, or it cannot.

    ASK is no answer yet: the plugin is a sidecar, which is asked beside the queue's work.
    """

    SKIP = "QueueSkip"
    QUEUE = "Queue"
    ASK = "Ask"


QueueingHintFn = Callable[[Pod, Any, Any], QueueingHint]
"""(waiting pod, old object or None, new object or None) -> hint; an exception counts as QUEUE."""


class ConcernedPods(NamedTuple):
    """The only waiting pods that an event may help, where that is known without asking about each.

    That is the pod of this key, "" for none, and all pods whose template says so. A hint that has a method
    `concerned(old, new)` gives them, or None where it has to be asked about each pod.
    """

    key: str
    by_template: Callable[[PodTemplate], bool]


class ClusterEventWithHint(msgspec.Struct, frozen=True):
    """A registration; without a hint function the answer is always QUEUE.

    `opens_gate` says whether the event may change what the plugin's PreEnqueue answers; otherwise the pods
    that it gates are passed over.
    """

    event: ClusterEvent
    hint: QueueingHintFn | None = None
    opens_gate: bool = True


FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")

LABEL_SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
LABEL_BACKOFF_COMPLETE = "BackoffComplete"
LABEL_POP_FROM_BACKOFF = "PopFromBackoffQ"
