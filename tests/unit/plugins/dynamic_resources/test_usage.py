"""Which devices searches have to hear of."""

import pytest
from msgspec.structs import replace

from berth.framework.mirrors.claim_tracker import ClaimTracker
from berth.framework.mirrors.store import Store
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.resource_claims import (
    Allocation,
    Consumer,
    DeviceAllocation,
    DeviceResult,
    ResourceClaim,
)
from berth.plugins.dynamic_resources.claims import reserved_for_alone
from berth.plugins.dynamic_resources.devices import DeviceId
from berth.plugins.dynamic_resources.usage import DeviceUsage
from berth.testing.builders import make_pod

POD = make_pod("p")
DEVICE = DeviceId("d.example", "pool", "x")


def claim(version, device="x"):
    metadata = ObjectMeta(name="c", namespace="default", uid="c", resource_version=version)
    return ResourceClaim(metadata).allocated_as(
        Allocation(DeviceAllocation((DeviceResult("r", "d.example", "pool", device),)))
    )


def test_a_device_is_heard_of_once_on_its_way_from_in_flight_to_stored():
    """The same claim is in flight, then assumed, then stored; only the first of these takes the device."""
    store = Store()
    tracker = ClaimTracker(store)
    usage = DeviceUsage(tracker)
    tracker.begin(claim("1"), POD)
    assert {DEVICE} == usage.refresh()

    tracker.assume(claim("2"))
    tracker.written("c")
    assert set() == usage.refresh()
    store.put(claim("2"))
    assert set() == usage.refresh()
    assert 1 == usage.holders[DEVICE]

    store.put(claim("3", "y"))
    assert {DEVICE, DEVICE._replace(device="y")} == usage.refresh()
    store.remove(claim("3", "y"))
    assert {DEVICE._replace(device="y")} == usage.refresh()
    assert not usage.holders


def test_without_claims_that_would_be_gone():
    """What is simulated to be free stays in use, and a device that another claim holds is not free."""
    store = Store()
    tracker = ClaimTracker(store)
    store.put(claim("1"))
    usage = DeviceUsage(tracker)

    assert {DEVICE: 1} == usage.holders
    assert not usage.without(["default/c"]).holders
    assert {DEVICE: 1} == usage.without(["default/other"]).holders == usage.holders


@pytest.mark.parametrize(
    ("reserved_for", "gone", "freed"),
    [
        pytest.param(("p",), {"p"}, ["default/c"], id="a victim's alone"),
        pytest.param(("p", "q"), {"p"}, [], id="one that stays has it, too"),
        pytest.param(("p", "q"), {"p", "q"}, ["default/c"], id="of two victims"),
        pytest.param((), {"p"}, [], id="of no pod"),
    ],
)
def test_claims_of_pods_that_go(reserved_for, gone, freed):
    """A claim comes free with its last user."""
    users = tuple(Consumer(resource="pods", name=uid, uid=uid) for uid in reserved_for)
    held = replace(claim("1"), status=replace(claim("1").status, reserved_for=users))

    assert freed == list(reserved_for_alone([held], gone))
