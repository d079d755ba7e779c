"""Cycles that lists of pods make long: they give everything else its turn, and end with their budgets."""

import pytest

from berth.framework.cycle_budget import CycleMeter, OverBudgetError
from tests.unit.preemption.kit import node, placed, preemptor, stage

LOOK_SECONDS = 0.001
VICTIMS = 40


class Ticking:
    """A clock on which each look takes some CPU: time is work, counted."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        self.seconds += LOOK_SECONDS
        return self.seconds

    def cpu(self):
        return self.seconds


async def dry_run(limit_seconds):
    """How many turns others have during a dry run of preemption on a node with many pods."""
    turns = []

    async def breathe():
        turns.append(True)

    meter = CycleMeter(limit_seconds, Ticking(), breathe)
    crowd = [placed(f"p{i}", "100m", 1, "n1") for i in range(VICTIMS)]
    there = stage([node("n1", cpu="4")], crowd)
    request = await there.request(preemptor("2"))
    request.state.meter = meter
    await meter.timed(there.preemption.preempt(request))
    return len(turns)


async def test_dry_runs_of_preemption_give_others_their_turn():
    assert await dry_run(1000.0) > VICTIMS


async def test_dry_runs_of_preemption_end_with_the_budget():
    with pytest.raises(OverBudgetError, match="scheduling cycle exceeded its budget"):
        await dry_run(0.05)
