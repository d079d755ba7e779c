"""No plugin of this process works for long without a look at the cycle's meter, whatever objects say."""

import asyncio
import sys

import pytest

from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import CpuTime, CycleMeter
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from tests.hostile.growth_rows import ROWS

PART = 16
"""Rows of many entries have so many times fewer than the API server takes."""
MANY = 1_000
MAX_CALLS = 650_000
"""About 100 ms of calls."""
SELECTOR = "a selector is compiled in one go"
TERMS = "terms are matched in one go"
LONGER = {
    "Service: selector": SELECTOR,
    "ReplicationController: selector": SELECTOR,
    "ReplicaSet: matchLabels": SELECTOR,
    "StatefulSet: matchLabels": SELECTOR,
    "PersistentVolumeClaim: matchLabels": SELECTOR,
    "CSIStorageCapacity: matchLabels": SELECTOR,
    "CSIStorageCapacity: matchExpressions": SELECTOR,
    "PersistentVolume: terms, of a claim that waits": TERMS,
    "PersistentVolume: terms, of a bound claim": TERMS,
    "ResourceSlice: node selector": TERMS,
    "ResourceClaim: node selector of the allocation": TERMS,
    "StorageClass: allowedTopologies": TERMS,
    "StorageClass: expressions of a topology": TERMS,
}
"""Rows that keep others waiting for longer, up to seven times as long, and why."""


class CallsBetweenLooks:
    """A clock on which no time passes, and the largest number of calls between two looks at it."""

    def __init__(self):
        self.calls = self.last = self.longest = 0

    def note(self, _frame, event, _argument):
        self.calls += event in {"call", "c_call"}

    def monotonic(self):
        self.longest, self.last = max(self.longest, self.calls - self.last), self.calls
        return 0.0

    cpu = monotonic


async def no_turn():
    pass


def longest_turn(cycle):
    """The longest part of a cycle that no look at the meter interrupts. Units: calls."""
    clock = CallsBetweenLooks()
    meter = CycleMeter(1000.0, CpuTime(clock), no_turn)
    state, record = CycleState(meter), CycleRecord(cycle.pod, "", 1, b"", b"", 0, 0, 0)
    state.write(CycleRecord, record)
    attempt = Attempt(cycle.pod, cycle.snapshot, state, record)

    async def run():
        await meter.timed(cycle.algorithm.decide(cycle.framework, attempt))

    before = sys.getprofile()
    sys.setprofile(clock.note)
    try:
        asyncio.run(run())
    finally:
        sys.setprofile(before)
    return clock.longest


@pytest.mark.parametrize("row", [row for row in ROWS if row.cycle], ids=str)
def test_a_cycle_looks_at_its_meter_often_enough(row):
    """All in-tree plugins of the default profile are asked about a pod that the row is of, or concerns."""
    limit = row.at_the_limit()
    part = PART if limit > MANY else 1
    longer = 7 if str(row) in LONGER else 1

    assert longest_turn(row.cycle(limit // part)) < longer * MAX_CALLS // part
