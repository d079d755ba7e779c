"""A small case for each rule of the device allocator in which releases differ, and for each of its fixes.

A test names the pull request of kubernetes/kubernetes that it holds. Where all releases give one answer,
kube-scheduler once crashed, counted twice or let a pod wait, and no profile does.
"""

import pytest

from berth.config.releases.release import RELEASES
from berth.objects.decode import from_document
from berth.objects.devices.devices import DeviceTaintRule
from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    allocated,
    claiming,
    device,
    make_claim,
    make_class,
    make_slice,
    request,
)

IN_36, IN_37, IN_38 = RELEASES
of_all_releases = pytest.mark.parametrize("release", RELEASES)
SHARE = "95134761-13d8-40c8-9353-fc4cd6b1f59f"


def shared(name="a", capacity=None, **more):
    """A device that several claims may have."""
    return device(name, allowMultipleAllocations=True, capacity=capacity or {}, **more)


def of_range(value="10", **given):
    """A capacity that is requested in a range."""
    return {"memory": {"value": value, "requestPolicy": {"default": given["min"], "validRange": given}}}


def wanting(amount, name="memory", **more):
    """A request for so much of a capacity."""
    return request(capacity={"requests": {name: amount}}, **more)


def holding(name="a", pool="s0", consumed=None, share=SHARE):
    """A claim that has a device, or a share of it."""
    picked = {"request": "r0", "driver": DRIVER, "pool": pool, "device": name}
    share_of = {"shareID": share, "consumedCapacity": consumed or {}} if share else {}
    return make_claim("held", status={"allocation": {"devices": {"results": [{**picked, **share_of}]}}})


def counting(slots, *devices, prefix="p", **spec):
    """Pool p of these devices, with so many slots to share."""
    counters = [{"name": "card", "counters": {"slots": {"value": str(slots)}}}]
    return [
        make_slice(f"{prefix}0", [], pool="p", slices=2, sharedCounters=counters, **spec),
        make_slice(f"{prefix}1", list(devices), pool="p", slices=2, **spec),
    ]


def takes(slots):
    """What a partition takes of its card."""
    return {"consumesCounters": [{"counterSet": "card", "counters": {"slots": {"value": str(slots)}}}]}


def cluster(slices, *claims, release, nodes=("n0",), **more):
    """Nodes that reach these slices."""
    return Cluster(nodes=nodes, slices=slices, claims=claims, release=release, **more)


def failure(here):
    """The error that the attempt ends with; none where it ends without."""
    assert here.pre_filter(claiming("c0")).ok
    (code,) = here.codes(claiming("c0")).tolist()
    status = here.plugin.filter_status(here.state, code) if code else None
    return "" if status is None or status.rejected else status.message


def consumed(here):
    """What the allocation says that the claim takes of the device."""
    here.reserved(claiming("c0"), "n0")
    (claim,) = here.listers.claim_tracker.all_in_flight()
    (result,) = claim.allocation.devices.results
    return dict(result.consumed_capacity)


@pytest.mark.parametrize(("release", "fits"), [(IN_36, True), (IN_37, False), (IN_38, False)])
def test_distinct_devices_of_one_request(release, fits):
    """#140600: from 1.37 on all devices of a request differ; before, each from the one before it."""
    devices = [device(f"d{i}", attributes={"model": {"string": each}}) for i, each in enumerate("xyx")]
    distinct = [{"distinctAttribute": f"{DRIVER}/model"}]
    claim = make_claim(requests=[request(count=3)], constraints=distinct)

    assert fits == bool(cluster([make_slice("s0", devices)], claim, release=release).fits(claiming("c0")))


@of_all_releases
@pytest.mark.parametrize("models", ["xxy", "xyx", "yxx"])
def test_two_distinct_devices_are_found(release, models):
    """#140600: where two of three devices differ, a claim for two that differ gets them."""
    devices = [device(f"d{i}", attributes={"model": {"string": each}}) for i, each in enumerate(models)]
    distinct = [{"distinctAttribute": f"{DRIVER}/model"}]
    claim = make_claim(requests=[request(count=2)], constraints=distinct)
    found = cluster([make_slice("s0", devices)], claim, release=release).reserved(claiming("c0"), "n0")

    assert {"x", "y"} == {models[int(name[1:])] for _, _, name in found}


