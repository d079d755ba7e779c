"""Claims written to keep the search for devices busy: by a user who may create pods and resource claims."""

from random import Random

import pytest

from berth.framework.attempts.cycle_budget import LONGEST_TURN_SECONDS, TURN_SECONDS, CpuTime, CycleMeter
from berth.plugins.dynamic_resources import answers, inventory
from berth.plugins.dynamic_resources.devices import ANSWERS_KEPT
from berth.plugins.dynamic_resources.inventory import LEAST_KEPT
from berth.plugins.dynamic_resources.picking import AllocationError
from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    allocated,
    claiming,
    device,
    finished,
    make_claim,
    make_slice,
    request,
)

NODES = [f"n{i}" for i in range(5)]
NO_SOLUTION = "cannot allocate all claims"
TIMED_OUT = "timed out trying to allocate devices"
BUDGET_SECONDS = 0.25
LOOK_SECONDS = 0.0001
"""How much CPU passes from one look at the clock to the next."""
EVALUATION_LOOK_SECONDS = 0.01
"""The same in the midst of evaluations."""


class Ticking:
    """A clock on which each look takes some CPU: time is work, counted."""

    def __init__(self, look_seconds=LOOK_SECONDS):
        self.seconds = 0.0
        self.look_seconds = look_seconds

    def monotonic(self):
        self.seconds += self.look_seconds
        return self.seconds

    def cpu(self):
        return self.seconds


class Turn:
    """Awaited, it gives everything else its turn."""

    def __await__(self):
        yield


def cel(expression):
    return [{"cel": {"expression": expression}}]


def among(*numbers):
    names = ", ".join(f'"u{i}"' for i in numbers)
    return cel(f'device.attributes["{DRIVER}"].uuid in [{names}]')


IMPOSSIBLE = among(99)


