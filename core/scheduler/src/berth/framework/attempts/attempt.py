"""One attempt at one pod, as it is handed from step to step of a cycle."""

import msgspec
import numpy as np

from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Mask, Rows
from berth.snapshot.snapshot import Snapshot


class Attempt(msgspec.Struct, frozen=True):
    """The pod, the nodes it is tried on, what plugins remember of it, and the record of it all.

    `within` are the only rows that the pod may go to, those of its group's placement; None stands for all.
    """

    pod: Pod
    nodes: Snapshot
    state: CycleState
    record: CycleRecord
    within: Rows | None = None

    @property
    def meter(self) -> CycleMeter:
        """What the cycle has used of its budget."""
        return self.state.meter

    @property
    def node_count(self) -> int:
        """How many nodes the pod may go to as far as its group is concerned."""
        return len(self.nodes) if self.within is None else self.within.size

    def mask_within(self) -> Mask:
        """Those nodes. Shapes: result bool (n,)."""
        mask = np.full(len(self.nodes), self.within is None)
        if self.within is not None:
            mask[self.within] = True
        return mask

    def allows(self, row: int) -> bool:
        """Whether the node is one of them."""
        return self.within is None or row in self.within

    def on(self, nodes: Snapshot, state: CycleState) -> "Attempt":
        """The same attempt on other nodes with another state, for a simulation."""
        return Attempt(self.pod, nodes, state, self.record)
