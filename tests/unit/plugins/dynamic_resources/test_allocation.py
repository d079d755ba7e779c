"""Which devices a claim gets, and from which nodes."""

import pytest

from berth.objects.decode import from_document
from berth.objects.devices.devices import DeviceTaintRule
from berth.plugins.dynamic_resources.pod_devices import PodDevices
from berth.testing.builders import make_node
from tests.unit.plugins.dynamic_resources.kit import (
    Cluster,
    allocated,
    claiming,
    device,
    make_claim,
    make_class,
    make_slice,
    request,
)

NO_SOLUTION = "cannot allocate all claims"


def attribute(**values):
    return {name: {"string": value} for name, value in values.items()}


def two_gpus(**more):
    return make_slice("s0", [device("a"), device("b")], node="n0", **more)


def test_local_devices_draw_the_pod_to_their_node():
    """A device that names a node can only be had there, and the allocation says so."""
    cluster = Cluster(slices=[two_gpus()], claims=[make_claim()])

    assert {"n0": "", "n1": NO_SOLUTION} == cluster.reasons(claiming("c0"))
    assert [("r0", "s0", "a")] == cluster.reserved(claiming("c0"), "n0")
    (claim,) = cluster.listers.claim_tracker.all_in_flight()
    (term,) = claim.allocation.node_selector.node_selector_terms
    assert ("metadata.name", ("n0",)) == (term.match_fields[0].key, term.match_fields[0].values)


def test_devices_for_all_nodes_need_no_selector():
    """An allocation without local devices can be used from everywhere."""
    cluster = Cluster(slices=[make_slice("s0", [device("a")])], claims=[make_claim()])

    assert ["n0", "n1"] == cluster.fits(claiming("c0"))
    cluster.reserved(claiming("c0"), "n1")
    (claim,) = cluster.listers.claim_tracker.all_in_flight()
    assert claim.allocation.node_selector is None


