"""What came of trying a group: for the group, and for each of its pods.

Source: pkg/scheduler/schedule_one_podgroup.go (Kubernetes v1.36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from berth.framework.attempts.attempt import Attempt
from berth.framework.interface import NominatingInfo
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed
from berth.objects.pods.pod import Pod

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

    @property
    def broken(self) -> bool:
        """Whether something broke, as opposed to the group being turned down."""
        return not (self.status.ok or self.status.rejected)

    @property
    def successful(self) -> bool:
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

    def permitted(self, *, requires_preemption: bool) -> None:
        """A pod was permitted to go: so may the group, unless victims have to leave first."""
        self.status, self.waits_on_preemption = (WAITING, True) if requires_preemption else (SUCCESS, False)

    def broke(self, status: Status) -> None:
        """A pod's attempt broke: the whole group's does."""
        self.status = failed(f"failed to schedule other pod from a pod group: {status.message}")
        self.waits_on_preemption = False
