"""A pod in the scheduling queue, with the history of its attempts.

Source: pkg/scheduler/framework/types.go QueuedPodInfo (Kubernetes v1.36).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.framework.cluster_event import ClusterEvent
from berth.framework.cycle_budget import CycleMeter
from berth.objects.pod import Pod
from berth.objects.pod_template import PodTemplate

if TYPE_CHECKING:
    from berth.framework.queued_group import QueuedGroupInfo

KEY_PARTS = 8
SortKey = tuple[int, ...]
"""KEY_PARTS numbers, compared in order, the lowest first."""
NO_KEY: SortKey = (0,) * KEY_PARTS


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """One pod's record in the queue.

    Units: all times in seconds of the monotonic clock: a step of the wall clock changes no wait.
    """

    pod: Pod
    timestamp: float
    key: str = field(init=False)
    """Its key in the queue: the pod's, or for a group its type, namespace and name."""
    group: "QueuedGroupInfo | None" = field(default=None, repr=False)
    """The group with which the pod waits, None for one that waits alone."""
    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration: float | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gating_message: str = ""
    """What the gating plugin said, cut short; empty while a sidecar is asked."""
    gating_plugin_events: tuple[ClusterEvent, ...] = ()
    asked_as: Pod | None = None
    """The version of the pod about which sidecars are asked whether it may be queued."""
    gates_passed: frozenset[str] = frozenset()
    """The sidecars that let this version pass, while others are still asked."""
    sort_key: SortKey = NO_KEY
    """The place that a QueueSort sidecar gave the pod."""
    sort_key_asked: PodTemplate | None = None
    """What the pod was when that plugin was asked."""
    last_trace: bytes = b""
    """Trace id and root span id of the last attempt."""
    was_flushed_from_unschedulable: bool = False
    last_flush: float = 0.0
    """When the leftover flush last had the pod tried."""
    rests: bool = False
    """Whether the pod came back with its group, without any event that may have helped it since."""

    meter: CycleMeter | None = None
    """What the cycle that it is in, or was in last, has used."""
    over_budget_count: int = 0
    """How many cycles in a row went over their budgets."""
    over_budget_seconds: float = 0.0
    """How much CPU those used."""
    held_until: float | None = None
    """The time before which nothing brings the pod back, because it went over budget; None for none."""

    def __post_init__(self) -> None:
        self.key = self.pod.metadata.key

    @property
    def priority(self) -> int:
        """The priority by which the queue is ordered."""
        return self.pod.template.spec.priority or 0

    @property
    def members(self) -> "Sequence[QueuedPodInfo]":
        """The records of the pods that wait as one: of a single pod its own."""
        return (self,)

    @property
    def gated(self) -> bool:
        """Whether a PreEnqueue plugin holds the pod back."""
        return bool(self.gating_plugin)

    @property
    def rejectors(self) -> set[str]:
        """The plugins whose hints decide whether an event brings the pod back."""
        return self.unschedulable_plugins | self.pending_plugins

    def rejected_by(self, plugin: str) -> bool:
        """Whether that plugin is one of the rejectors."""
        return plugin in self.unschedulable_plugins or plugin in self.pending_plugins

    @property
    def failed(self) -> bool:
        """Whether the last attempt came to nothing because something broke, not by a plugin's rejection."""
        return not self.rejectors
