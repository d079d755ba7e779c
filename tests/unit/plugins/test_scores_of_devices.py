"""Extended resources that devices stand behind, in the scores of resources."""

import numpy as np
import pytest

from berth.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import NO_ROW_FORM
from berth.framework.mirrors.listers import Listers
from berth.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import scores
from tests.unit.plugins.dynamic_resources.kit import allocated, device, make_class, make_slice

GPU = "example.com/gpu"
SHAPE = (UtilizationShapePoint(utilization=0, score=0), UtilizationShapePoint(utilization=100, score=10))
FIRST = 'device.attributes["gpu.example"].kind == "first"'
NODES = [make_node(f"n{i}", allocatable={"cpu": "4"}) for i in range(2)]


def fit(strategy, listers, **handle):
    ratio = RequestedToCapacityRatioParam(shape=SHAPE) if strategy == "RequestedToCapacityRatio" else None
    args = NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            type=strategy,
            resources=(ResourceSpec(name=GPU, weight=1),),
            requested_to_capacity_ratio=ratio,
        )
    )
    return make_plugin(NodeResourcesFit, args, listers=listers, **handle)


def balance(listers):
    resources = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name=GPU, weight=1))
    args = NodeResourcesBalancedAllocationArgs(resources=resources)
    return make_plugin(NodeResourcesBalancedAllocation, args, listers=listers)


def devices(*, selectors=(), claims=(), kinds=("first",) * 4):
    """Four devices on n0, two on n1."""
    listers = Listers()
    terms = [{"cel": {"expression": expression}} for expression in selectors]
    listers.device_classes.put(make_class(extendedResourceName=GPU, selectors=terms))
    for node, number in (("n0", 4), ("n1", 2)):
        made = [device(f"d{i}", attributes={"kind": {"string": kinds[i]}}) for i in range(number)]
        listers.resource_slices.put(make_slice(f"on-{node}", made, node=node))
    for claim in claims:
        listers.resource_claims.put(claim)
    return listers


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("LeastAllocated", {"n0": 75, "n1": 50}),
        ("MostAllocated", {"n0": 25, "n1": 50}),
        ("RequestedToCapacityRatio", {"n0": 25, "n1": 50}),
    ],
)
def test_devices_are_what_a_node_has(strategy, expected):
    assert expected == scores(fit(strategy, devices()), make_pod(requests={GPU: "1"}), NODES)


def test_devices_of_claims_are_in_use():
    claim = allocated("c0", ("on-n0", "d0"), ("on-n0", "d1"))

    found = scores(fit("MostAllocated", devices(claims=[claim])), make_pod(requests={GPU: "1"}), NODES)

    assert {"n0": 75, "n1": 50} == found


def test_devices_of_other_classes_do_not_count():
    listers = devices(selectors=[FIRST], kinds=("first", "first", "second", "second"))

    assert {"n0": 50, "n1": 50} == scores(fit("MostAllocated", listers), make_pod(requests={GPU: "1"}), NODES)


def test_what_a_node_offers_itself_goes_before_devices():
    nodes = [make_node("n0", allocatable={GPU: "10"}), make_node("n1")]
    holder = make_pod("holder", requests={GPU: "4"}, node_name="n0")

    found = scores(fit("MostAllocated", devices()), make_pod(requests={GPU: "1"}), nodes, [holder])

    assert {"n0": 50, "n1": 50} == found


def test_a_selector_that_fails():
    """The node's devices do not count, and the pod is scored all the same."""
    listers = devices(selectors=['device.attributes["gpu.example"].missing == "x"'])

    assert {"n0": 0, "n1": 0} == scores(fit("MostAllocated", listers), make_pod(requests={GPU: "1"}), NODES)


def test_devices_that_come_and_claims_that_go():
    claim = allocated("c0", ("on-n0", "d0"))
    listers = devices(claims=[claim])
    plugin, pod = fit("MostAllocated", listers), make_pod(requests={GPU: "1"})
    assert {"n0": 50, "n1": 50} == scores(plugin, pod, NODES)

    listers.resource_claims.remove(claim)
    listers.resource_slices.put(make_slice("more", [device("d0"), device("d1")], node="n1"))

    assert {"n0": 25, "n1": 25} == scores(plugin, pod, NODES)


def test_balance_with_devices():
    """n0 uses a quarter of both with the pod; n1 a quarter of cpu and half of its devices."""
    pod = make_pod(requests={"cpu": "1", GPU: "1"})

    assert {"n0": 75, "n1": 50 + (50 + 87 - 100) // 2} == scores(balance(devices()), pod, NODES)


def test_without_the_gate_devices_do_not_count():
    plugin = fit("MostAllocated", devices(), gates={"DRAExtendedResource": False})

    assert {"n0": 0, "n1": 0} == scores(plugin, make_pod(requests={GPU: "1"}), NODES)


def test_scores_of_devices_are_not_kept():
    """Devices and claims change without a change of nodes: there is no form for rows, and no basis."""
    nodes, pod, state = table(NODES), make_pod(requests={"cpu": "1", GPU: "1"}), CycleState()
    for plugin in (fit("MostAllocated", devices()), balance(devices())):
        plugin.pre_score(state, pod, nodes, np.ones(len(nodes), dtype=bool))

        assert NO_ROW_FORM == plugin.score_by_row(state, pod, nodes)
        assert plugin.cache_key(state, pod, nodes) is None
        assert () == plugin.cache_key(state, make_pod(requests={"cpu": "1"}), nodes)
