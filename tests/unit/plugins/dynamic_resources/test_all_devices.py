"""Requests for all devices, and for administrators, as kube-scheduler 1.36 answered them."""

import pytest

from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    allocated,
    claiming,
    device,
    make_claim,
    make_slice,
    request,
)

NO_SOLUTION = "cannot allocate all claims"
UNSATISFIED = "because a claim constraint would not be satisfied"
NOTHING = [{"cel": {"expression": "false"}}]
BROKEN = [{"cel": {"expression": f'device.attributes["{DRIVER}"].nothing == 1'}}]
MATCH = [{"matchAttribute": f"{DRIVER}/model"}]


def models(*values):
    return [device(f"d{i}", attributes={"model": {"string": each}}) for i, each in enumerate(values)]


def every(name="r0", **more):
    return request(name, allocationMode="All", **more)


def first(name, *alternatives):
    return {"name": name, "firstAvailable": [{"name": a["name"], **a["exactly"]} for a in alternatives]}


def reason(requests, devices, **more):
    """Why one node with these devices is turned down."""
    claim = make_claim(requests=requests, **more)
    cluster = Cluster(nodes=["n0"], slices=[make_slice("s0", devices)], claims=[claim])
    return cluster.reasons(claiming("c0"))["n0"]


@pytest.mark.parametrize(
    ("requests", "name"),
    [
        pytest.param([every()], "r0", id="exactly"),
        pytest.param([first("r0", every("s0"), request("s1"))], "s0", id="an alternative, before another"),
    ],
)
def test_constraints_on_all_devices_have_to_hold(requests, name):
    """All devices under a constraint that one of them breaks are an error, not a reason to look on."""
    wanted = f"claim default/c0, request {name}: cannot add device {DRIVER}/s0/d1 {UNSATISFIED}"

    assert wanted == reason(requests, models("x", "y"), constraints=MATCH)
    assert not reason(requests, models("x", "x"), constraints=MATCH)


@pytest.mark.parametrize(
    ("requests", "wanted"),
    [
        pytest.param([request(count=33)], 33, id="one request"),
        pytest.param([request(count=33, selectors=NOTHING)], 33, id="though there is none"),
        pytest.param([request(count=20), every("r1")], 60, id="with all devices"),
        pytest.param(
            [first("r0", request("s0", count=33), request("s1", count=34))], 33, id="best alternative"
        ),
        pytest.param([first("r0", every("s0"), request("s1"))], 0, id="an alternative that asks for less"),
    ],
)
def test_a_claim_may_ask_for_32_devices(requests, wanted):
    """A claim whose requests come to more than 32 devices, its smallest alternatives counted, is an error."""
    words = f"claim default/c0: number of requested devices {wanted} exceeds the claim limit of 32"

    assert (words if wanted else "") == reason(requests, models(*"x" * 40))


def test_all_devices_are_looked_at_first():
    """A selector of a request for all devices fails though no search would get as far as that request."""
    requests = [request("r0", selectors=NOTHING), every("r1", selectors=BROKEN)]

    assert "CEL runtime error: no such key: nothing" in reason(requests, models("x"))
    assert reason([requests[0], request("r1", selectors=BROKEN)], models("x")) == NO_SOLUTION


def test_pools_under_way_fail_alternatives_by_their_own_name():
    """All devices of a pool that is incomplete can't be had, also where another alternative would do."""
    claim = make_claim(requests=[first("r0", request("s0"), every("s1"))])
    slices = [make_slice("s0", models("x")), make_slice("s1", models("x"), slices=2)]
    cluster = Cluster(nodes=["n0"], slices=slices, claims=[claim])

    found = cluster.reasons(claiming("c0"))["n0"]

    assert found.startswith("claim default/c0, request s1: asks for all devices, but resource pool")


@pytest.mark.parametrize(
    ("requests", "values", "fits"),
    [
        pytest.param([request(count=3)], "xxyx", True, id="neighbours of one request"),
        pytest.param([request(count=2)], "xxx", False, id="no neighbours"),
        pytest.param(
            [request("r0"), request("r1"), request("r2")], "xyx", False, id="requests among each other"
        ),
        pytest.param([every()], "xyxy", True, id="all devices in turn"),
    ],
)
def test_distinct_devices(requests, values, fits):
    """Devices of several requests all differ, those of one request from the one before."""
    distinct = [{"distinctAttribute": f"{DRIVER}/model"}]

    assert fits == (not reason(requests, models(*values), constraints=distinct))


