"""Which devices of a card may be in use together, by the groups that their driver names (KEP-5963)."""

import msgspec
import pytest

from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    claiming,
    device,
    make_claim,
    make_slice,
    request,
)

GATES = {"DRADeviceCompatibilityGroups": True}
IN_37 = (1, 37)


def part(name, *groups, card="card"):
    """A partition of a card."""
    takes = {"counterSet": card, "counters": {"slots": {"value": "1"}}}
    return device(name, consumesCounters=[takes | ({"compatibilityGroups": [*groups]} if groups else {})])


def of_cards(*devices, cards=("card",)):
    """A pool of these partitions, with room for four on each card."""
    counters = [{"name": card, "counters": {"slots": {"value": "4"}}} for card in cards]
    return [
        make_slice("p0", [], pool="p", slices=2, sharedCounters=counters),
        make_slice("p1", [*devices], pool="p", slices=2),
    ]


def held(name, groups=None):
    """A claim that has that device, with the groups that it had then."""
    more = {"compatibilityGroups": groups} if groups else {}
    picked = {"request": "r0", "driver": DRIVER, "pool": "p", "device": name, **more}
    return make_claim("held", status={"allocation": {"devices": {"results": [picked]}}})


def cluster(slices, *claims, gates=GATES):
    return Cluster(nodes=("n0",), slices=slices, claims=claims, gates=gates, release=IN_37)


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        pytest.param((), (), True, id="none have groups"),
        pytest.param(("mig",), ("mig", "vgpu"), True, id="one in common"),
        pytest.param(("mig",), ("vgpu",), False, id="none in common"),
        pytest.param(("mig",), (), False, id="one without groups"),
    ],
)
def test_two_devices_of_a_claim(first, second, fits):
    """Picked together they have a group in common, or none at all."""
    slices = of_cards(part("a", *first), part("b", *second))
    claim = make_claim(requests=[request(count=2)])

    assert fits == bool(cluster(slices, claim).fits(claiming("c0")))
    assert cluster(slices, claim, gates={}).fits(claiming("c0"))


def test_the_search_goes_on_to_devices_that_agree():
    """What was picked first need not stay."""
    slices = of_cards(part("a", "mig"), part("b", "vgpu"), part("c", "vgpu"))
    here = cluster(slices, make_claim(requests=[request(count=2)]))

    assert [("r0", "p", "b"), ("r0", "p", "c")] == here.reserved(claiming("c0"), "n0")


def test_cards_are_apart():
    """Devices of two cards need nothing in common."""
    slices = of_cards(part("a", "mig"), part("b", "vgpu", card="other"), cards=("card", "other"))

    assert cluster(slices, make_claim(requests=[request(count=2)])).fits(claiming("c0"))


@pytest.mark.parametrize(
    ("then", "picked"),
    [
        pytest.param({"card": ["vgpu"]}, "c", id="as the allocation says"),
        pytest.param(None, "", id="without groups, whatever the slice says now"),
    ],
)
def test_a_device_in_use_counts_by_its_allocation(then, picked):
    """Its driver may have changed the groups since."""
    slices = of_cards(part("a", "mig"), part("b", "mig"), part("c", "vgpu"))
    here = cluster(slices, held("a", then), make_claim("c0"))

    assert ([picked] if picked else []) == (
        [name for _, _, name in here.reserved(claiming("c0"), "n0")] if here.fits(claiming("c0")) else []
    )


def test_a_device_that_is_gone_still_counts():
    """It is in use until its claim is let go of."""
    slices = of_cards(part("b", "mig"), part("c", "vgpu"))
    here = cluster(slices, held("gone", {"card": ["vgpu"]}), make_claim("c0"))
    assert [("r0", "p", "c")] == here.reserved(claiming("c0"), "n0")

    here = cluster(slices, held("gone", {"card": ["vgpu"]}), make_claim("c0"))
    here.fits(claiming("c0"))
    here.listers.resource_claims.remove(held("gone"))
    assert [("r0", "p", "b")] == here.reserved(claiming("c0"), "n0")


@pytest.mark.parametrize(("groups", "written"), [(("mig",), {"card": ("mig",)}), ((), {})])
def test_the_allocation_says_the_groups(groups, written):
    """None where the device has none, or the gate is off."""
    for gates in (GATES, {}):
        here = cluster(of_cards(part("a", *groups)), make_claim(), gates=gates)
        here.reserved(claiming("c0"), "n0")
        (claim,) = here.handle.listers.claim_tracker.all_in_flight()
        (result,) = claim.allocation.devices.results
        assert (written if gates else {}) == result.compatibility_groups
        assert bool(written and gates) == (b"compatibilityGroups" in msgspec.json.encode(result))