def test_selected_nodes_pass_their_selector_on():
    """The allocation asks what the slice's selector asks."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    part = make_slice("s0", [device("x")], nodeSelector={"nodeSelectorTerms": [term]})
    nodes = [make_node("n0", labels={"zone": "a"}), make_node("n1", labels={"zone": "b"})]
    cluster = Cluster(nodes=nodes, slices=[part], claims=[make_claim()])

    assert ["n0"] == cluster.fits(claiming("c0"))
    cluster.reserved(claiming("c0"), "n0")
    (claim,) = cluster.listers.claim_tracker.all_in_flight()
    (found,) = claim.allocation.node_selector.node_selector_terms
    assert ["zone"] == [r.key for r in found.match_expressions]


def test_each_device_may_name_its_own_node():
    """With selection by device, one slice serves several nodes."""
    devices = [device("a", nodeName="n0"), device("b", nodeName="n1"), device("c")]
    part = make_slice("s0", devices, perDeviceNodeSelection=True)
    cluster = Cluster(nodes=["n0", "n1", "n2"], slices=[part], claims=[make_claim()])

    assert ["n0", "n1"] == cluster.fits(claiming("c0"))
    assert [("r0", "s0", "b")] == cluster.reserved(claiming("c0"), "n1")


@pytest.mark.parametrize(
    ("requests", "fits"),
    [
        pytest.param([request(count=2)], True, id="as many as there are"),
        pytest.param([request(count=3)], False, id="more than there are"),
        pytest.param([request("r0"), request("r1")], True, id="two requests"),
        pytest.param([request("r0", count=2), request("r1")], False, id="two requests, too many together"),
        pytest.param([request(allocationMode="All")], True, id="all"),
        pytest.param([request(allocationMode="All"), request("r1")], False, id="all, and one more"),
    ],
)
def test_counts(requests, fits):
    """No device serves two requests."""
    cluster = Cluster(slices=[two_gpus()], claims=[make_claim(requests=requests)])

    assert fits == ("n0" in cluster.fits(claiming("c0")))


def test_all_needs_at_least_one():
    """Mode All with no device at all fails."""
    wanted = request(allocationMode="All", selectors=[{"cel": {"expression": "false"}}])

    assert [] == Cluster(slices=[two_gpus()], claims=[make_claim(requests=[wanted])]).fits(claiming("c0"))


def test_two_claims_are_solved_together():
    """The first claim gives up its first choice where the second can be had with nothing else."""
    devices = [device("a", attributes=attribute(kind="big")), device("b", attributes=attribute(kind="small"))]
    only_big = {"cel": {"expression": 'device.attributes["gpu.example"].kind == "big"'}}
    claims = [make_claim("c0"), make_claim("c1", [request(selectors=[only_big])])]
    cluster = Cluster(slices=[make_slice("s0", devices, node="n0")], claims=claims)

    assert [("r0", "s0", "b"), ("r0", "s0", "a")] == cluster.reserved(claiming("c0", "c1"), "n0")


def test_used_devices_are_not_free():
    """What another claim has, allocated or in flight, cannot be had; access for administrators can."""
    taken = allocated("other", ("s0", "a"), ("s0", "b"))
    admin = make_claim("c1", [request(adminAccess=True)])
    cluster = Cluster(slices=[two_gpus()], claims=[taken, make_claim(), admin])

    assert [] == cluster.fits(claiming("c0"))
    assert ["n0"] == cluster.fits(claiming("c1"))


def test_administrators_watch_a_device_once():
    """One claim does not get the same device twice."""
    cluster = Cluster(slices=[two_gpus()], claims=[make_claim("c1", [request(adminAccess=True, count=3)])])

    assert [] == cluster.fits(claiming("c1"))


def test_administrators_may_watch_what_the_same_pod_gets():
    """A device that two claims of the pod have is one device less for the others, not two."""
    devices = [device(kind, attributes=attribute(kind=kind)) for kind in "abc"]
    a, b, c = (
        [{"cel": {"expression": f'device.attributes["gpu.example"].kind == "{kind}"'}}] for kind in "abc"
    )
    requests = [
        request("r0", adminAccess=True, selectors=b),
        request("r1", selectors=c),
        request("r2", selectors=a),
    ]
    claims = [make_claim("c0"), make_claim("c1", requests)]
    cluster = Cluster(slices=[make_slice("s0", devices, node="n0")], claims=claims)

    assert ["b", "b", "c", "a"] == [found for _, _, found in cluster.reserved(claiming("c0", "c1"), "n0")]


def test_freed_devices_can_be_had_again():
    """The bookkeeping follows claims that lose their allocation."""
    taken = allocated("other", ("s0", "a"), ("s0", "b"))
    cluster = Cluster(slices=[two_gpus()], claims=[taken, make_claim()])
    assert [] == cluster.fits(claiming("c0"))
    cluster.listers.resource_claims.put(taken.allocated_as(None))

    assert ["n0"] == cluster.fits(claiming("c0"))


def test_class_selectors_come_before_the_requests_own():
    """A device has to meet both."""
    devices = [device("a", attributes=attribute(kind="x")), device("b", attributes=attribute(kind="y"))]
    kind = 'device.attributes["gpu.example"].kind == "{}"'
    classes = [make_class(selectors=[{"cel": {"expression": kind.format("y")}}])]
    own = request(selectors=[{"cel": {"expression": 'device.driver == "gpu.example"'}}])
    part = make_slice("s0", devices, node="n0")
    cluster = Cluster(slices=[part], classes=classes, claims=[make_claim(requests=[own])])

    assert [("r0", "s0", "b")] == cluster.reserved(claiming("c0"), "n0")


def test_a_selector_that_fails_fails_the_cycle():
    """An expression that cannot be evaluated is an error, not a rejection."""
    broken = request(selectors=[{"cel": {"expression": 'device.attributes["x"].y == 1'}}])
    cluster = Cluster(slices=[two_gpus()], claims=[make_claim(requests=[broken])])
    assert cluster.pre_filter(claiming("c0")).ok
    codes = cluster.codes(claiming("c0"))
    status = cluster.plugin.filter_status(cluster.state, int(codes[0]))

    assert not status.rejected
    assert status.message.startswith("claim default/c0: selector #0: CEL runtime error: no such key")


@pytest.mark.parametrize(
    ("constraint", "kinds", "fits"),
    [
        pytest.param({"matchAttribute": "gpu.example/kind"}, "xyx", True, id="two alike"),
        pytest.param({"matchAttribute": "gpu.example/kind"}, "xyz", False, id="none alike"),
        pytest.param({"distinctAttribute": "gpu.example/kind"}, "xxy", True, id="two that differ"),
        pytest.param({"distinctAttribute": "gpu.example/kind"}, "xxx", False, id="none differ"),
        pytest.param({"matchAttribute": "gpu.example/other"}, "xxx", False, id="no device has it"),
        pytest.param({"matchAttribute": "gpu.example/kind", "requests": ["r9"]}, "xyz", True, id="others"),
    ],
)
def test_constraints(constraint, kinds, fits):
    """Devices of a claim agree, or differ, in an attribute."""
    devices = [device(f"d{i}", attributes=attribute(kind=k)) for i, k in enumerate(kinds)]
    claim = make_claim(requests=[request(count=2)], constraints=[constraint])
    cluster = Cluster(slices=[make_slice("s0", devices, node="n0")], claims=[claim])

    assert fits == ("n0" in cluster.fits(claiming("c0")))


@pytest.mark.parametrize(
    ("effect", "tolerations", "fits"),
    [
        ("NoSchedule", [], False),
        ("NoExecute", [], False),
        ("None", [], True),
        ("NoSchedule", [{"key": "broken", "operator": "Exists"}], True),
        ("NoSchedule", [{"key": "other", "operator": "Exists"}], False),
    ],
)
def test_device_taints(effect, tolerations, fits):
    """A tainted device is for requests that tolerate it."""
    part = make_slice("s0", [device("a", taints=[{"key": "broken", "effect": effect}])], node="n0")
    claim = make_claim(requests=[request(tolerations=tolerations)])

    assert fits == ("n0" in Cluster(slices=[part], claims=[claim]).fits(claiming("c0")))
    assert ["n0"] == Cluster(slices=[part], claims=[claim], gates={"DRADeviceTaints": False}).fits(
        claiming("c0")
    )


@pytest.mark.parametrize(
    ("effect", "fits"), [("NoSchedule", False), ("NoExecute", False), ("None", True), ("Unknown", True)]
)
def test_device_taint_rules(effect, fits):
    """A rule's taint counts as the driver's own does, with the next attempt."""
    cluster = Cluster(slices=[make_slice("s0", [device("a")], node="n0")], claims=[make_claim()])
    assert ["n0"] == cluster.fits(claiming("c0"))
    spec = {"deviceSelector": {"device": "a"}, "taint": {"key": "broken", "effect": effect}}
    rule = from_document({"metadata": {"name": "repair"}, "spec": spec}, DeviceTaintRule)

    cluster.listers.device_taint_rules.put(rule)
    assert fits == bool(cluster.fits(claiming("c0")))
    cluster.listers.device_taint_rules.remove(rule)
    assert ["n0"] == cluster.fits(claiming("c0"))


def partitions(**extra):
    def consuming(amount):
        return [{"counterSet": "card", "counters": {"memory": {"value": amount}}}]

    devices = [
        device("whole", consumesCounters=consuming("40Gi")),
        device("half-0", consumesCounters=consuming("20Gi")),
        device("half-1", consumesCounters=consuming("20Gi")),
    ]
    counters = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    return make_slice("s0", devices, node="n0", sharedCounters=counters, **extra)


def test_partitions_share_counters():
    """A card is handed out as a whole or in halves, not both."""
    two = make_claim(requests=[request(count=2)])
    three = make_claim("c1", [request(count=3)])
    cluster = Cluster(slices=[partitions()], claims=[two, three])

    assert [("r0", "s0", "half-0"), ("r0", "s0", "half-1")] == cluster.reserved(claiming("c0"), "n0")
    assert [] == cluster.fits(claiming("c1"))


def test_partitions_in_use_leave_the_rest():
    """Counters count what other claims have."""
    cluster = Cluster(slices=[partitions()], claims=[allocated("other", ("s0", "half-0")), make_claim()])

    assert [("r0", "s0", "half-1")] == cluster.reserved(claiming("c0"), "n0")


def shared(amount, **policy):
    capacity = {"memory": {"value": amount, **({"requestPolicy": policy} if policy else {})}}
    return make_slice("s0", [device("a", allowMultipleAllocations=True, capacity=capacity)], node="n0")


@pytest.mark.parametrize(
    ("wanted", "policy", "taken"),
    [
        pytest.param("4Gi", {}, "4Gi", id="as wanted"),
        pytest.param(None, {}, "10Gi", id="all without a default"),
        pytest.param(None, {"default": "1Gi"}, "1Gi", id="the default"),
        pytest.param("3Gi", {"validValues": ["2Gi", "5Gi"]}, "5Gi", id="the next valid value"),
        pytest.param("3Gi", {"validRange": {"min": "2Gi", "step": "2Gi"}}, "4Gi", id="the next step"),
        pytest.param(
            "1500Mi", {"validRange": {"min": "1Gi", "step": "512Mi"}}, "1536Mi", id="written in binary"
        ),
        pytest.param("1100M", {"validRange": {"min": "1Gi"}}, "1100M", id="written as wanted"),
        pytest.param("1Gi", {"validRange": {"min": "2Gi"}}, "2Gi", id="the least"),
    ],
)
def test_consumed_capacity(wanted, policy, taken):
    """A shared device gives what the policy makes of the request, under a share of its own."""
    capacity = {"capacity": {"requests": {"memory": wanted}}} if wanted else {}
    claim = make_claim(requests=[request(**capacity)])
    cluster = Cluster(slices=[shared("10Gi", **policy)], claims=[claim])
    cluster.reserved(claiming("c0"), "n0")
    (held,) = cluster.listers.claim_tracker.all_in_flight()
    (result,) = held.allocation.devices.results

    assert {"memory": taken} == result.consumed_capacity
    assert result.share_id


def test_shared_devices_run_out():
    """Claims share a device until its capacity is taken."""
    requests = [request(f"r{i}", capacity={"requests": {"memory": "4Gi"}}) for i in range(3)]
    two, three = make_claim("c0", requests[:2]), make_claim("c1", requests)
    cluster = Cluster(slices=[shared("10Gi")], claims=[two, three])

    assert ["n0"] == cluster.fits(claiming("c0"))
    assert [] == cluster.fits(claiming("c1"))


def alternatives(*classes):
    subs = [{"name": f"s{i}", "deviceClassName": name} for i, name in enumerate(classes)]
    return {"name": "r0", "firstAvailable": subs}


def test_the_first_alternative_that_can_be_had():
    """Alternatives are tried in order; the score prefers nodes that serve an earlier one."""
    kind = 'device.attributes["gpu.example"].kind == "{}"'
    classes = [make_class(k, selectors=[{"cel": {"expression": kind.format(k)}}]) for k in ("big", "small")]
    slices = [
        make_slice("s0", [device("a", attributes=attribute(kind="small"))], node="n0"),
        make_slice("s1", [device("b", attributes=attribute(kind="big"))], node="n1"),
    ]
    claims = [make_claim(requests=[alternatives("big", "small")])]
    cluster = Cluster(slices=slices, classes=classes, claims=claims)

    assert ["n0", "n1"] == cluster.fits(claiming("c0"))
    assert [7, 8] == cluster.plugin.score(cluster.state, claiming("c0"), cluster.nodes).tolist()
    assert [("r0/s1", "s0", "a")] == cluster.reserved(claiming("c0"), "n0")


@pytest.mark.parametrize(
    ("slices", "mode", "reason"),
    [
        pytest.param({"slices": 2}, "ExactCount", NO_SOLUTION, id="incomplete, counted"),
        pytest.param({"generation": 2}, "ExactCount", "", id="a newer generation counts alone"),
    ],
)
def test_pools_in_change(slices, mode, reason):
    """Slices of a pool count once all of its newest generation are there."""
    part = make_slice("s0", [device("a")], node="n0", pool="p", **slices)
    old = make_slice("s1", [device("a"), device("b")], node="n0", pool="p", generation=0)
    claim = make_claim(requests=[request(allocationMode=mode)])

    assert reason == Cluster(slices=[part, old], claims=[claim]).reasons(claiming("c0"))["n0"]


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param({"slices": 2, "devices": [device("a")]}, id="slices are missing"),
        pytest.param({"devices": [device("a"), device("a")]}, id="one name twice"),
        pytest.param({"devices": [device(f"d{i}") for i in range(33)]}, id="more than a claim may have"),
    ],
)
def test_a_node_whose_devices_cannot_all_be_had_is_unsuitable(devices):
    """kubernetes/kubernetes#141829: other nodes are tried; the error of one node does not end the attempt."""
    bad = make_slice("s0", node="n0", **devices)
    good = make_slice("s1", [device("a")], node="n1")
    claim = make_claim(requests=[request(allocationMode="All")])

    assert ["n1"] == Cluster(slices=[bad, good], claims=[claim]).fits(claiming("c0"))