@pytest.mark.parametrize(
    ("release", "text"),
    [(IN_36, ""), (IN_37, "capacity value is negative"), (IN_38, "capacity value is negative")],
)
def test_a_negative_capacity_request(release, text):
    """#140442: from 1.37 on it is an error of the claim; before, it gave capacity back."""
    here = cluster(
        [make_slice("s0", [shared(capacity={"memory": {"value": "4"}})])],
        make_claim(requests=[wanting("-1")]),
        release=release,
    )
    words = f'claim default/c0, request r0: capacity "memory": {text}'

    assert (words if text else "") == failure(here)


@pytest.mark.parametrize(("release", "fits"), [(IN_36, True), (IN_37, False), (IN_38, False)])
def test_a_negative_amount_of_a_slice(release, fits):
    """#140666: from 1.37 on it keeps its device away, and no other."""
    devices = [shared(capacity={"memory": {"value": "4", "requestPolicy": {"default": "-1"}}})]
    here = cluster([make_slice("s0", devices)], make_claim(), release=release)

    assert fits == bool(here.fits(claiming("c0")))
    here = cluster([make_slice("s0", [*devices, device("b")])], make_claim(), release=release)
    assert here.fits(claiming("c0"))


TOO_LARGE = (
    "capacity request cannot be represented in the device's range arithmetic: request 100E exceeds MaxInt64"
)


@pytest.mark.parametrize(("release", "text"), [(IN_36, ""), (IN_37, TOO_LARGE), (IN_38, TOO_LARGE)])
def test_a_request_beyond_64_bits(release, text):
    """#140442, #141305: nothing wraps around; from 1.37 on the claim is told."""
    here = cluster(
        [make_slice("s0", [shared(capacity=of_range("10", min="1", step="2"))])],
        make_claim(requests=[wanting("100E")]),
        release=release,
    )

    assert text == failure(here).removeprefix('claim default/c0, request r0: capacity "memory": ')
    assert not here.fits(claiming("c0"))


@of_all_releases
@pytest.mark.parametrize("step", ["0", "-1", "100E"])
def test_a_step_that_leads_nowhere(release, step):
    """#140666: a step of nothing, or beyond 64 bits, keeps the device away; nothing is divided by zero."""
    devices = [shared(capacity=of_range("10", min="1", step=step)), shared("b", {"memory": {"value": "9"}})]
    here = cluster([make_slice("s0", devices)], make_claim(requests=[wanting("3")]), release=release)

    assert [("r0", "s0", "b")] == here.reserved(claiming("c0"), "n0")


@pytest.mark.parametrize(("release", "gate"), [(IN_36, False), (IN_37, False), (IN_37, True), (IN_38, True)])
@pytest.mark.parametrize(
    ("wanted", "least", "taken"),
    [("600m", "500m", ["1", "1"]), ("1100m", "500m", ["2", "1500m"]), ("1100m", "100u", ["2", "2"])],
)
def test_a_fractional_range(release, gate, wanted, least, taken):
    """#140161, KEP-5075: with the gate it is counted in thousandths, if these are fine enough for it."""
    here = cluster(
        [make_slice("s0", [shared(capacity=of_range("10", min=least, step="500m"))])],
        make_claim(requests=[wanting(wanted)]),
        release=release,
        gates={"DRAFractionalCapacityRange": True} if gate else {},
    )

    assert {"memory": taken[gate]} == consumed(here)


@pytest.mark.parametrize("wanted", ["600u", "10P"])
def test_a_request_that_is_no_milli_value(wanted):
    """#140161: it is an error of the claim, in upstream's words."""
    here = cluster(
        [make_slice("s0", [shared(capacity=of_range("10", min="0", step="100m"))])],
        make_claim(requests=[wanting(wanted)]),
        release=IN_37,
        gates={"DRAFractionalCapacityRange": True},
    )

    assert failure(here).endswith(f"range arithmetic: request {wanted} is not a representable milli value")


