"""Compares an attempt's decision with the one that it would have had with a plugin in shadow mode.

Pure arithmetic on vectors over nodes, without calls.

Source: docs/protocol.md "Shadow"; docs/decisions/0016-shadow.md.
"""

from collections import Counter, deque
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np

from berth.framework.interface import ReasonCodes, Scores
from berth.snapshot.columns.growing import Ints, Rows

LATEST = 10


class ShadowOutcome(StrEnum):
    """How an attempt would have gone on with the plugin; the first that applies counts."""

    SKIPPED = "skipped"
    FAILED = "failed"
    OUTDATED = "outdated"
    GATED = "gated"
    REJECTED = "rejected"
    MOVED = "moved"
    REFUSED = "refused"
    ROOM = "room"
    SAME = "same"


DIFFERENCES = frozenset(
    {
        ShadowOutcome.GATED,
        ShadowOutcome.REJECTED,
        ShadowOutcome.MOVED,
        ShadowOutcome.REFUSED,
        ShadowOutcome.ROOM,
    }
)

Verdict = tuple[ShadowOutcome, str]
"""How the attempt would have gone on, and what the plugin says to that."""


class ObservedChoice(msgspec.Struct, frozen=True):
    """The scheduler's choice of a node.

    Shapes: rows intp (k,), the nodes that were left to choose from; totals int64 (k,), what they scored.
    """

    row: int
    rows: Rows
    totals: Ints

    def nodes_rejected(self, codes: ReasonCodes) -> int:
        """How many of the feasible nodes the plugin rejects. Shapes: codes (n,)."""
        return int(np.count_nonzero(codes[self.rows]))

    def without_rejected(self, codes: ReasonCodes) -> "ObservedChoice":
        """The choice restricted to the nodes that the plugin does not reject. Shapes: codes (n,)."""
        passed = codes[self.rows] == 0
        return ObservedChoice(self.row, self.rows[passed], self.totals[passed])

    def preferred_row(self, scores: Scores, weight: int) -> int | None:
        """The best row with these scores added; None where no row is better than the chosen one.

        Shapes: scores int64 (k,), final, for `rows`.
        """
        totals = self.totals + weight * scores
        best = int(totals.argmax())
        return None if totals[self.rows == self.row].max() == totals[best] else int(self.rows[best])


class ShadowComparison(NamedTuple):
    """The comparison of one attempt.

    `node` is empty where none was chosen. `detail` are the plugin's reasons, the node that it would prefer,
    or what it would do to make room.
    """

    outcome: ShadowOutcome
    pod: str
    node: str
    detail: str = ""
    nodes_rejected: int = 0


class ShadowTally(msgspec.Struct):
    """The counts of all comparisons since the plugin has been in shadow mode."""

    attempts: Counter[ShadowOutcome] = msgspec.field(default_factory=Counter)
    nodes_rejected: int = 0
    latest: deque[dict[str, Any]] = msgspec.field(default_factory=lambda: deque(maxlen=LATEST))
    """The last attempts that would have gone another way, or that the plugin failed at."""

    def add(self, comparison: ShadowComparison) -> None:
        """Count an attempt."""
        outcome = comparison.outcome
        self.attempts[outcome] += 1
        self.nodes_rejected += comparison.nodes_rejected
        if outcome in DIFFERENCES or outcome is ShadowOutcome.FAILED:
            facts = {"pod": comparison.pod, "node": comparison.node, "outcome": outcome.value}
            self.latest.append(facts | {"detail": comparison.detail})

    def report(self) -> dict[str, Any]:
        """For `berth plugin describe`."""
        return {
            "attempts": {each.value: self.attempts[each] for each in ShadowOutcome if self.attempts[each]},
            "nodesRejected": self.nodes_rejected,
            "latest": list(self.latest),
        }
