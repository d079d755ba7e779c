"""The scores of NodeResourcesFit and NodeResourcesBalancedAllocation."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from berth.objects.pods.pod_spec import Resources
from berth.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.resource_shares import EXACT_BELOW
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_plugin
from berth.testing.verdicts import scores

NAMES = ("cpu", "memory", "example.com/gpu")


def amounts(*values):
    units = [f"{value}m" if name == "cpu" else str(value) for name, value in zip(NAMES, values, strict=False)]
    return dict(zip(NAMES, units, strict=False))


def fit(strategy, weights=(1, 1), shape=None):
    resources = tuple(ResourceSpec(name=n, weight=w) for n, w in zip(NAMES, weights, strict=False))
    points = [UtilizationShapePoint(utilization=u, score=s) for u, s in shape or ()]
    param = RequestedToCapacityRatioParam(shape=tuple(points)) if shape else None
    args = NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            type=strategy, resources=resources, requested_to_capacity_ratio=param
        )
    )
    return make_plugin(NodeResourcesFit, args)


def score(plugin, request, offer, used=()):
    placed = [make_pod("holder", requests=amounts(*used), node_name="n0")] if used else []
    found = scores(
        plugin, make_pod(requests=amounts(*request)), [make_node(allocatable=amounts(*offer))], placed
    )
    return None if found is None else found["n0"]


@pytest.mark.parametrize(
    ("total", "offer", "weights", "least", "most"),
    [
        ((3000, 5000), (4000, 10000), (1, 1), 37, 62),
        ((3000, 5000), (6000, 10000), (1, 1), 50, 50),
        ((3000, 6000), (4000, 10000), (1, 1), 32, 67),
        ((2000, 4000), (6000, 10000), (1, 1), 63, 36),
        ((5000, 6000), (4000, 10000), (1, 1), 20, 80),
        ((3000, 5000), (4000, 10000), (1, 2), 41, 58),
        ((3000, 5000), (4000, 0), (1, 1), 25, 75),
        ((3000, 5000), (0, 0), (1, 1), 0, 0),
    ],
)
def test_least_and_most(total, offer, weights, least, most):
    """The mean of what is free, or of what is used, over the resources that the node has."""
    assert [least, most] == [
        score(fit(name, weights), total, offer) for name in ("LeastAllocated", "MostAllocated")
    ]


def test_a_huge_node():
    """Amounts beyond the floats' range and amounts within it can be averaged."""
    offer, huge = (1000, 2**50), (500, 2**48)

    assert (50 + 75) // 2 == score(fit("LeastAllocated"), huge, offer)
    assert (50 + 25) // 2 == score(fit("MostAllocated"), huge, offer)
    assert 38 == score(fit("RequestedToCapacityRatio", shape=((0, 0), (100, 10))), huge, offer)


@pytest.mark.parametrize(
    ("shape", "expected"), [(((0, 10), (100, 0)), [10, 32]), (((0, 0), (100, 10)), [95, 68])]
)
def test_requested_to_capacity_ratio(shape, expected):
    """Resources that score 0 drop out of the mean."""
    plugin = fit("RequestedToCapacityRatio", shape=shape)

    assert expected == [
        score(plugin, (5000, 9000), (4000, 10000)),
        score(plugin, (4000, 7000), (6000, 10000)),
    ]


def test_defaults_of_fit():
    """A container that asks for no cpu or memory counts with 100m and 200Mi, an explicit zero with zero."""
    offer = (1000, 400 * 2**20)
    plugin = fit("LeastAllocated")

    assert (90 + 50) // 2 == score(plugin, (), offer)
    assert (100 + 50) // 2 == score(plugin, (0,), offer)


def test_pod_level_requests_are_not_seen():
    """Fit's score does not see what the pod as a whole asks for, as upstream has it."""
    pod = make_pod(resources=Resources({"cpu": "1"}))
    nodes = [make_node(allocatable=amounts(1000, 400 * 2**20))]

    assert {"n0": 70} == scores(fit("LeastAllocated"), pod, nodes)


def test_scalars_count_where_asked_for():
    """A scalar enters the mean only for pods that ask for it."""
    plugin = fit("MostAllocated", (1, 1, 2))

    assert 50 == score(plugin, (500, 500), (1000, 1000, 4))
    assert 25 == score(plugin, (0, 0, 2), (1000, 1000, 4), (0, 0, 0))


@settings(deadline=None)
@given(
    offer=st.one_of(
        st.integers(1, 10**6), st.integers(EXACT_BELOW - 5, EXACT_BELOW + 5), st.integers(1, 2**55)
    ),
    share=st.fractions(0, 1),
    nudge=st.integers(-2, 2),
)
def test_exactness(offer, share, nudge):
    """Percentages are those of exact arithmetic, on both sides of the bound where floats are used."""
    used = max(0, min(offer, int(offer * share) + nudge))
    resources = (ResourceSpec(name="memory"),)

    for name, of in (("LeastAllocated", offer - used), ("MostAllocated", used)):
        args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type=name, resources=resources))
        found = scores(
            make_plugin(NodeResourcesFit, args),
            make_pod(requests={"memory": str(used)}),
            [make_node(allocatable={"memory": str(offer)})],
        )
        assert int(Fraction(100 * of, offer)) == found["n0"]


@pytest.mark.parametrize(
    ("used", "request_", "offer", "expected"),
    [
        ((0, 0), (3000, 5000), (4000, 10000), 68),
        ((0, 0), (3000, 5000), (6000, 10000), 75),
        ((3000, 0), (3000, 5000), (10000, 20000), 73),
        ((3000, 5000), (3000, 5000), (10000, 20000), 74),
        ((3000, 5000), (3000, 5000), (10000, 50000), 70),
        ((0, 0), (1000, 0), (1000, 1000), 50),
        ((1000, 0), (0, 1000), (1000, 1000), 100),
        ((3000, 5000, 3), (0, 0, 1), (3500, 40000, 8), 75),
        ((3000, 5000, 0), (0, 0, 1), (3500, 40000, 8), 76),
        ((3000, 5000), (100, 100), (4000,), 75),
    ],
)
def test_balance(used, request_, offer, expected):
    """75 where the pod leaves the balance as it was, less where it makes it worse, more where better."""
    args = NodeResourcesBalancedAllocationArgs(
        resources=tuple(ResourceSpec(name=name) for name in NAMES[: max(len(offer), 2)])
    )

    assert expected == score(make_plugin(NodeResourcesBalancedAllocation, args), request_, offer, used)


@pytest.mark.parametrize("requests", [None, {}, {"cpu": "0"}, {"example.com/gpu": "1"}])
def test_balance_skip(requests):
    """A pod that asks for none of the resources has no balance to change."""
    assert (
        scores(make_plugin(NodeResourcesBalancedAllocation), make_pod(requests=requests), [make_node()])
        is None
    )