@pytest.mark.parametrize(
    ("release", "step", "taken"),
    [(IN_36, "1k", "3000"), (IN_37, "1k", "3k"), (IN_37, "1Ki", "3Ki"), (IN_38, "1k", "3k")],
)
def test_the_form_of_an_amount_in_steps(release, step, taken):
    """#140161: from 1.37 on it is written as the step is; before, in the binary form."""
    here = cluster(
        [make_slice("s0", [shared(capacity=of_range("10Ki", min="0", step=step))])],
        make_claim(requests=[wanting("2500")]),
        release=release,
    )

    assert {"memory": taken} == consumed(here)


@of_all_releases
def test_amounts_stay_what_their_slice_says(release):
    """#140518, #140702: an allocation leaves the slice as it is, whatever its amounts are."""
    part = make_slice("s0", [shared(capacity=of_range("9E", min="1n", step="3n"))])
    here = cluster([part], make_claim(requests=[wanting("2500u")]), release=release)
    taken = [consumed(here)]
    for claim in list(here.listers.claim_tracker.all_in_flight()):
        here.listers.claim_tracker.end(claim.uid, claiming("c0"))

    assert [consumed(here)] == taken
    (spec,) = here.listers.resource_slices
    assert part == spec


NAMED = f"{DRIVER}/memory"


@pytest.mark.parametrize(("release", "fits"), [(IN_36, False), (IN_37, False), (IN_38, True)])
@pytest.mark.parametrize(("asked", "there"), [(NAMED, "memory"), ("memory", NAMED)])
def test_vector_16_a_qualified_capacity_name(release, fits, asked, there):
    """#142202: from 1.38 on it means the driver's capacity of the plain name, either way around."""
    slices = [make_slice("s0", [shared(capacity={there: {"value": "4"}})])]
    here = cluster(slices, make_claim(requests=[wanting("1", asked)]), release=release)

    assert fits == bool(here.fits(claiming("c0")))


@pytest.mark.parametrize(("release", "fits"), [(IN_36, True), (IN_37, True), (IN_38, False)])
@pytest.mark.parametrize(("recorded", "there"), [(NAMED, "memory"), ("memory", NAMED)])
def test_a_qualified_name_in_an_allocation(release, fits, recorded, there):
    """#142202: from 1.38 on what is taken counts however it was recorded."""
    here = cluster(
        [make_slice("s0", [shared(capacity={there: {"value": "4"}})])],
        holding(consumed={recorded: "3"}),
        make_claim(requests=[wanting("2", there)]),
        release=release,
    )

    assert fits == bool(here.fits(claiming("c0")))


@pytest.mark.parametrize(("release", "fits"), [(IN_36, True), (IN_37, True), (IN_38, False)])
def test_exclusive_use_after_shared_use(release, fits):
    """#140798: from 1.38 on a device that has a share out is not given as a whole."""
    here = cluster([make_slice("s0", [device("a")])], holding(), make_claim(), release=release)

    assert fits == bool(here.fits(claiming("c0")))


@of_all_releases
def test_vector_15_all_devices_with_an_incomplete_pool(release):
    """#141898: that node does not fit, and another one does; kube-scheduler fails the pod up to 1.37."""
    slices = [
        make_slice("s0", [device("a")], node="n0", slices=2),
        make_slice("s1", [device("b")], node="n1"),
    ]
    claim = make_claim(requests=[request(allocationMode="All")])

    assert ["n1"] == cluster(slices, claim, release=release, nodes=["n0", "n1"]).fits(claiming("c0"))


