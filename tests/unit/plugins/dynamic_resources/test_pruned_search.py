"""The search for devices finds what the plain depth-first search finds, and fails where and as that fails."""

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.config.releases.release import RELEASES
from berth.config.releases.rules import RULES
from berth.framework.mirrors.listers import Listers
from berth.objects.steps import at_once
from berth.plugins.dynamic_resources.allocator import AllocationSearch
from berth.plugins.dynamic_resources.asking import claim_ask
from berth.plugins.dynamic_resources.devices import DeviceSelectorError
from berth.plugins.dynamic_resources.inventory import Inventory
from berth.plugins.dynamic_resources.picking import AllocationError, Picks
from berth.plugins.dynamic_resources.supply import Features, Supply
from berth.plugins.dynamic_resources.usage import DeviceUsage
from berth.testing.builders import make_node
from berth.testing.clusters import table
from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
)

POOL = "p"
BOTH = ["kind", "size"]


class Plain:
    """The depth-first search without any short cut."""

    def __init__(self, supply, view, claims):
        self.view, self.unsure = view, set()
        self.picks = Picks(supply, claims, self.unsure)
        self.steps = [(c, asks) for c, claim in enumerate(claims) for asks in claim.requests]
        self.everything = {
            (c, ask.name): [d for d in self.matching(c, ask) if self.picks.takes(c, ask, d) is not None]
            for c, asks in self.steps
            for ask in asks
            if ask.every
        }

    def matching(self, claim, ask):
        try:
            return [d for d in self.view.usable if d.matches_all(ask.selectors)]
        except DeviceSelectorError as error:
            if ask.every:
                raise self.picks.broken(claim, ask, error) from error
            self.unsure.add(ask.selectors)
            return self.view.usable

    def solutions(self, number=0):
        """Every solution, in order."""
        if number == len(self.steps):
            yield [(p.claim, p.ask.name, p.device.id.device) for p in self.picks.made]
            return
        claim, asks = self.steps[number]
        for ask in asks:
            if ask.every and self.everything[claim, ask.name]:
                yield from self.each(number, ask, self.everything[claim, ask.name])
            elif not ask.every:
                yield from self.some(number, ask, self.matching(claim, ask), ask.count)

    def each(self, number, ask, left):
        if not left:
            yield from self.solutions(number + 1)
        elif self.picks.pick(self.steps[number][0], ask, left[0]):
            yield from self.each(number, ask, left[1:])
            self.picks.take_back()

    def some(self, number, ask, among, count):
        if not count:
            yield from self.solutions(number + 1)
            return
        for at in range(len(among)):
            if self.picks.pick(self.steps[number][0], ask, among[at]):
                yield from self.some(number, ask, among[at + 1 :], count - 1)
                self.picks.take_back()


def first_of(find):
    try:
        return find()
    except AllocationError as error:
        return str(error)


def searched(supply, view, claims):
    search = AllocationSearch(supply, view, claims)
    while not search.advance(1):
        pass
    return search.solution and [
        (pick.claim, pick.ask.name, pick.device.id.device) for picks in search.solution for pick in picks
    ]


SELECTORS = [
    "",
    *(f'device.attributes["{DRIVER}"].kind == "{kind}"' for kind in "xy"),
    f'device.attributes["{DRIVER}"].size > 1',
    f'device.attributes["{DRIVER}"].name in ["d0", "d2", "d3"]',
]


DERIVED = [
    f'device.attributes["{DRIVER}"].kind',
    f'device.attributes["{DRIVER}"].size % 2 == 0',
    f'[device.attributes["{DRIVER}"].size, 2]',
    "{'a': 1}",
]
"""The first fails on devices without the attribute, the last everywhere: a map is no attribute."""


