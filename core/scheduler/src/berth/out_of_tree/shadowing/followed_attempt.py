"""An attempt that a plugin in shadow mode follows, and what it adds to the attempt's trace.

Source: docs/protocol.md "Shadow".
"""

from typing import Any

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord, Interval
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import nanoseconds
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.shadowing.comparison import ObservedChoice, ShadowOutcome
from berth.out_of_tree.shadowing.opinion import ShadowQuestion
from berth.snapshot.snapshot import Snapshot

PENDING = "pending"


class FollowedAttempt(msgspec.Struct):
    """An attempt, from the choice of a node, or the failure to find one, to its end.

    `asked` says that it is compared, not only followed. `record` is the attempt's own, None once others may
    read it; `state` is of the plugin's calls alone.
    """

    caller: Caller
    pod: Pod
    node_name: str
    record: CycleRecord | None
    state: CycleState
    started_ns: int
    asked: bool = False
    question: ShadowQuestion | None = None
    choice: ObservedChoice | None = None
    nodes: Snapshot | None = None
    static_generation: int = -1
    """The nodes' own, by which rows are the same as at the choice."""
    outcome: ShadowOutcome | None = None
    detail: str = ""
    nodes_rejected: int = 0
    reserve_sent: bool = False

    def name_of(self, row: int) -> str:
        """The name of the node in a row, while the node set is the attempt's."""
        nodes = self.nodes
        return nodes.names[row] if nodes and nodes.static_generation == self.static_generation else ""

    def note(self) -> None:
        """Add the comparison and the plugin's calls to the attempt's record, while that is open."""
        record, outcome = self.record, self.outcome
        if record is None or not self.asked:
            return
        facts: dict[str, Any] = {"berth.shadow.outcome": PENDING if outcome is None else outcome.value}
        facts["berth.shadow.nodes_rejected"] = self.nodes_rejected
        if self.detail:
            facts["berth.shadow.detail"] = self.detail
        at, now = len(record.intervals), nanoseconds()
        record.intervals.append(Interval(self.caller.plugin, self.started_ns, now, -1, facts))
        for call in self.state.read(CycleRecord).intervals:
            record.intervals.append(msgspec.structs.replace(call, parent=at, ended_ns=call.ended_ns or now))
        self.record = None
