"""A plugin's answer for one row, or for some rows, is what its vector form has there."""

import random
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.config.plugin_args import (
    InterPodAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    Resources,
    WeightedPodAffinityTerm,
)
from berth.plugins.registry import IN_TREE
from berth.plugins.resource_shares import EXACT_BELOW
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_plugin
from tests.suite import examples

FILTERS = [
    k for k in IN_TREE.values() if getattr(k, "filter_by_row", None) not in (None, FilterPlugin.filter_by_row)
]
SCORERS = [
    k for k in IN_TREE.values() if getattr(k, "score_by_row", None) not in (None, ScorePlugin.score_by_row)
]
FILTERS_OF_ROWS = [k for k in FILTERS if k.__name__ != "NodePorts"]
"""Those that answer for some rows at once, too."""

law = settings(max_examples=examples(60), deadline=None)
law_of_rows = settings(law, max_examples=25)

MAX = 2**63 - 1
GPU, BEYOND = "example.com/gpu", "example.com/r69"
NAMES = ("cpu", "memory", "ephemeral-storage", GPU, BEYOND)
MORE_THAN_PLACES = {f"example.com/r{i}": "1" for i in range(70)}
PORTS = [*product((0, 80, 443), ("", "10.0.0.1", "10.0.0.2"), ("TCP", "UDP"))]
EDGES = (0, 1, EXACT_BELOW - 1, EXACT_BELOW, 2**53 + 1, MAX // 100, MAX // 100 + 1, MAX - 1, MAX)
NODES = ("n0", "n1", "n2")
APPS = ({"app": "web"}, {"app": "db"})
KEYS = ("host", "zone")
# Drawing one of many ready-made parts is far cheaper than drawing what they are made of.
CHANCE = random.Random(1)


def some_of(things, most=5):
    """Up to so many distinct ones, in any order."""
    return CHANCE.sample(things, CHANCE.randint(1, min(most, len(things))))


class Range(NamedTuple):
    """Resources and their largest amount, what a node offers in any case, and strategies."""

    names: tuple[str, ...] = NAMES
    most: int = MAX
    offered: tuple[dict[str, str], ...] = ({}, MORE_THAN_PLACES)
    strategies: tuple[str, ...] = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


# A form for rows takes resources that have a place in the columns, and amounts for which floats are exact.
WITH_A_FORM_FOR_ROWS = Range(NAMES[:-1], EXACT_BELOW - 1, ({GPU: "3"},), ("LeastAllocated",))


def number(most):
    """A small amount, one at which arithmetic changes, or any."""
    edges = [edge for edge in EDGES if edge <= most]
    return CHANCE.choice((CHANCE.randint(0, 300), CHANCE.choice(edges), CHANCE.randint(0, most)))


def amounts(within):
    """Amounts of some resources, as they are written."""
    drawn = {name: number(within.most) for name in some_of(within.names)}
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in drawn.items()}


def weights(within):
    """Some resources with weights."""
    return tuple(ResourceSpec(name=name, weight=CHANCE.randint(1, 100)) for name in some_of(within.names))


def strategy(within):
    """A way to score."""
    kind = CHANCE.choice(within.strategies)
    if kind != "RequestedToCapacityRatio":
        return ScoringStrategy(type=kind, resources=weights(within))
    shape = [
        UtilizationShapePoint(utilization=at, score=CHANCE.randint(0, 10))
        for at in sorted(some_of(range(101)))
    ]
    param = RequestedToCapacityRatioParam(shape=tuple(shape))
    return ScoringStrategy(type=kind, resources=weights(within), requested_to_capacity_ratio=param)


def made(make, count=200):
    """One of so many that are made so."""
    return st.sampled_from([make() for _ in range(count)])


class Parts:
    """What pods, nodes and arguments are put together from, within a range."""

    def __init__(self, within):
        self.within = within
        self.amounts = made(partial(amounts, within))
        self.containers = made(partial(container, within))
        self.arguments = {
            "InterPodAffinity": st.just(InterPodAffinityArgs()),
            "NodeResourcesFit": made(lambda: NodeResourcesFitArgs(scoring_strategy=strategy(within))),
            "NodeResourcesBalancedAllocation": made(
                lambda: NodeResourcesBalancedAllocationArgs(resources=weights(within))
            ),
        }


