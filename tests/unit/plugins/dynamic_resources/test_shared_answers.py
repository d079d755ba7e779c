"""Pods that ask the same share what was found: exactly what a search for each of them would find."""

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.plugins.dynamic_resources import DynamicResources
from berth.plugins.dynamic_resources.allocator import AllocationSearch
from berth.plugins.dynamic_resources.pod_devices import PodDevices
from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    Cluster,
    claiming,
    device,
    finished,
    make_claim,
    make_slice,
    request,
)

NODES = [f"n{i}" for i in range(4)]
NETWORK = "net"
"""A pool that all nodes reach."""
POOLS = [*NODES, NETWORK]


def node_slices(node, found):
    slots = {"slots": {"value": str(1 + POOLS.index(node))}}
    counters = [{"name": "whole", "counters": slots}]
    where = {} if node == NETWORK else {"node": node}
    yield make_slice(f"{node}-0", [], pool=node, slices=2, sharedCounters=counters, **where)
    yield make_slice(f"{node}-1", found, pool=node, slices=2, **where)


def answered(cluster, pod):
    """For each node why not, or the devices; one text where the attempt fails."""
    status = cluster.pre_filter(pod)
    if not status.ok:
        return status.message
    try:
        codes = finished(cluster.plugin.filter(cluster.state, pod, cluster.nodes)).tolist()
    except Exception as error:  # noqa: BLE001 - the text is what is compared
        return str(error)
    return [
        picked(cluster, name) if not code else cluster.plugin.filter_status(cluster.state, code).message
        for name, code in zip(cluster.nodes.names, codes, strict=True)
    ]


def picked(cluster, node):
    question = cluster.state.read(PodDevices).question
    found = question.found(cluster.nodes, node)
    return [
        (claim.key, pick.ask.name, pick.device.id, pick.taken and pick.taken.nanos)
        for claim, picks in zip(found.claims, found.solution, strict=True)
        for pick in picks
    ]


def anew(cluster):
    """The same cluster with a plugin that was never asked, and searches for each view."""
    other = Cluster(nodes=NODES)
    other.nodes, other.listers, other.handle = cluster.nodes, cluster.listers, cluster.handle
    other.plugin = DynamicResources(cluster.plugin.args, cluster.handle)
    other.plugin._supply.state = lambda _view: object()
    return other


FORMS = {
    "plain": {},
    "big": {"attributes": {"size": {"int": 2}}},
    "tainted": {"taints": [{"key": "bad", "effect": "NoSchedule"}]},
    "counted": {"consumesCounters": [{"counterSet": "whole", "counters": {"slots": {"value": "1"}}}]},
    "shared": {
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "4", "requestPolicy": {"default": "2"}}},
    },
}
BIG = [{"cel": {"expression": f'device.attributes["{DRIVER}"].?size.orValue(1) > 1'}}]
SAME_SIZE = {"constraints": [{"matchAttribute": f"{DRIVER}/size"}]}
SUB = {"deviceClassName": "gpu"}
ASKED = [
    ([request()], {}),
    ([request(count=2)], {}),
    ([request("r0"), request("r1")], {}),
    ([request(selectors=BIG)], {}),
    ([request(count=2)], SAME_SIZE),
    ([request(tolerations=[{"operator": "Exists"}], count=3)], {}),
    ([request(allocationMode="All")], {}),
    ([request(adminAccess=True)], {}),
    ([request(capacity={"requests": {"memory": "3"}})], {}),
    (
        [
            {
                "name": "r0",
                "firstAvailable": [{"name": "s0", "selectors": BIG, **SUB}, {"name": "s1", **SUB}],
            }
        ],
        {},
    ),
]
found_devices = st.lists(st.sampled_from(list(FORMS)), min_size=1, max_size=4).map(
    lambda forms: of_forms(*forms)
)
a_pool, a_device = st.sampled_from(POOLS), st.integers(0, 2).map("d{}".format)
steps = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 1)),
    st.tuples(st.just("ask"), st.integers(0, 1)),
    st.tuples(st.just("take"), a_pool, a_device),
    st.tuples(st.just("share"), a_pool, a_device),
    st.tuples(st.just("free"), a_pool, a_device),
    st.tuples(st.just("publish"), a_pool, found_devices),
)
"""Pods to ask for, devices that get into use or out of it, and slices that change."""


def held(name, node, device_name, **more):
    result = {"request": "r0", "driver": DRIVER, "pool": node, "device": device_name, **more}
    return make_claim(name, status={"allocation": {"devices": {"results": [result]}}})