@st.composite
def devices(draw):
    made = []
    for i in range(draw(st.integers(0, 5))):
        attributes = {"name": {"string": f"d{i}"}, "size": {"int": draw(st.integers(1, 2))}}
        kind = draw(st.sampled_from(["x", "y", "x", "y", ""]))
        if kind:
            attributes["kind"] = {"string": kind}
        more = {}
        if draw(st.integers(0, 3)) == 0:
            more["taints"] = [{"key": "bad", "effect": "NoSchedule"}]
        if slots := draw(st.sampled_from([0, 0, 1, 2])):
            groups = draw(st.sampled_from([[], [], ["a"], ["b"], ["a", "b"]]))
            counters = {"slots": {"value": str(slots)}}
            more["consumesCounters"] = [
                {"counterSet": "whole", "counters": counters, "compatibilityGroups": groups}
            ]
        if draw(st.integers(0, 3)) == 0:
            more |= {
                "allowMultipleAllocations": True,
                "capacity": {"memory": {"value": "4", "requestPolicy": {"default": "2"}}},
            }
        made.append(device(f"d{i}", attributes=attributes, **more))
    return made


@st.composite
def exact(draw):
    wanted = {"deviceClassName": "gpu"}
    if expression := draw(st.sampled_from(SELECTORS)):
        wanted["selectors"] = [{"cel": {"expression": expression}}]
    if draw(st.integers(0, 5)) == 0:
        wanted["allocationMode"] = "All"
    else:
        wanted["count"] = draw(st.sampled_from([1, 1, 1, 2, 3]))
    if draw(st.integers(0, 3)) == 0:
        wanted["tolerations"] = [{"operator": "Exists"}]
    if draw(st.integers(0, 4)) == 0:
        name, expression = draw(st.sampled_from([*BOTH, "other"])), draw(st.sampled_from(DERIVED))
        wanted["derivedAttributes"] = [{"name": f"{DRIVER}/{name}", "expression": expression}]
    if draw(st.integers(0, 4)) == 0:
        wanted["capacity"] = {"requests": {"memory": draw(st.sampled_from(["1", "3", "5"]))}}
    return wanted


@st.composite
def requests(draw):
    made = []
    for i in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 3)) == 0:
            several = [{"name": f"s{j}", **draw(exact())} for j in range(draw(st.integers(1, 2)))]
            made.append({"name": f"r{i}", "firstAvailable": several})
        else:
            admin = {"adminAccess": True} if draw(st.integers(0, 2)) == 0 else {}
            made.append({"name": f"r{i}", "exactly": draw(exact()) | admin})
    return made


@st.composite
def claims(draw):
    made = []
    for i in range(draw(st.sampled_from([1, 1, 2]))):
        asked = draw(requests())
        constraints = []
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            kind = draw(st.sampled_from(["matchAttribute", "distinctAttribute"]))
            named = draw(st.sets(st.sampled_from([r["name"] for r in asked])))
            constraints.append({kind: f"{DRIVER}/{draw(st.sampled_from(BOTH))}", "requests": sorted(named)})
        made.append(make_claim(f"c{i}", asked, constraints=constraints))
    return made


@settings(max_examples=examples(400), deadline=None)
@given(
    found=devices(),
    asked=claims(),
    slots=st.integers(0, 5),
    taken=st.booleans(),
    release=st.sampled_from(RELEASES),
    newer=st.booleans(),
)
def test_the_pruned_search_finds_what_the_plain_one_finds(found, asked, slots, taken, release, *, newer):
    """The same first solution, device for device, or none; and the same error where there is one."""
    counters = [{"name": "whole", "counters": {"slots": {"value": str(slots)}}}]
    slices = [
        make_slice("s0", [], pool=POOL, slices=2, sharedCounters=counters),
        make_slice("s1", found, pool=POOL, slices=2),
    ]
    listers = Listers()
    if taken:
        listers.resource_claims.put(allocated("held", (POOL, "d0")))
    features = Features(
        rules=RULES[release],
        list_attributes=newer,
        derived_attributes=newer,
        compatibility_groups=newer,
    )
    usage = DeviceUsage(listers.claim_tracker, features.capacity, grouped=newer)
    inventory = Inventory(slices)
    view = inventory.view(int(at_once(inventory.groups(table([make_node("n0")])))[0]))
    wanted = [claim_ask(claim, {"gpu": make_class()}.get) for claim in asked]
    supply = Supply(inventory, usage, features)

    reference = first_of(lambda: next(Plain(supply, view, wanted).solutions(), None))

    assert reference == first_of(lambda: searched(supply, view, wanted))