def container(within):
    """A container that asks for amounts and ports."""
    ports = tuple(ContainerPort(port, ip, protocol) for port, ip, protocol in some_of(PORTS, 3))
    return Container("c", "app", Resources(requests=amounts(within)), ports)


ANY, FOR_ROWS = Parts(Range()), Parts(WITH_A_FORM_FOR_ROWS)


def affinity(some_apps):
    """Terms of each kind: about each of some apps those that are required."""

    def side():
        required = [about(app, CHANCE.choice(KEYS)) for app in some_apps()]
        preferred = CHANCE.sample(TERMS, 2)
        weighted = (WeightedPodAffinityTerm(CHANCE.randint(1, 100), term) for term in preferred)
        return PodAffinity(tuple(required), tuple(weighted))

    return Affinity(pod_affinity=side(), pod_anti_affinity=side())


def about(app, key):
    return PodAffinityTerm(LabelSelector(app), topology_key=key)


TERMS = [about(app, key) for app, key in product(APPS, KEYS)]
SOME_TERMS = made(lambda: affinity(lambda: some_of(APPS)) if CHANCE.random() < 0.7 else None)
TERMS_ABOUT_ALL = made(lambda: affinity(lambda: APPS))


@st.composite
def pods(draw, parts, name, node_name="", terms=SOME_TERMS):
    """A pod that asks for this and that, perhaps as a whole; one on a node may have affinity terms."""
    containers = [draw(parts.containers) for _ in range(draw(st.integers(1, 2)))]
    at_once = Resources(requests=draw(parts.amounts)) if draw(st.booleans()) else None
    return make_pod(
        name,
        labels=draw(st.sampled_from(APPS)),
        containers=containers,
        resources=at_once,
        affinity=draw(terms) if node_name else None,
        node_name=node_name,
    )


@st.composite
def clusters(draw, parts):
    """A cache with nodes and pods on them, one of which has terms about any pod."""
    cache = Cache()
    for name in NODES[: draw(st.integers(1, len(NODES)))]:
        more = draw(st.sampled_from(parts.within.offered))
        pods_allowed = {"pods": str(draw(st.integers(0, 3)))}
        labels = {"host": name} | draw(st.sampled_from(({"zone": "a"}, {"zone": "b"}, {})))
        allocatable = {**more, **draw(parts.amounts), **pods_allowed}
        cache.add_node(make_node(name, labels=labels, allocatable=allocatable))
    for i in range(draw(st.integers(1, 3))):
        terms, on = (SOME_TERMS, draw(st.sampled_from(NODES))) if i else (TERMS_ABOUT_ALL, NODES[0])
        cache.add_pod(draw(pods(parts, f"placed{i}", on, terms)))
    return cache


@st.composite
def cases(draw, kind, parts):
    """A plugin, a pod, and a cluster before and after pods came."""
    plugin = make_plugin(kind, draw(parts.arguments.get(kind.__name__, st.none())))
    cache, snapshot = draw(clusters(parts)), Snapshot()
    cache.update_snapshot(snapshot)
    nodes = st.sampled_from(NODES)
    later = [draw(pods(parts, f"later{i}", draw(nodes))) for i in range(draw(st.integers(0, 2)))]
    return plugin, draw(pods(parts, "p0")), cache, snapshot, later


def place(cache, snapshot, pods_to_place):
    for pod in pods_to_place:
        cache.add_pod(pod)
    cache.update_snapshot(snapshot)


def on_one_basis(plugin, state, pod, nodes, change):
    """Whether the plugin is on the same basis after the change: as long as it is, scalar forms are called."""
    before = plugin.cache_key(state, pod, nodes)
    change()
    return before == plugin.cache_key(state, pod, nodes)