def shared(name, amount="4"):
    return device(name, allowMultipleAllocations=True, capacity={"bandwidth": {"value": amount}})


def holding(pool, name, amount):
    """A claim that has a share of a device."""
    picked = {"request": "r0", "driver": DRIVER, "pool": pool, "device": name}
    share = {"shareID": "95134761-13d8-40c8-9353-fc4cd6b1f59f", "consumedCapacity": {"bandwidth": amount}}
    return make_claim("held", status={"allocation": {"devices": {"results": [{**picked, **share}]}}})


@pytest.mark.parametrize("admin", [False, True])
def test_all_devices_are_those_with_room(admin):
    """Shared devices without room, and devices without that capacity, are not among all of them."""
    wanted = every(capacity={"requests": {"bandwidth": "2"}}, adminAccess=admin)
    slices = [make_slice("s0", [shared("a"), shared("b"), device("plain")])]
    cluster = Cluster(slices=slices, claims=[holding("s0", "b", "3"), make_claim(requests=[wanted])])

    assert [("r0", "s0", "a")] == cluster.reserved(claiming("c0"), "n0")


def slots(name, amount):
    taken = [{"counterSet": "whole", "counters": {"slots": {"value": str(amount)}}}]
    return device(name, consumesCounters=taken, attributes={"name": {"string": name}})


def called(name):
    return [{"cel": {"expression": f'device.attributes["{DRIVER}"].name == "{name}"'}}]


@pytest.mark.parametrize(
    ("requests", "fits"),
    [
        pytest.param([request(adminAccess=True, selectors=called("b"))], True, id="as many as are left"),
        pytest.param([request(adminAccess=True, selectors=called("c"))], False, id="more than are left"),
        pytest.param([request(adminAccess=True, selectors=called("a"))], False, id="of a device in use"),
        pytest.param(
            [
                request("r0", adminAccess=True, selectors=called("b")),
                request("r1", adminAccess=True, selectors=called("d")),
            ],
            False,
            id="together with others",
        ),
    ],
)
def test_administrators_need_counters(requests, fits):
    """Access for administrators needs shared counters as any other does."""
    counters = [{"name": "whole", "counters": {"slots": {"value": "4"}}}]
    slices = [
        make_slice("p0", [], pool="p", slices=2, sharedCounters=counters),
        make_slice("p1", [slots("a", 3), slots("b", 1), slots("c", 2), slots("d", 1)], pool="p", slices=2),
    ]
    claims = [allocated("held", ("p", "a")), make_claim(requests=requests)]
    cluster = Cluster(nodes=["n0"], slices=slices, claims=claims)

    assert fits == (cluster.fits(claiming("c0")) == ["n0"])


def counting(amount, *devices):
    """A pool of these devices, with so many slots to share."""
    counters = [{"name": "whole", "counters": {"slots": {"value": str(amount)}}}]
    return [
        make_slice("p0", [], pool="p", slices=2, sharedCounters=counters),
        make_slice("p1", list(devices), pool="p", slices=2),
    ]


def test_a_taint_gives_counters_back():
    """Counters of a device that its taint keeps away are there for the requests that follow."""
    tainted = slots("a", 2) | {"taints": [{"key": "bad", "effect": "NoSchedule"}]}
    wanted = [request("r0"), request("r1", tolerations=[{"operator": "Exists"}])]
    claim = make_claim(requests=wanted)
    cluster = Cluster(nodes=["n0"], slices=counting(3, tainted, slots("b", 1)), claims=[claim])

    assert [("r0", "p", "b"), ("r1", "p", "a")] == cluster.reserved(claiming("c0"), "n0")


