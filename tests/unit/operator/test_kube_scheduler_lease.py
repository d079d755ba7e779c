"""kube-scheduler's lease as the operator sees it: by what moves before its eyes, not by another's clock."""

import json

import pytest

from berth.operator.errors import ServedTwiceError
from berth.operator.kube_scheduler import KubeSchedulerLease
from berth.testing.handles import ManualClock
from tests.unit.operator import kit

RENEWED_AT = 1_000.0
"""Of the epoch, the first renewal that is seen."""


class Leases:
    """An API that has the one lease."""

    def __init__(self):
        self.renewed = 0

    async def get(self, *_):
        time = f"1970-01-01T00:16:{40 + self.renewed:02}.000000Z"
        spec = {"holderIdentity": "control-plane_1", "leaseDurationSeconds": 15, "renewTime": time}
        return json.dumps({"spec": spec}).encode()


@pytest.fixture
def clock():
    return ManualClock(RENEWED_AT)


async def is_held(lease):
    scheduler = kit.scheduler(profiles=[{"schedulerName": "default-scheduler"}])
    scheduler["metadata"]["namespace"] = "berth-system"
    try:
        await lease.check(scheduler)
    except ServedTwiceError:
        return True
    return False


async def test_at_the_first_look_the_time_in_it_counts(clock):
    """What was left over long ago keeps nothing from being rolled out."""
    clock.seconds += 16

    assert not await is_held(KubeSchedulerLease(Leases(), clock))


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
async def test_a_step_of_the_clock_changes_no_term(step, clock):
    """A renewal that is seen is worth the lease's duration, and no more without another."""
    leases = Leases()
    lease = KubeSchedulerLease(leases, clock)
    assert await is_held(lease)
    clock.ahead += step
    clock.seconds += 14
    assert await is_held(lease)
    leases.renewed = 1
    assert await is_held(lease)
    clock.seconds += 14
    assert await is_held(lease)
    clock.seconds += 2

    assert not await is_held(lease)


async def test_a_clock_behind_holds_nothing_for_long(clock):
    """A lease from what is the future here, and which nobody renews, runs out."""
    clock.ahead = -3600.0
    lease = KubeSchedulerLease(Leases(), clock)
    assert await is_held(lease)
    clock.seconds += 16

    assert not await is_held(lease)
