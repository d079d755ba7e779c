"""No plugin of this process works for long without a look at the cycle's meter, whatever a pod says."""

import asyncio
import sys

import pytest

from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import CpuTime, CycleMeter
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from tests.hostile.deciding import a_core, a_pod
from tests.hostile.growth import ROWS, RUNS

PART = 16
"""Each row has so many times fewer entries than the API server takes."""
MOST_CALLS = 650_000 // PART
"""About 100 ms of calls, where as many entries as the API server takes have `PART` times as many."""

LONGER = {
    "node affinity 6": "NodeAffinity matches terms in one go",
    "node affinity 7": "NodeAffinity matches terms in one go",
    "node preferences": "NodeAffinity matches terms in one go",
    "resources": "amounts are read in one go for the signature",
    "containers": "amounts are read in one go for the signature",
    "sidecar containers": "amounts are read in one go for the signature",
    "disks": "volumes are read in one go for the signature",
    "monitors": "a disk's rivals are listed in one go",
}
"""Rows that keep others waiting for longer, up to twice as long, and why."""


class CallsBetweenLooks:
    """A clock on which no time passes, and the most calls of functions between two looks at it."""

    def __init__(self):
        self.calls = self.last = self.most = 0

    def note(self, _frame, event, _argument):
        self.calls += event in {"call", "c_call"}

    def monotonic(self):
        self.most, self.last = max(self.most, self.calls - self.last), self.calls
        return 0.0

    cpu = monotonic


async def no_turn():
    pass


def most_calls(pod):
    """The longest part of a cycle of that pod that no look at the meter interrupts. Units: calls."""
    clock, core = CallsBetweenLooks(), a_core()
    meter = CycleMeter(1000.0, CpuTime(clock), no_turn)
    state, record = CycleState(meter), CycleRecord(pod, "", 1, b"", b"", 0, 0, 0)
    state.write(CycleRecord, record)

    async def cycle():
        await meter.timed(core.algorithm.decide(core.framework, Attempt(pod, core.snapshot, state, record)))

    before = sys.getprofile()
    sys.setprofile(clock.note)
    try:
        asyncio.run(cycle())
    finally:
        sys.setprofile(before)
    return clock.most


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind == "Pod"], ids=lambda row: row.field)
def test_a_cycle_looks_at_its_meter_often_enough(row):
    said = row.entry(row.at_the_limit() // PART)
    fields = {**said, "labels": {**said.get("labels", {}), "run": f"r{next(RUNS)}"}}

    assert most_calls(a_pod("hostile", **fields)) < MOST_CALLS * (2 if row.field in LONGER else 1)