def test_a_constraint_gives_counters_back():
    """Counters of a device that a constraint keeps away are there for the devices that follow."""
    alike = {"attributes": {"name": {"string": "plain"}}}
    slices = [make_slice("o", [device("plain", **alike)]), *counting(3, slots("b", 2) | alike, slots("c", 2))]
    claim = make_claim(
        requests=[request("r0"), request("r1")], constraints=[{"distinctAttribute": f"{DRIVER}/name"}]
    )
    cluster = Cluster(nodes=["n0"], slices=slices, claims=[claim])

    assert [("r0", "o", "plain"), ("r1", "p", "c")] == cluster.reserved(claiming("c0"), "n0")


OVERDRAWN = [
    *counting(2, slots("a", 3), slots("b", 1), device("free", attributes={"name": {"string": "free"}})),
    make_slice("q", [device("other", attributes={"name": {"string": "other"}})]),
]


@pytest.mark.parametrize(
    ("names", "fits"),
    [
        pytest.param(["b"], False, id="a device that counts"),
        pytest.param(["free"], True, id="a device that does not count"),
        pytest.param(["free", "other"], True, id="other devices"),
    ],
)
def test_what_is_overdrawn_keeps_away_what_counts(names, fits):
    """A counter of which more is in use than there is keeps the devices away that take from it, no others."""
    chosen = " || ".join(f'device.attributes["{DRIVER}"].name == "{name}"' for name in names)
    wanted = [
        request("r0", selectors=[{"cel": {"expression": chosen}}]),
        *([request("r1", selectors=called(names[0]))] if len(names) > 1 else []),
    ]
    claims = [allocated("held", ("p", "a")), make_claim(requests=wanted)]
    cluster = Cluster(nodes=["n0"], slices=OVERDRAWN, claims=claims)

    assert fits == (cluster.fits(claiming("c0")) == ["n0"])


def test_an_overdrawn_counter_keeps_away_all_that_count_in_its_pool():
    """A device that takes from another counter of the pool cannot be had either."""
    taken = [{"counterSet": "rest", "counters": {"lanes": {"value": "1"}}}]
    counters = [
        {"name": "whole", "counters": {"slots": {"value": "2"}}},
        {"name": "rest", "counters": {"lanes": {"value": "4"}}},
    ]
    slices = [
        make_slice("p0", [], pool="p", slices=2, sharedCounters=counters),
        make_slice("p1", [slots("a", 3), device("b", consumesCounters=taken)], pool="p", slices=2),
    ]
    free = Cluster(nodes=["n0"], slices=slices, claims=[make_claim()])
    overdrawn = Cluster(nodes=["n0"], slices=slices, claims=[allocated("held", ("p", "a")), make_claim()])

    assert ["n0"] == free.fits(claiming("c0"))
    assert [] == overdrawn.fits(claiming("c0"))


@pytest.mark.parametrize("admin", [False, True])
def test_administrators_share_what_is_held_as_a_whole(admin):
    """A device that was allocated as a whole before it could be shared is free for administrators only."""
    claims = [allocated("held", ("s0", "a")), make_claim(requests=[request(adminAccess=admin)])]
    cluster = Cluster(nodes=["n0"], slices=[make_slice("s0", [shared("a")])], claims=claims)

    assert admin == (cluster.fits(claiming("c0")) == ["n0"])


@pytest.mark.parametrize("held", ["1", "3"])
def test_administrators_need_capacity(held):
    """Access for administrators to a shared device needs the capacity that others have left."""
    wanted = request(adminAccess=True, capacity={"requests": {"bandwidth": "2"}})
    slices = [make_slice("s0", [shared("a")])]
    cluster = Cluster(
        nodes=["n0"], slices=slices, claims=[holding("s0", "a", held), make_claim(requests=[wanted])]
    )

    assert (held == "1") == (cluster.fits(claiming("c0")) == ["n0"])