def devices(count, **more):
    """Devices no two of which are equal."""
    return [
        device(
            f"d{i}",
            attributes={
                "uuid": {"string": f"u{i}"},
                "model": {"string": f"m{i % 4}"},
                "slot": {"int": i // 2},
            },
            **{key: value(i) for key, value in more.items()},
        )
        for i in range(count)
    ]


def first(name, *alternatives):
    return {"name": name, "firstAvailable": [{"name": a["name"], **a["exactly"]} for a in alternatives]}


def cluster(found, claims, **more):
    slices = []
    for node in NODES:
        if more:
            slices.append(make_slice(f"{node}-0", [], node=node, pool=node, slices=2, **more))
        slices.append(make_slice(f"{node}-1", found, node=node, pool=node, slices=2 if more else 1))
    return Cluster(nodes=NODES, slices=slices, claims=claims)


class Tried:
    """One filter of the pod with these claims under a budget: what came of it, and at which price."""

    def __init__(
        self, where, *names, meanwhile=lambda: None, budget_seconds=BUDGET_SECONDS, look_seconds=LOOK_SECONDS
    ):
        pod = claiming(*names or ("c0",))
        assert where.pre_filter(pod).ok
        self.meter = where.state.meter = CycleMeter(budget_seconds, CpuTime(Ticking(look_seconds)), Turn)
        self.turns, self.reasons, self.error = 0, [], ""
        steps = self.meter.timed(where.plugin.filter(where.state, pod, where.nodes)).__await__()
        try:
            while True:
                next(steps)
                self.turns += 1
                meanwhile()
        except StopIteration as end:
            spell = where.plugin.filter_status
            self.reasons = [spell(where.state, c).message if c else "" for c in end.value.tolist()]
        except AllocationError as error:
            self.error = str(error)

    @property
    def within_budget(self):
        return not self.meter.exceeded_in


def several(number, **more):
    return [request(f"r{i}", **more) for i in range(number)]


def paired(requests):
    return [{"matchAttribute": f"{DRIVER}/slot", "requests": [r["name"]]} for r in requests]


LAST_ONE_IMPOSSIBLE = [*several(9), request("z", selectors=IMPOSSIBLE)]
ADMINS = [request(f"r{i}", adminAccess=True) for i in range(9)]
DRAWN = Random(1)

DECIDED = {
    "the last of ten requests": (16, LAST_ONE_IMPOSSIBLE, []),
    "ten requests for nine devices": (16, several(10, selectors=among(*range(9))), []),
    "three requests for two devices": (
        32,
        [
            *(request(f"r{i}", selectors=among(*DRAWN.sample(range(30), 6))) for i in range(27)),
            *(request(f"s{i}", selectors=among(30, 31)) for i in range(3)),
        ],
        [],
    ),
    "many devices for each of three requests": (
        32,
        [
            request("a", count=10, selectors=among(*range(16))),
            request("b", count=10, selectors=among(*range(8, 24))),
            request("c", count=5, selectors=among(*range(24))),
        ],
        [],
    ),
    "four alternatives for each of 21 requests": (
        32,
        [
            first(f"r{i}", *[request(f"s{j}", selectors=among(i % 20, (i + j) % 20)) for j in range(4)])
            for i in range(21)
        ],
        [],
    ),
    "alternatives of several sizes": (
        32,
        [
            *(
                first(f"r{i}", *[request(f"s{j}", count=1 + (i + j) % 3) for j in range(3)])
                for i in range(12)
            ),
            request("z", selectors=IMPOSSIBLE),
        ],
        [],
    ),
    "five devices of one model": (16, several(5), [{"matchAttribute": f"{DRIVER}/model"}]),
    "pairs, and one that there is not": (
        32,
        [*several(6, count=2), request("z", selectors=IMPOSSIBLE)],
        paired(several(6)),
    ),
    "five devices of four models": (32, several(5), [{"distinctAttribute": f"{DRIVER}/model"}]),
    "administrators": (16, [*ADMINS, request("z", adminAccess=True, selectors=IMPOSSIBLE)], []),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_cannot_be_had_is_found_out_within_a_budget(name):
    """Nodes are turned down in kube-scheduler's words, with little work, however many ways there are."""
    count, requests, constraints = DECIDED[name]
    where = cluster(devices(count), [make_claim(requests=requests, constraints=constraints)])

    tried = Tried(where)

    assert tried.within_budget
    assert [NO_SOLUTION] * len(NODES) == tried.reasons


def slots(number):
    more, less = 7 + 3 * number, 76 - 3 * number
    return [
        {"counterSet": "whole", "counters": {"slots": {"value": str(more)}, "links": {"value": str(less)}}}
    ]


def memory(number):
    return {"memory": {"value": str(10 + number), "requestPolicy": {"default": "1"}}}


def counting(total, *requests):
    """Devices that take from two shared counters, the more from one, the less from the other."""
    names = ("slots", "links")
    counters = [{"name": "whole", "counters": {name: {"value": str(total)} for name in names}}]
    return cluster(
        devices(24, consumesCounters=slots), [make_claim(requests=requests)], sharedCounters=counters
    )


def counted():
    """Twelve devices that take just a little more than there is of one counter, or else of the other."""
    return counting(12 * 41, request("r", count=12))


def packed():
    """Shares of devices that almost fit."""
    wanted = [request(f"r{i}", capacity={"requests": {"memory": str(5 + i % 4)}}) for i in range(30)]
    found = devices(8, capacity=memory, allowMultipleAllocations=lambda _: True)
    return cluster(found, [make_claim(requests=wanted)])


def all_different():
    """More devices than there are values, several for each request."""
    constraints = [{"distinctAttribute": f"{DRIVER}/model"}]
    return cluster(devices(32), [make_claim(requests=several(10, count=3), constraints=constraints)])


def test_counters_that_cannot_suffice_are_found_out_within_a_budget():
    """Twelve devices take at least 282 of a counter."""
    tried = Tried(counting(281, request("r", count=12)))

    assert tried.within_budget
    assert [NO_SOLUTION] * len(NODES) == tried.reasons


@pytest.mark.parametrize("make", [counted, packed, all_different])
def test_what_takes_too_long_ends_with_the_budget(make):
    """The cycle fails in kube-scheduler's words, and everything else had its turn all along."""
    tried = Tried(make())

    assert f"node n0: {TIMED_OUT}" == tried.error
    assert BUDGET_SECONDS < tried.meter.used_seconds < BUDGET_SECONDS + 2 * TURN_SECONDS
    assert tried.turns >= BUDGET_SECONDS / TURN_SECONDS - 3


def toiling(elements):
    """A selector that goes through so many elements four times over, and holds."""
    levels = f"[{','.join(map(str, range(elements)))}]"
    return cel(f"{levels}.all(a, {levels}.all(b, {levels}.all(c, {levels}.all(d, true))))")


def test_a_selector_that_takes_long_ends_with_the_budget():
    """One evaluation is cut off in kube-scheduler's words; what it would have come to is not remembered."""
    where = cluster(devices(2), [make_claim(requests=[request(selectors=toiling(20))])])

    tried = Tried(where, look_seconds=EVALUATION_LOOK_SECONDS)

    assert f"node n0: {TIMED_OUT}" == tried.error
    assert BUDGET_SECONDS < tried.meter.used_seconds < BUDGET_SECONDS + 2 * EVALUATION_LOOK_SECONDS
    assert NODES == where.fits(claiming("c0"))


def test_a_selector_gives_turns_after_each_device_that_takes_long():
    """Turns do not wait for 16 devices."""
    where = cluster(devices(16), [make_claim(requests=[request(selectors=toiling(8))])])

    tried = Tried(where, budget_seconds=10, look_seconds=EVALUATION_LOOK_SECONDS)

    assert tried.within_budget
    assert tried.turns >= 16


@pytest.mark.parametrize("count", [2, 64])
def test_a_larger_budget_is_not_used_in_one_turn(count):
    """An evaluation that keeps everything else waiting for too long ends the budget, for all devices."""
    where = cluster(devices(count), [make_claim(requests=[request(selectors=toiling(20))])])

    tried = Tried(where, budget_seconds=10, look_seconds=EVALUATION_LOOK_SECONDS)

    assert f"node n0: {TIMED_OUT}" == tried.error
    assert tried.meter.used_seconds < LONGEST_TURN_SECONDS + 4 * EVALUATION_LOOK_SECONDS


def test_nodes_that_are_easy_are_found_beside_hard_ones():
    """A pod may go where devices were found; nodes whose search did not end are out of the choice."""
    where = counted()
    plain = devices(12)
    where.listers.resource_slices.put(make_slice("plain", plain, node="n3", pool="other"))

    tried = Tried(where)

    assert ["n3"] == [name for name, why in zip(NODES, tried.reasons, strict=True) if not why]
    assert {"", TIMED_OUT} == set(tried.reasons)
    assert "DynamicResources" == tried.meter.exceeded_in


def test_what_changes_meanwhile_is_for_the_next_cycle():
    """Slices and claims that come or go while everything else has its turn change nothing of the answer."""
    undisturbed = Tried(counted())
    where = counted()
    slices = where.listers.resource_slices

    def meanwhile():
        for part in list(slices):
            slices.remove(part)
        where.listers.resource_claims.put(allocated("held", ("n0", "d0")))

    disturbed = Tried(where, meanwhile=meanwhile)

    assert disturbed.turns == undisturbed.turns
    assert (disturbed.reasons, disturbed.error) == (undisturbed.reasons, undisturbed.error)
    assert {NO_SOLUTION} == set(Tried(where).reasons)


def test_a_search_that_was_given_up_is_not_taken_up_again():
    """Once the budget is used up, further looks at nodes in this cycle cost next to nothing."""
    where = counted()
    tried = Tried(where)
    filter_again = where.plugin.filter

    with pytest.raises(AllocationError):
        finished(filter_again(where.state, claiming("c0"), where.nodes))

    assert tried.meter.used_seconds < BUDGET_SECONDS + 2 * TURN_SECONDS


def test_what_is_remembered_of_claims_has_a_bound():
    """Claims with ever new selectors are forgotten again."""
    where = cluster(devices(2), [make_claim(requests=[request(selectors=among(0))])])

    def ask(number):
        where.listers.resource_claims.put(make_claim(requests=[request(selectors=among(0, number))]))
        assert len(where.fits(claiming("c0"))) == len(NODES)

    for number in range(ANSWERS_KEPT + 10):
        ask(number)

    inventory = where.plugin._supply.inventory
    assert max(len(view._matching) for view in inventory.views) <= ANSWERS_KEPT
    assert max(len(kind._matches) for kind in inventory.kinds.values()) <= ANSWERS_KEPT


def test_what_is_remembered_of_questions_has_a_bound(monkeypatch):
    """Claims that ask for ever new things are forgotten again, and what was found for them."""
    monkeypatch.setattr(answers, "MAX_BYTES", 100_000)
    where = cluster(devices(20), [make_claim(requests=[request(selectors=among(0))])])

    for number in range(40):
        where.listers.resource_claims.put(make_claim(requests=[request(selectors=among(0, number))]))
        assert len(where.fits(claiming("c0"))) == len(NODES)

    kept = list(where.plugin._known._entries.values())
    assert 1 < len(kept) < 40
    assert sum(known.size_bytes for known in kept[:-1]) <= 100_000


def test_what_is_remembered_of_claims_has_a_bound_for_all_devices_together(monkeypatch):
    """The more kinds of devices there are, the fewer selectors are remembered for each."""
    found, asked = 4, LEAST_KEPT + 30
    monkeypatch.setattr(inventory, "MAX_ANSWERS", found * 20)
    where = cluster(devices(found), [make_claim(requests=[request(selectors=among(0))])])

    for number in range(asked):
        where.listers.resource_claims.put(make_claim(requests=[request(selectors=among(0, number))]))
        assert len(where.fits(claiming("c0"))) == len(NODES)

    kept = sum(len(kind._matches) for kind in where.plugin._supply.inventory.kinds.values())
    assert 0 < kept <= inventory.MAX_ANSWERS
