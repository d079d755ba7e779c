"""One attempt at one pod, as it is handed from step to step of a cycle."""

from dataclasses import dataclass

from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.objects.pod import Pod
from berth.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Attempt:
    """The pod, the nodes it is tried on, what plugins remember of it, and the record of it all."""

    pod: Pod
    nodes: Snapshot
    state: CycleState
    record: CycleRecord

    def on(self, nodes: Snapshot, state: CycleState) -> "Attempt":
        """The same attempt on other nodes with another state, for a simulation."""
        return Attempt(self.pod, nodes, state, self.record)
