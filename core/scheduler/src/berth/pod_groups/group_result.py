"""What came of trying a group: for the group, and for each of its pods.

Source: pkg/scheduler/schedule_one_podgroup.go (Kubernetes v1.36).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from berth.framework.attempts.attempt import Attempt
from berth.framework.interface import NominatingInfo
from berth.framework.mirrors.group_trees import AnyGroup, key_of
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_group_states import AnyKey, GroupKey

GROUP_IS_UNSCHEDULABLE = "pod group is unschedulable"


def group_unschedulable(*reasons: str) -> Status:
    """A rejection of the group as a whole, or of a pod on its account: no plugin is to blame."""
    return Status(Code.UNSCHEDULABLE, reasons, error=PluginError(GROUP_IS_UNSCHEDULABLE))


UNSCHEDULABLE = group_unschedulable()
WAITING = group_unschedulable("pod group is waiting for preemption to complete")


@dataclass(slots=True)
class MemberResult:
    """How far one pod came.

    `node_name` is the node that it was placed on for the time of the trial, empty for a pod that failed. A
    pod that requires preemption has one, and the status of a pod that fits nowhere.
    """

    attempt: Attempt
    status: Status
    node_name: str = ""
    requires_preemption: bool = False
    nominating_info: NominatingInfo | None = None
    permit: Status = SUCCESS
    algorithm_ns: int = 0


@dataclass(slots=True)
class GroupResult:
    """The group's status and, by UID in the order they were tried, what came of its pods.

    `waits_on_preemption` goes with the status Unschedulable. `room` is for how many pods a node was found in
    all placements together, where the group fits in none of several.
    """

    status: Status = UNSCHEDULABLE
    waits_on_preemption: bool = False
    members: dict[str, MemberResult] = field(default_factory=dict)
    room: int = 0
    decided: Status = UNSCHEDULABLE
    """The group's status before preemption."""
    of_untried: Status | None = None
    """What a pod that was not tried is rejected with; None: the group's status."""
    of_placed: Status | None = None
    """What a pod with a node is rejected with, as its group is; None: what Permit said of it."""
    nominations: Mapping[str, NominatingInfo] = field(default_factory=dict)
    """The nodes that preemption frees for pods, by UID."""
    branch: "Branch | None" = None
    """Of a tree: what came of each group of it."""

    @property
    def broken(self) -> bool:
        """Whether something broke, as opposed to the group being turned down."""
        return not (self.status.ok or self.status.rejected)

    @property
    def fits(self) -> bool:
        """Whether the group has a place, now or once others have left."""
        return self.status.ok or self.waits_on_preemption

    @property
    def assignments(self) -> Sequence[tuple[Pod, str]]:
        """The pods that would be placed, and where."""
        return [(one.attempt.pod, one.node_name) for one in self.members.values() if one.node_name]

    @property
    def name(self) -> str:
        """The result as metrics name it."""
        if self.waits_on_preemption:
            return "waiting_on_preemption"
        return "scheduled" if self.status.ok else "unschedulable" if self.status.rejected else "error"

    def because(self, more: Sequence[str]) -> "GroupResult":
        """The same result with more reasons."""
        reasons = (*self.status.own_reasons, *more)
        return replace(self, status=msgspec.structs.replace(self.status, own_reasons=reasons))

    def permitted(self, *, requires_preemption: bool) -> None:
        """A pod was permitted to go: so may the group, unless victims have to leave first."""
        self.status, self.waits_on_preemption = (WAITING, True) if requires_preemption else (SUCCESS, False)

    def broke(self, status: Status) -> None:
        """A pod's attempt broke: the whole group's does."""
        self.status = failed(f"failed to schedule other pod from a pod group: {status.message}")
        self.waits_on_preemption = False


@dataclass(slots=True)
class Branch:
    """What came of a group of the tree, and of those below it as far as they were tried."""

    group: AnyGroup
    result: GroupResult
    children: "list[Branch]" = field(default_factory=list)

    @property
    def key(self) -> AnyKey:
        """The group's key."""
        return key_of(self.group)

    def placed(self) -> Iterator["Branch"]:
        """The pod groups with a place: they and all groups above them succeeded."""
        if self.result.status.ok:
            if isinstance(self.key, GroupKey):
                yield self
            for child in self.children:
                yield from child.placed()

    def every(self) -> Iterator["Branch"]:
        """This group and all below it that were tried."""
        yield self
        for child in self.children:
            yield from child.every()
