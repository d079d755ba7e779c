"""How old an allocation is does not depend on how the machine's clock is set, where this process made it."""

from datetime import UTC, datetime

import msgspec
import pytest

from berth.objects.devices.resource_claims import Allocation, ResourceClaim, ResourceClaimStatus
from berth.plugins.dynamic_resources.allocation_ages import MAX_KEPT, AllocationAges
from berth.testing.handles import ManualClock

HOUR = 3600.0


def claim(moment, uid="u"):
    """A claim that was allocated at that time."""
    made = ResourceClaim(status=ResourceClaimStatus(allocation=Allocation(allocation_timestamp=moment)))
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, uid=uid))


def moment_of(clock):
    return datetime.fromtimestamp(int(clock.wall()), UTC)


@pytest.mark.parametrize("step", [0.0, -HOUR, HOUR])
def test_a_step_of_the_clock_changes_no_age(step):
    """A claim whose devices are late is given up in time, and no earlier."""
    clock = ManualClock(1000.0)
    ages, moment = AllocationAges(clock), moment_of(clock)
    ages.allocated("u", moment)
    clock.ahead += step
    clock.seconds += 60

    assert 60.0 == ages.of(claim(moment))


def test_what_another_process_allocated_is_compared_with_the_wall_clock():
    """As upstream does; so is an allocation that took the place of this process's own."""
    clock = ManualClock(1000.0)
    ages, moment = AllocationAges(clock), moment_of(clock)
    ages.allocated("u", datetime.fromtimestamp(1, UTC))
    clock.seconds += 60

    assert 60.0 == ages.of(claim(moment)) == ages.of(claim(moment, "other"))
    assert ages.of(claim(None)) is None


def test_so_many_allocations_are_remembered():
    clock = ManualClock(1000.0)
    ages = AllocationAges(clock)
    for i in range(MAX_KEPT + 10):
        ages.allocated(f"u{i}", moment_of(clock))

    assert MAX_KEPT == len(ages._written)
