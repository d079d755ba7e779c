"""Which devices searches have to hear of."""

from berth.framework.mirrors.claim_tracker import ClaimTracker
from berth.framework.mirrors.store import Store
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.resource_claims import Allocation, DeviceAllocation, DeviceResult, ResourceClaim
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
