"""Pods that count on nodes of the snapshot only while a pod-group cycle tries how things would be.

The cluster knows nothing of them: each trial is taken back, the latest first, before the cycle ends.

Source: pkg/scheduler/backend/cache/snapshot.go AssumePod, ForgetPod, forgetAllAssumedPods (Kubernetes v1.36).
"""

from typing import NamedTuple

from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import RowState, Snapshot


class _Trial(NamedTuple):
    sign: int
    info: PodInfo
    before: RowState


class SnapshotTrials:
    """The trials that stand, as a stack over one snapshot, whose rows stay where they are meanwhile."""

    def __init__(self) -> None:
        self._stack: list[_Trial] = []

    def __len__(self) -> int:
        return len(self._stack)

    def begin(self, snapshot: Snapshot, sign: int, info: PodInfo) -> None:
        """Count a pod in (1) or out (-1) on the node that it names.

        Raises: KeyError where there is no such node.
        """
        row = snapshot.row_of[info.pod.node_name]
        self._stack.append(_Trial(sign, info, snapshot.row_state(row)))
        snapshot.count_apart(row, sign, info)

    def undo(self, snapshot: Snapshot) -> tuple[int, PodInfo]:
        """Take the latest back; its sign and pod. Raises: IndexError where nothing is tried."""
        trial = self._stack.pop()
        row = snapshot.row_of[trial.info.pod.node_name]
        snapshot.put_back(row, trial.before, trial.sign, trial.info)
        return trial.sign, trial.info