def a_filter(data, kind, parts=ANY):
    """A plugin that filters, its state after a PreFilter that asks it, and the rest of a case."""
    plugin, pod, *cluster = data.draw(cases(kind, parts))
    state, nodes = CycleState(), cluster[1]
    assume(not (isinstance(plugin, PreFilterPlugin) and plugin.pre_filter(state, pod, nodes).status.skip))
    return plugin, state, pod, *cluster


def a_scorer(data, kind, parts=ANY):
    """The same of a plugin that scores, after PreScore with all nodes."""
    plugin, pod, *cluster = data.draw(cases(kind, parts))
    state, nodes = CycleState(), cluster[1]
    everywhere = np.ones(len(nodes), dtype=bool)
    assume(not (isinstance(plugin, PreScorePlugin) and plugin.pre_score(state, pod, nodes, everywhere).skip))
    return plugin, state, pod, *cluster


def row_by_row(function, nodes):
    return [function(row) for row in range(len(nodes))]


@pytest.mark.parametrize("kind", FILTERS)
@law
@given(data=st.data())
def test_codes_of_rows(kind, data):
    """The code of each row is that of the vector form, also once other pods are there."""
    plugin, state, pod, cache, nodes, later = a_filter(data, kind)
    code = plugin.filter_by_row(state, pod, nodes).one
    before = plugin.filter(state, pod, nodes).tolist()

    assert before == row_by_row(code, nodes)
    if on_one_basis(plugin, state, pod, nodes, lambda: place(cache, nodes, later)):
        assert plugin.filter(state, pod, nodes).tolist() == row_by_row(code, nodes)


@pytest.mark.parametrize("kind", SCORERS)
@law
@given(data=st.data())
def test_scores_of_rows(kind, data):
    """The raw score of each row is that of the vector form, also once other pods are there."""
    plugin, state, pod, cache, nodes, later = a_scorer(data, kind)
    score = plugin.score_by_row(state, pod, nodes).one

    assert plugin.score(state, pod, nodes).tolist() == row_by_row(score, nodes)
    if on_one_basis(plugin, state, pod, nodes, lambda: place(cache, nodes, later)):
        assert plugin.score(state, pod, nodes).tolist() == row_by_row(score, nodes)


def assert_alike(of_rows, of_all, cache, nodes, later):
    """All rows, the last one and none have the answers of the vector form, now and with the later pods."""
    assume(of_rows is not None)
    every = np.arange(len(nodes), dtype=np.intp)
    for pods_to_place in ([], later):
        place(cache, nodes, pods_to_place)
        expected = of_all()
        for rows in (every, every[-1:], every[:0]):
            assert expected[rows].tolist() == of_rows(rows).tolist()


@pytest.mark.parametrize("kind", FILTERS_OF_ROWS)
@law_of_rows
@given(data=st.data())
def test_codes_of_some_rows(kind, data):
    """The codes of any rows are those of the vector form, also once other pods are there."""
    plugin, state, pod, *cluster = a_filter(data, kind, FOR_ROWS)
    codes = plugin.filter_by_row(state, pod, cluster[1]).some
    assert_alike(codes, lambda: plugin.filter(state, pod, cluster[1]), *cluster)


@pytest.mark.parametrize("kind", SCORERS)
@law_of_rows
@given(data=st.data())
def test_scores_of_some_rows(kind, data):
    """The raw scores of any rows are those of the vector form, also once other pods are there."""
    plugin, state, pod, *cluster = a_scorer(data, kind, FOR_ROWS)
    scores = plugin.score_by_row(state, pod, cluster[1]).some
    assert_alike(scores, lambda: plugin.score(state, pod, cluster[1]), *cluster)


def test_what_answers_for_a_row():
    """The plugins that have a scalar form are those whose answers may change with the row's own pods."""
    assert {"InterPodAffinity", "NodePorts", "NodeResourcesFit"} == {kind.__name__ for kind in FILTERS}
    scorers = {
        "DynamicResources",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
    }
    assert scorers == {kind.__name__ for kind in SCORERS}
