"""From a pod that fits nowhere to the nodes that others could leave to it.

    potential nodes -> screening (all at once) -> dry runs, from a random start -> candidates

Source: spec/core.md 6.2-6.4.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from berth.framework.diagnosis import Diagnosis, Rejections
from berth.framework.status import Code, Status, unresolvable
from berth.preemption.candidates import Candidate, Found, candidates_wanted
from berth.preemption.dry_run import NO_VICTIMS, DryRun, Outcome
from berth.preemption.screening import Screening, may_fit
from berth.snapshot.columns import Mask, Rows

NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
SMALLEST_BATCH = 16


@dataclass(slots=True)
class Candidates:
    """The candidates, those without a violation first; where there are none, every node's reason.

    `diagnosis` knows only the nodes that were looked at.
    """

    found: list[Candidate]
    diagnosis: Diagnosis

    @property
    def errors(self) -> list[str]:
        """What went wrong on nodes."""
        statuses = self.diagnosis.single.values()
        return [status.message for status in statuses if status.code is Code.ERROR]


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """Looks for candidates among nodes whose rejection may be lifted."""

    screening: Screening
    chance: random.Random

    async def find(self, dry_run: DryRun, rejected: Diagnosis, percentage: int, absolute: int) -> Candidates:
        """Try nodes from a random one on until there are enough candidates.

        Nodes that the screening rules out are tried only where no other is a candidate: to say why.
        """
        nodes = dry_run.attempt.nodes
        potential = np.flatnonzero(rejected.rows_with(Code.UNSCHEDULABLE))
        diagnosis = Diagnosis(nodes.names, absent=NOT_HELPFUL)
        if not potential.size:
            return Candidates([], diagnosis)
        start = self.chance.randrange(potential.size)
        found = Found(candidates_wanted(potential.size, percentage, absolute))
        has_victims, promising = self._screen(dry_run)
        order = np.roll(potential, -start)
        await _try(dry_run, order[promising[order]], found, diagnosis)
        if not found.all():
            await _try(dry_run, order[has_victims[order] & ~promising[order]], found, diagnosis)
            without = np.sort(order[~has_victims[order]])
            diagnosis.record(Rejections(without, np.ones(without.size, dtype=np.uint8), _no_victims))
        return Candidates(found.all(), diagnosis)

    def _screen(self, dry_run: DryRun) -> tuple[Mask, Mask]:
        """Which nodes have anybody to evict, and which of them could be candidates.

        Shapes: both bool (n,).
        """
        attempt = dry_run.attempt
        beneath = self.screening.beneath(attempt.pod.priority, attempt.nodes)
        has_victims: Mask = beneath.count > 0
        return has_victims, has_victims & may_fit(dry_run.framework, attempt.state, attempt.nodes, beneath)


async def _try(dry_run: DryRun, order: Rows, found: Found, diagnosis: Diagnosis) -> None:
    """Dry-run the nodes in this order, as many at a time as are still wanted."""
    begun = 0
    while begun < order.size and not found.enough:
        batch = order[begun : begun + max(found.wanted - len(found.all()), SMALLEST_BATCH)]
        begun += batch.size
        _take(batch, await dry_run.run(batch), found, diagnosis)


def _take(rows: Rows, outcomes: Sequence[Outcome], found: Found, diagnosis: Diagnosis) -> None:
    for row, outcome in zip(rows.tolist(), outcomes, strict=True):
        if found.enough:
            return
        if isinstance(outcome, Candidate):
            found.add(outcome)
        else:
            diagnosis.single[row] = outcome


def _no_victims(code: int) -> Status:
    del code
    return NO_VICTIMS