def test_the_words_for_an_unfinished_pool():
    """How many are all devices is unknown while slices are missing."""
    part = make_slice("s0", [device("a")], node="n0", slices=2)
    claim = make_claim(requests=[request(allocationMode="All")])
    text = Cluster(slices=[part], claims=[claim]).reasons(claiming("c0"))["n0"]

    assert (
        "claim default/c0, request r0: asks for all devices, "
        "but resource pool gpu.example/s0 is currently being updated"
    ) == text


def test_invalid_pools_are_reported():
    """A pool with one name twice gives nothing, and the reason says so."""
    part = make_slice("s0", [device("a"), device("a")], node="n0")
    reasons = Cluster(slices=[part], claims=[make_claim()]).reasons(claiming("c0"))

    assert {"n0": "invalid resource pools were encountered", "n1": NO_SOLUTION} == reasons


def test_pools_that_wait_to_bind_come_last():
    """Devices with binding conditions are taken only where nothing else can be had."""
    slices = [
        make_slice("s0", [device("a", bindingConditions=["ready"])], node="n0"),
        make_slice("s1", [device("b")], node="n0"),
    ]

    assert [("r0", "s1", "b")] == Cluster(slices=slices, claims=[make_claim()]).reserved(claiming("c0"), "n0")


def test_a_claim_gets_at_most_32_devices():
    """Upstream's limit on results holds for the search, too."""
    part = make_slice("s0", [device(f"d{i:02}") for i in range(40)], node="n0")
    claims = [make_claim("c0", [request(count=32)]), make_claim("c1", [request(count=33)])]
    cluster = Cluster(slices=[part], claims=claims)

    assert ["n0"] == cluster.fits(claiming("c0"))
    assert [] == cluster.fits(claiming("c1"))


def test_nodes_with_one_view_are_asked_once():
    """However many nodes see the same devices, the search runs once for them."""
    cluster = Cluster(
        nodes=[f"n{i}" for i in range(50)],
        slices=[make_slice("s0", [device("a")]), make_slice("s1", [device("b")], node="n7")],
        claims=[make_claim()],
    )
    cluster.reasons(claiming("c0"))

    (search,) = cluster.state.read(PodDevices).question.pod_searches
    assert 2 == len(search.table) - 1


def test_equal_devices_are_not_tried_in_all_orders():
    """A claim that cannot be met is rejected at once, however many equal devices there are."""
    devices = [device(f"d{i:02}", attributes=attribute(kind="x")) for i in range(40)]
    missing = request("r1", selectors=[{"cel": {"expression": "false"}}])
    claim = make_claim(requests=[request(count=20), missing])
    cluster = Cluster(slices=[make_slice("s0", devices, node="n0")], claims=[claim])

    assert [] == cluster.fits(claiming("c0"))
