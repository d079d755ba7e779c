"""PreFilter state that counts pods, and follows simulated additions and removals."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import PreFilterExtensions
from berth.framework.status import SUCCESS, Status
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot


class CountedPods(Protocol):
    """Counts of pods."""

    def follow(self, other: PodInfo, node: Snapshot, sign: int) -> None:
        """Count a pod in (sign 1) or out (-1) on a table of one node."""

    def follow_rows(self, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int) -> None:
        """Count pods in or out on rows of a table, each of which is simulated on its own."""


class CountsPods(PreFilterExtensions):
    """A plugin whose `pre_filter` writes `counted` into the cycle's state."""

    follows_side_by_side = True
    counted: ClassVar[type[CountedPods]]

    def add_pod(self, state: CycleState, pod: Pod, other: PodInfo, node: Snapshot) -> Status:
        """Count the other pod in."""
        del pod
        state.read(self.counted).follow(other, node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, other: PodInfo, node: Snapshot) -> Status:
        """Count the other pod out."""
        del pod
        state.read(self.counted).follow(other, node, -1)
        return SUCCESS

    def follow_pods(
        self, state: CycleState, pod: Pod, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int
    ) -> None:
        """Count the other pods in or out, each on its row."""
        del pod
        state.read(self.counted).follow_rows(others, nodes, sign)