@pytest.mark.parametrize(
    ("others", "scores"),
    [
        pytest.param([], [0, 0], id="nothing new"),
        pytest.param([request()], [7, 7], id="a claim without alternatives"),
        pytest.param(
            [first("r0", request("s0", selectors=called("a")), request("s1"))], [15, 14], id="with some"
        ),
    ],
)
def test_alternatives_of_allocated_claims_score_beside_new_ones(others, scores):
    """What allocated claims have got counts on all nodes as soon as another claim has to be allocated."""
    picked = {"request": "r0/s1", "driver": DRIVER, "pool": "s0", "device": "z"}
    status = {"allocation": {"devices": {"results": [picked]}}}
    alternatives = first("r0", request("s0"), request("s1"))
    named = {name: device(name, attributes={"name": {"string": name}}) for name in "ab"}
    slices = [make_slice("s-a", [named["a"]], node="n0"), make_slice("s-b", [named["b"]], node="n1")]
    claims = [make_claim("held", [alternatives], status=status)]
    claims += [make_claim("c0", others)] if others else []
    cluster = Cluster(slices=slices, claims=claims)
    pod = claiming(*(claim.metadata.name for claim in claims))

    cluster.fits(pod)

    assert scores == cluster.plugin.score(cluster.state, pod, cluster.nodes).tolist()


@pytest.mark.parametrize(
    ("first_as_admin", "fits"),
    [
        pytest.param(True, False, id="an administrator's device is not for the next claim"),
        pytest.param(False, True, id="an administrator may have that of the claim before"),
    ],
)
def test_administrators_among_the_claims_of_a_pod(first_as_admin, fits):
    """What a claim got for administrators is taken for later claims of the pod, but for no other pod."""
    claims = [
        make_claim("c0", requests=[request(adminAccess=first_as_admin)]),
        make_claim("c1", requests=[request(adminAccess=not first_as_admin)]),
    ]
    cluster = Cluster(nodes=["n0"], slices=[make_slice("s0", [device("a")])], claims=claims)

    assert fits == (cluster.fits(claiming("c0", "c1")) == ["n0"])
    assert cluster.fits(claiming("c0")) == ["n0"]


@pytest.mark.parametrize(
    ("attributes", "fits"),
    [
        pytest.param([{"fast": {"bool": True}}, {}], True, id="behind the one that is taken"),
        pytest.param([{}, {"fast": {"bool": True}}], False, id="before it"),
    ],
)
def test_selectors_fail_on_devices_that_are_looked_at(attributes, fits):
    """A selector that fails on a device does harm only if the search comes to that device."""
    devices = [device(f"d{i}", attributes=each) for i, each in enumerate(attributes)]
    selectors = [{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}]

    assert fits == (not reason([request(selectors=selectors)], devices))


def test_selectors_fail_on_the_last_device_though_too_few_are_left():
    """A request for several devices comes to each one, even to those after which too few are left."""
    devices = [device("a", attributes={"fast": {"bool": False}}), device("b")]
    selectors = [{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}]

    assert "CEL runtime error: no such key: fast" in reason([request(count=2, selectors=selectors)], devices)


def test_a_constraint_on_all_devices_breaks_where_an_equal_device_leaves_room_for_it():
    """Of two equal devices, taking the later one leaves the earlier one to break the constraint: an error."""
    of_model_y = [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "y"'}}]
    requests = [request("r0", selectors=of_model_y), every("r1")]
    constraint = {"matchAttribute": f"{DRIVER}/model", "requests": ["r1"]}

    assert "cannot add device" in reason(requests, models("z", "y", "y"), constraints=[constraint])


def test_what_exceeds_a_claim_is_not_looked_at():
    """Where an alternative leaves too little room for the next request, that one's selector cannot fail."""
    devices = [device(f"d{i:02}", attributes={"fast": {"bool": True}}) for i in range(31)] + [device("slow")]
    selectors = [{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}]
    choices = [{"name": f"s{count}", "deviceClassName": "gpu", "count": count} for count in (31, 1)]
    wanted = [{"name": "r0", "firstAvailable": choices}, request("r1", count=2, selectors=selectors)]

    assert not reason(wanted, devices)


def test_selectors_do_not_fail_on_devices_in_use():
    """A device that is allocated is not asked whether it matches."""
    selectors = [{"cel": {"expression": f'device.attributes["{DRIVER}"].fast'}}]
    devices = [device("a"), device("b", attributes={"fast": {"bool": True}})]
    claims = [allocated("held", ("s0", "a")), make_claim(requests=[request(selectors=selectors)])]
    cluster = Cluster(nodes=["n0"], slices=[make_slice("s0", devices)], claims=claims)

    assert cluster.fits(claiming("c0")) == ["n0"]