def of_forms(*forms):
    return [device(f"d{i}", **FORMS[form]) for i, form in enumerate(forms)]


@example(
    found=(of_forms("counted", "counted"), of_forms("plain"), []),
    asked=(ASKED[1], ASKED[0]),
    done=[("ask", 0), ("take", "n2", "d0"), ("ask", 0), ("free", "n2", "d0"), ("ask", 0)],
)
@settings(max_examples=examples(300), deadline=None)
@given(
    found=st.tuples(found_devices, found_devices, st.one_of(st.just([]), found_devices)),
    asked=st.tuples(st.sampled_from(ASKED), st.sampled_from(ASKED)),
    done=st.lists(steps, min_size=3, max_size=14),
)
def test_answers_are_those_of_a_plugin_that_was_never_asked(found, asked, done):
    """Whatever was asked, taken, freed and published before: the same devices, reasons and errors."""
    slices = [part for i, node in enumerate(NODES) for part in node_slices(node, found[i % 2])]
    slices += node_slices(NETWORK, found[2])
    wanted = [make_claim(f"c{i}", requests, **more) for i, (requests, more) in enumerate(asked)]
    cluster = Cluster(nodes=NODES, slices=slices, claims=wanted)
    claims, published = cluster.listers.resource_claims, cluster.listers.resource_slices
    for kind, *what in done:
        name = "-".join(map(str, what))
        if kind == "ask":
            pod = claiming(f"c{what[0]}")
            assert answered(anew(cluster), pod) == answered(cluster, pod)
        elif kind == "publish":
            for part in node_slices(*what):
                published.put(part)
        elif kind == "take":
            claims.put(held(name, *what))
        elif kind == "share":
            claims.put(held(name, *what, shareID="s", consumedCapacity={"memory": "3"}))
        else:
            claims.put(make_claim(name))


def attributes(number):
    return {"uuid": {"string": f"u{number}"}, "root": {"string": f"r{number // 2}"}}


@pytest.mark.parametrize(
    ("constraints", "selector"),
    [
        pytest.param([], "true", id="devices differ in what nothing asks for"),
        pytest.param([{"matchAttribute": f"{DRIVER}/root"}], "true", id="values are equal within nodes"),
        pytest.param([], f'device.attributes["{DRIVER}"].uuid != "none"', id="a selector holds for all"),
    ],
)
def test_one_search_serves_all_nodes_that_are_alike(constraints, selector):
    """For pods that ask the same, and on nodes whose devices no request tells apart."""
    slices = [
        make_slice(node, [device(f"d{j}", attributes=attributes(4 * i + j)) for j in range(4)], node=node)
        for i, node in enumerate(NODES)
    ]
    wanted = [request(count=2, selectors=[{"cel": {"expression": selector}}])]
    asked = [make_claim(f"c{i}", wanted, constraints=constraints) for i in range(3)]
    cluster = Cluster(nodes=NODES, slices=slices, claims=asked)
    with patch.object(
        AllocationSearch, "advance", autospec=True, side_effect=AllocationSearch.advance
    ) as run:
        for i, node in enumerate(NODES[:3]):
            assert NODES == cluster.fits(claiming(f"c{i}"))
            assert [("r0", node, "d0"), ("r0", node, "d1")] == cluster.reserved(claiming(f"c{i}"), node)[-2:]

    searches = {id(call.args[0]) for call in run.call_args_list}
    assert 2 == len(searches)


def test_nodes_share_a_search_for_what_all_of_them_reach():
    """Devices of their own that are not asked for keep nodes no more apart than those in use."""
    own = [make_slice(node, [device(f"d{i}") for i in range(n)], node=node) for n, node in enumerate(NODES)]
    big = {"attributes": {"size": {"int": 2}}}
    reached = make_slice(NETWORK, [device(f"b{i}", **big) for i in range(3)])
    wanted = [request(selectors=BIG)]
    cluster = Cluster(
        nodes=NODES, slices=[*own, reached], claims=[make_claim(f"c{i}", wanted) for i in range(3)]
    )
    with patch.object(
        AllocationSearch, "advance", autospec=True, side_effect=AllocationSearch.advance
    ) as run:
        for i, node in enumerate(NODES[:3]):
            assert NODES == cluster.fits(claiming(f"c{i}"))
            assert ("r0", NETWORK, f"b{i}") == cluster.reserved(claiming(f"c{i}"), node)[-1]

    assert 3 == len({id(call.args[0]) for call in run.call_args_list})