@pytest.mark.parametrize(("release", "fits"), [(IN_36, True), (IN_37, False), (IN_38, False)])
def test_vector_18_a_device_taint_rule(release, fits):
    """#138676: from 1.37 on a rule counts without any gate."""
    here = cluster([make_slice("s0", [device("a")])], make_claim(), release=release)
    spec = {"deviceSelector": {"device": "a"}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    if here.handle.feature_enabled("DRADeviceTaintRules"):
        here.listers.device_taint_rules.put(
            from_document({"metadata": {"name": "r"}, "spec": spec}, DeviceTaintRule)
        )

    assert fits == bool(here.fits(claiming("c0")))


MISSING = f'device.attributes["{DRIVER}"].model == "x"'
GUIDED = (
    "CEL runtime error: no such key: model. consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


@pytest.mark.parametrize(
    ("release", "own", "words"),
    [
        (IN_36, True, "claim default/c0: selector #0: CEL runtime error: no such key: model"),
        (IN_37, True, f"claim default/c0: selector #0 on device {DRIVER}/s0/a: {GUIDED}"),
        (IN_37, False, f"class gpu: selector #0 on device {DRIVER}/s0/a: {GUIDED}"),
        (IN_38, True, f"claim default/c0: selector #0 on device {DRIVER}/s0/a: {GUIDED}"),
    ],
)
def test_a_selector_that_fails_on_a_device(release, own, words):
    """#136709: from 1.37 on its error names the device, and what to write."""
    selectors = [{"cel": {"expression": MISSING}}]
    claim = make_claim(requests=[request(selectors=selectors if own else [])])
    classes = [make_class(selectors=[] if own else selectors)]
    devices = [device("a", attributes={"other": {"string": "x"}})]
    here = cluster([make_slice("s0", devices)], claim, release=release, classes=classes)

    assert words == failure(here)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (IN_36, "claim default/c0: selector #0: CEL runtime error: "),
        (IN_37, f"convert Device {DRIVER}/s0/a: "),
        (IN_38, f"convert Device {DRIVER}/s0/a: "),
    ],
)
def test_a_device_that_cannot_be_converted(release, words):
    """#136709: from 1.37 on the device is named, not the selector that was asked first."""
    selectors = [{"cel": {"expression": 'device.driver == "other"'}}]
    claim = make_claim(requests=[request(selectors=selectors)])
    devices = [device("a", attributes={"release": {"version": "not a version"}})]

    assert failure(cluster([make_slice("s0", devices)], claim, release=release)).startswith(words)


@of_all_releases
def test_counters_of_two_drivers(release):
    """#140435: pools of one name that two drivers publish have counters of their own."""
    slices = [
        *counting(1, device("a", **takes(1))),
        *counting(1, device("b", **takes(1)), prefix="other", driver="other.example"),
    ]
    here = cluster(slices, make_claim(requests=[request(count=2)]), release=release)

    assert [("r0", "p", "a"), ("r0", "p", "b")] == here.reserved(claiming("c0"), "n0")


@of_all_releases
def test_a_candidate_that_is_refused_gives_its_counters_back(release):
    """#140431: counters of a device that its taint keeps away are there for others."""
    tainted = device("a", taints=[{"key": "bad", "effect": "NoSchedule"}], **takes(2))
    claim = make_claim(requests=[request("r0"), request("r1", tolerations=[{"operator": "Exists"}])])
    here = cluster(counting(3, tainted, device("b", **takes(1))), claim, release=release)

    assert [("r0", "p", "b"), ("r1", "p", "a")] == here.reserved(claiming("c0"), "n0")


@of_all_releases
def test_a_shared_device_stays_in_use_as_the_search_goes_back(release):
    """#140431, #140437: it charges its counters once, and not again after a dead end."""
    devices = [
        shared("a", {"memory": {"value": "4"}}, attributes={"model": {"string": "x"}}, **takes(2)),
        device("b", attributes={"model": {"string": "y"}}, **takes(1)),
        device("c", attributes={"model": {"string": "x"}}, **takes(1)),
    ]
    match = [{"matchAttribute": f"{DRIVER}/model"}]
    share = {"capacity": {"requests": {"memory": "2"}}}
    requests = [request("r0", **share), request("r1", **share), request("r2", count=1)]
    other = [{"cel": {"expression": "!device.allowMultipleAllocations"}}]
    requests[2]["exactly"]["selectors"] = other
    here = cluster(counting(3, *devices), make_claim(requests=requests, constraints=match), release=release)

    assert [("r0", "p", "a"), ("r1", "p", "a"), ("r2", "p", "c")] == here.reserved(claiming("c0"), "n0")


