"""A pod group in the scheduling queue with those of its pods that wait: one entity, popped and tried as one.

Source: pkg/scheduler/framework/types.go QueuedPodGroupInfo (Kubernetes v1.37).
"""

from bisect import insort
from dataclasses import dataclass, field

from berth.framework.queued_pod import QueuedPodInfo
from berth.objects.pod_groups import PodGroup
from berth.snapshot.pod_group_states import GroupKey


def entity_key(key: GroupKey) -> str:
    """A group's key in the queue; no pod has one of three parts."""
    return f"podgroup/{key}"


def turn_in_group(member: QueuedPodInfo) -> tuple[int, int, float, str]:
    """What sorts the pods of a group: priority, those tried more often, those queued earlier, name."""
    return -member.pod.priority, -member.attempts, member.timestamp, member.pod.name


@dataclass(slots=True, eq=False)
class QueuedGroupInfo(QueuedPodInfo):
    """A group's record in the queue; what is not overridden here is the history of its own attempts.

    `pod` is that of the first member: all members are of one profile and namespace, or the attempt fails.
    Each member has its own rejectors, attempts and times; its backoff is not used. At least one member.
    """

    pod_group: PodGroup = field(kw_only=True)
    place: str = ""
    """The part of the queue that it is in; empty while it is in none."""
    members: list[QueuedPodInfo] = field(init=False)

    def __post_init__(self) -> None:
        self.key = entity_key(self.group_key)
        self.members = []

    @classmethod
    def of(cls, group: PodGroup, first: QueuedPodInfo, now: float) -> "QueuedGroupInfo":
        """A group that was not tried yet, with its first pod."""
        made = cls(first.pod, now, pod_group=group)
        made.put(first)
        return made

    @property
    def group_key(self) -> GroupKey:
        """The group's namespace and name."""
        return GroupKey(self.pod_group.namespace, self.pod_group.name)

    @property
    def priority(self) -> int:
        """The group's priority, 0 where it has none."""
        return self.pod_group.spec.priority or 0

    def put(self, member: QueuedPodInfo) -> None:
        """Let a pod wait with the group. Cost: O(pods)."""
        insort(self.members, member, key=turn_in_group)
        self.pod, member.group = self.members[0].pod, self

    def take(self, member: QueuedPodInfo) -> None:
        """Let a pod wait with the group no longer. Cost: O(pods)."""
        self.members.remove(member)
        member.group = None
        if self.members:
            self.pod = self.members[0].pod

    def renew(self, member: QueuedPodInfo) -> None:
        """Take note that a member's pod is another version."""
        if member is self.members[0]:
            self.pod = member.pod

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
