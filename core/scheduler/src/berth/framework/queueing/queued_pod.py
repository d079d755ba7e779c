"""A pod in the scheduling queue with the history of its attempts, and a pod group with its waiting pods.

Source: pkg/scheduler/framework/types.go QueuedPodInfo (Kubernetes v1.36), QueuedPodGroupInfo (v1.37).
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.cluster_event import ClusterEvent
from berth.framework.mirrors.group_trees import AnyGroup, key_of, named
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.snapshot.pod_group_states import AnyKey

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


def turn_in_group(member: QueuedPodInfo) -> tuple[int, int, float, str]:
    """What sorts the pods of a group: priority, those tried more often, those queued earlier, name."""
    return -member.pod.priority, -member.attempts, member.timestamp, member.pod.name


@dataclass(slots=True, eq=False)
class QueuedGroupInfo(QueuedPodInfo):
    """A pod group's record in the queue: one entity, popped and tried as one.

    What is not overridden here is the history of its own attempts.

    `pod` is that of the first member: all members are of one profile and namespace, or the attempt fails.
    Each member has its own rejectors, attempts and times; its backoff is not used. At least one member.
    """

    root: AnyGroup = field(kw_only=True)
    """The group: a pod group without parent, or the root of a tree, with the pods of all its pod groups."""
    place: str = ""
    """The part of the queue that it is in; empty while it is in none."""
    members: list[QueuedPodInfo] = field(init=False)
    unchecked: dict[str, QueuedPodInfo] = field(init=False, repr=False)
    """The members, by key, that PreEnqueue plugins did not let pass yet, as their pods are now."""
    holder: QueuedPodInfo | None = field(default=None, repr=False)
    """The member that holds the group back; None where none does."""

    def __post_init__(self) -> None:
        self.key = named(self.group_key)
        self.members, self.unchecked = [], {}

    @classmethod
    def of(cls, group: AnyGroup, first: QueuedPodInfo, now: float) -> "QueuedGroupInfo":
        """A group that was not tried yet, with its first pod."""
        made = cls(first.pod, now, root=group)
        made.put(first)
        return made

    @property
    def group_key(self) -> AnyKey:
        """The group's key."""
        return key_of(self.root)

    @property
    def priority(self) -> int:
        """The group's priority, 0 where it has none."""
        return self.root.spec.priority or 0

    def put(self, member: QueuedPodInfo) -> None:
        """Let a pod wait with the group. Cost: O(pods)."""
        insort(self.members, member, key=turn_in_group)
        self.pod, member.group = self.members[0].pod, self
        self.unchecked[member.key] = member

    def take(self, member: QueuedPodInfo) -> None:
        """Let a pod wait with the group no longer. Cost: O(pods)."""
        self.members.remove(member)
        self.unchecked.pop(member.key, None)
        self.holder = None if self.holder is member else self.holder
        member.group = None
        if self.members:
            self.pod = self.members[0].pod

    def renew(self, member: QueuedPodInfo) -> None:
        """Take note that a member's pod is another version."""
        self.unchecked[member.key] = member
        if member is self.members[0]:
            self.pod = member.pod

    def replace_members(self, members: Iterable[QueuedPodInfo]) -> None:
        """Let these pods wait with the group and no others, none of them checked. Cost: O(pods log pods)."""
        self.members, self.unchecked = sorted(members, key=turn_in_group), {}
        for member in self.members:
            member.group, self.unchecked[member.key] = self, member
        if self.members:
            self.pod = self.members[0].pod

    def check_all_again(self) -> None:
        """Have PreEnqueue plugins asked about all members again, as they are others now."""
        self.unchecked = {member.key: member for member in self.members}

    @property
    def rejectors(self) -> set[str]:
        """The plugin that holds the group back, else those that rejected one of its pods."""
        if self.gating_plugin:
            return {self.gating_plugin}
        return set().union(*(member.rejectors for member in self.members))

    @property
    def failed(self) -> bool:
        """Whether something broke in the group's last attempt."""
        return self.consecutive_errors_count > 0