@of_all_releases
@pytest.mark.parametrize("consumed_capacity", [{}, {"memory": "1"}])
def test_a_share_charges_its_counters_once(release, consumed_capacity):
    """#140437: also one that takes nothing of any capacity."""
    devices = [shared("a", {"memory": {"value": "4"}}, **takes(2)), device("b", **takes(2))]
    held = holding(pool="p", consumed=consumed_capacity)
    other = [{"cel": {"expression": "!device.allowMultipleAllocations"}}]

    for slots, fits in ((3, False), (4, True)):
        claim = make_claim(requests=[request(selectors=other)])
        here = cluster(counting(slots, *devices), held, claim, release=release)
        assert fits == bool(here.fits(claiming("c0")))


@of_all_releases
def test_a_partition_is_given_once(release):
    """#139040: a device that cannot be shared goes to one request, beside one that can."""
    devices = [shared("a", {"memory": {"value": "4"}}, **takes(1)), device("b", **takes(1))]
    other = [{"cel": {"expression": "!device.allowMultipleAllocations"}}]
    one, two = (
        make_claim(requests=[request(f"r{i}", selectors=other) for i in range(count)]) for count in (1, 2)
    )

    assert cluster(counting(4, *devices), one, release=release).fits(claiming("c0"))
    assert not cluster(counting(4, *devices), two, release=release).fits(claiming("c0"))


@of_all_releases
@pytest.mark.parametrize(("slots", "fits"), [(2, True), (1, False)])
def test_all_devices_that_count(release, slots, fits):
    """#138885: a request for all devices of a card gets them, or the node does not fit."""
    devices = [device("a", **takes(1)), device("b", **takes(1))]
    claim = make_claim(requests=[request(allocationMode="All")])
    here = cluster(counting(slots, *devices), claim, release=release)

    assert fits == bool(here.fits(claiming("c0")))
    assert not failure(here)


@of_all_releases
def test_a_matching_attribute_backtracks(release):
    """#140325: a value that leads nowhere is given up for the next one."""
    devices = [device(f"d{i}", attributes={"model": {"string": each}}) for i, each in enumerate("xyy")]
    claim = make_claim(requests=[request(count=2)], constraints=[{"matchAttribute": f"{DRIVER}/model"}])
    here = cluster([make_slice("s0", devices)], claim, release=release)

    assert [("r0", "s0", "d1"), ("r0", "s0", "d2")] == here.reserved(claiming("c0"), "n0")


@of_all_releases
def test_more_devices_than_a_claim_may_have(release):
    """#141307: the error names the number; an alternative of such a number gives way to the next one."""
    devices = [make_slice("s0", [device(f"d{i}") for i in range(40)])]
    huge = make_claim(requests=[request(f"r{i}", count=2**62) for i in range(4)])
    words = f"claim default/c0: number of requested devices {2**64} exceeds the claim limit of 32"

    assert words == failure(cluster(devices, huge, release=release))

    subs = [{"name": f"s{i}", "deviceClassName": "gpu", "count": n} for i, n in enumerate((2**62, 1))]
    claim = make_claim(requests=[{"name": "r0", "firstAvailable": subs}])
    here = cluster(devices, claim, release=release)
    assert [("r0/s1", "s0", "d0")] == here.reserved(claiming("c0"), "n0")


@of_all_releases
def test_rules_and_slices_that_change_together(release):
    """#139651, #140193: a rule outlives the slice that it taints, and one that is not known can go."""
    here = cluster(
        [make_slice("s0", [device("a")])], make_claim(), release=release, gates={"DRADeviceTaintRules": True}
    )
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    rule = from_document({"metadata": {"name": "r"}, "spec": spec}, DeviceTaintRule)
    rules, slices = here.listers.device_taint_rules, here.listers.resource_slices
    rules.put(rule)
    (part,) = slices
    slices.remove(part)
    assert not here.fits(claiming("c0"))

    slices.put(make_slice("s1", [device("b")]))
    assert not here.fits(claiming("c0"))
    rules.remove(rule)
    rules.remove(rule)
    assert here.fits(claiming("c0"))


@of_all_releases
def test_a_claim_whose_devices_are_freed(release):
    """#140831: the next attempt has them."""
    here = cluster(
        [make_slice("s0", [device("a")])], allocated("x", ("s0", "a")), make_claim(), release=release
    )
    assert not here.fits(claiming("c0"))
    here.listers.resource_claims.remove(allocated("x", ("s0", "a")))

    assert here.fits(claiming("c0"))
