"""From a pod that fits nowhere to the nodes that others could leave to it.

    potential nodes -> screening (all at once) -> dry runs, from a random start -> candidates

Source: pkg/scheduler/framework/preemption/preemption.go findCandidates, DryRunPreemption (Kubernetes v1.36).
"""

import random
from collections.abc import Sequence

import msgspec
import numpy as np

from berth.framework.attempts.diagnosis import Diagnosis, Rejections
from berth.framework.status import Code, PluginError, Status, unresolvable
from berth.preemption.candidates import Candidate, FoundCandidates, candidates_wanted
from berth.preemption.dry_run import NO_VICTIMS, DryRun, DryRunResult
from berth.preemption.screening import may_fit
from berth.snapshot.columns.growing import Rows

NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
SMALLEST_BATCH = 16


class Candidates(msgspec.Struct):
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


async def find_candidates(
    dry_run: DryRun, rejected: Diagnosis, chance: random.Random, *, percentage: int, absolute: int
) -> Candidates:
    """Try the nodes whose rejection may be lifted, from a random one on, until there are enough candidates.

    Nodes that the screening rules out are tried only where no other is a candidate: to say why.
    """
    potential = np.flatnonzero(rejected.rows_with(Code.UNSCHEDULABLE))
    diagnosis = Diagnosis(rejected.node_names, absent=NOT_HELPFUL)
    if not potential.size:
        return Candidates([], diagnosis)
    order = np.roll(potential, -chance.randrange(potential.size))
    found = FoundCandidates(candidates_wanted(potential.size, percentage, absolute))
    has_victims = dry_run.beneath.count[order] > 0
    promising, ruled_out = await _screened(dry_run, order[has_victims], diagnosis)
    await _try(dry_run, promising, found, diagnosis)
    if not found.all():
        await _try(dry_run, ruled_out, found, diagnosis)
        without = order[~has_victims]
        diagnosis.record(Rejections(without, np.ones(without.size, dtype=np.uint8), _no_victims))
    return Candidates(found.all(), diagnosis)


async def _screened(dry_run: DryRun, order: Rows, diagnosis: Diagnosis) -> tuple[Rows, Rows]:
    """The rows that may be candidates, and those that are none for a reason yet to be reported."""
    if order.size and dry_run.screens:
        among = np.zeros(len(diagnosis.node_names), dtype=bool)
        among[order] = True
        try:
            fits, why_not = await dry_run.without_victims(among)
        except PluginError:
            pass
        else:
            promising = fits[order]
            if len(dry_run.here) < len(dry_run.framework.plugins.filter):
                # Another plugin may come before the one that turned a node down, and own the rejection.
                return order[promising], order[~promising]
            diagnosis.rejections.extend(why_not.rejections)
            return order[promising], order[:0]
    attempt = dry_run.attempt
    promising = may_fit(dry_run.framework, attempt.state, attempt.nodes, dry_run.beneath)[order]
    return order[promising], order[~promising]


async def _try(dry_run: DryRun, order: Rows, found: FoundCandidates, diagnosis: Diagnosis) -> None:
    """Dry-run the nodes in this order, as many at a time as are still wanted."""
    begun = 0
    while begun < order.size and not found.enough:
        batch = order[begun : begun + max(found.wanted - len(found.all()), SMALLEST_BATCH)]
        begun += batch.size
        _take(batch, await dry_run.run(batch), found, diagnosis)


def _take(rows: Rows, outcomes: Sequence[DryRunResult], found: FoundCandidates, diagnosis: Diagnosis) -> None:
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
