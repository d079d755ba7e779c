"""Which pods would have to go from which node, and which node is taken (core 6.4, 6.5)."""

import numpy as np
import pytest

from berth.framework.interface import FilterPlugin
from tests.fakes import Named, Rejects
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.preemption.extends import Extends
from tests.scenarios.preemption.stage import (
    HIGH,
    LABELS,
    LOW,
    MIDDLE,
    arrives,
    crowded,
    evicted,
    message_of,
    place,
)
from tests.unit.preemption.kit import budget

NO_VICTIMS = "No preemption victims found for incoming pod"


async def asked_about(nodes, *, seed=1, budgets=(), harmless=()):
    """The candidates that an extender is sent; budgets protect no pod on the `harmless` nodes."""
    extender = Extends()
    cluster = crowded(nodes, extenders=[extender], seed=seed)
    for one in budgets:
        cluster.add(one)
    for i in range(nodes):
        place(cluster, f"low{i}", f"n{i}", labels={} if i in harmless else LABELS)
    await arrives(cluster)
    return list(extender.asked[0]), cluster


@pytest.mark.parametrize(("nodes", "wanted"), [(30, 30), (120, 100), (1_200, 120)])
async def test_6_4_1_as_many_candidates_as_are_wanted(nodes, wanted):
    """All of few nodes, at least 100, a tenth of many."""
    candidates, _ = await asked_about(nodes)

    assert wanted == len(candidates)


async def test_6_4_2_the_search_begins_at_a_random_node():
    """Of 150 nodes it looks at 100 that follow each other, and not always at the same."""
    searched = [{int(name[1:]) for name in (await asked_about(150, seed=seed))[0]} for seed in (1, 2)]

    assert searched[0] != searched[1]
    for rows in searched:
        assert 1 == sum((row + 1) % 150 not in rows for row in rows)


async def test_6_4_3_it_goes_on_until_a_candidate_violates_no_budget():
    """The only one among 150, wherever the search begins; it comes first."""
    candidates, cluster = await asked_about(150, budgets=[budget(selector=LABELS)], harmless={77})

    assert "n77" == candidates[0]
    assert len(candidates) <= 101
    assert ["low77"] == evicted(cluster)


async def test_6_4_4_nodes_without_a_candidate_say_why():
    """What a node lacks even without its victims, counted by reason."""
    cluster = crowded(2)
    place(cluster, "equal", priority=HIGH, cpu="2")
    place(cluster, "low", cpu="2")
    place(cluster, "also equal", "n1", priority=HIGH)
    await arrives(cluster)

    assert f"0/2 nodes are available: 1 Insufficient cpu, 1 {NO_VICTIMS}." == message_of(cluster)


class Changing(Named, FilterPlugin):
    """Turns all nodes down once, and then none."""

    def filter(self, _state, _pod, nodes):
        self.note("filter")
        return np.full(len(nodes), len(self.calls) == 1, dtype=np.uint8)

    def filter_status(self, state, code):
        return Rejects("Changing", {"n0": "not now"}).filter_status(state, code)


async def test_6_4_4_success_without_victims_is_an_error():
    """The pod fits all of a sudden beside all who would have to go: the attempt ends without a result."""
    cluster = Cluster(Changing("Changing"), "DefaultPreemption")
    cluster.add_node()
    place(cluster, "low")
    async with cluster.paused():
        cluster.add_pod("high", priority=HIGH)
        await cluster.turn()

        assert 'expected at least one victim pod on node "n0"' == message_of(cluster)
        assert [] == evicted(cluster)


async def test_6_4_5_and_11_8_5_only_lower_priorities_and_terminating_pods_among_them():
    """One victim leaves already: it counts, and it is not deleted again."""
    cluster = crowded()
    place(cluster, "equal", priority=HIGH, cpu="1")
    place(cluster, "low", cpu="1")
    place(cluster, "leaving", cpu="2")
    cluster.mark_deleted("leaving")
    await arrives(cluster, cpu="3")

    assert ["low"] == evicted(cluster)
    assert (1, 2) == (
        cluster.metric("preemption_victims_count"),
        cluster.metric("preemption_victims_sum"),
    )


async def test_6_4_6_a_node_without_lower_priorities_cannot_be_helped():
    """Equals stay."""
    cluster = crowded()
    place(cluster, "equal", priority=HIGH)
    await arrives(cluster)

    assert f"0/1 nodes are available: 1 {NO_VICTIMS}." == message_of(cluster)


async def test_6_4_7_what_was_promised_to_an_equal_is_not_there():
    """Two pods that want the whole node: the second finds no room although all victims would go."""
    cluster = crowded()
    place(cluster, "low")
    await arrives(cluster, "first")
    await arrives(cluster, "second")

    assert ["low"] == evicted(cluster)
    assert "0/1 nodes are available: 1 Insufficient cpu." == message_of(cluster, "second")


@pytest.mark.parametrize(
    ("pods", "victims"),
    [
        pytest.param({"a": (5, 10), "b": (1, 10)}, ["b"], id="11.8.3: the lower priority"),
        pytest.param({"a": (5, 10), "b": (5, 20)}, ["b"], id="the later start"),
        pytest.param({"a": (5, None), "b": (5, 20)}, ["a"], id="not started"),
    ],
)
async def test_6_4_8_and_11_8_3_the_more_important_pod_is_spared(pods, victims):
    """One of the two is enough."""
    cluster = crowded()
    for name, (priority, started) in pods.items():
        place(cluster, name, cpu="2", priority=priority, started=started)
    await arrives(cluster, cpu="2")

    assert victims == evicted(cluster)


async def test_6_4_9_and_6_4_10_whom_a_budget_protects_is_spared_first():
    """Though it is the least important, and only as long as the pod fits."""
    cluster = crowded()
    cluster.add(budget(selector=LABELS))
    place(cluster, "guarded", cpu="1", priority=1, labels=LABELS)
    place(cluster, "first", cpu="1", priority=9)
    place(cluster, "second", cpu="2", priority=5)
    await arrives(cluster, cpu="2")

    assert ["second"] == evicted(cluster)


async def test_6_4_11_mixed_victims_are_reported_in_order_of_importance():
    """The last to go is the least important, protected or not."""
    cluster = crowded()
    cluster.add(budget(selector=LABELS))
    place(cluster, "guarded", cpu="2", priority=1, labels=LABELS)
    place(cluster, "free", cpu="2", priority=9)
    await arrives(cluster)

    assert ["free", "guarded"] == evicted(cluster)


@pytest.mark.parametrize(
    ("budgets", "spared"),
    [
        pytest.param([budget(selector=LABELS)], "guarded", id="means it"),
        pytest.param([budget(selector=LABELS, allowed=1)], "other", id="has one left"),
        pytest.param([budget(selector=LABELS, namespace="another")], "other", id="another namespace"),
        pytest.param([budget(selector={})], "other", id="an empty selector matches no pod"),
        pytest.param([budget(selector=None)], "other", id="no selector matches no pod"),
        pytest.param([budget(selector=LABELS, disrupted=["guarded"])], "other", id="counted already"),
        pytest.param(
            [budget("b0", LABELS, allowed=1), budget("b1", LABELS)], "guarded", id="one of two is used up"
        ),
    ],
)
async def test_6_4_12_which_pods_a_budget_protects(budgets, spared):
    """Of two pods one has to go; without a budget it is the one with labels, as it is less important."""
    cluster = crowded()
    for one in budgets:
        cluster.add(one)
    place(cluster, "guarded", cpu="2", priority=1, labels=LABELS)
    place(cluster, "other", cpu="2", priority=2)
    await arrives(cluster, cpu="2")

    assert {"guarded", "other"} - {spared} == set(evicted(cluster))


async def test_6_4_12_a_budget_is_used_up_by_each_pod_that_it_means():
    """It allows one disruption: the more important of two uses it, so the other one is protected."""
    cluster = crowded()
    cluster.add(budget(selector=LABELS, allowed=1))
    place(cluster, "important", cpu="2", priority=9, labels=LABELS)
    place(cluster, "guarded", cpu="2", priority=1, labels=LABELS)
    await arrives(cluster, cpu="2")

    assert ["important"] == evicted(cluster)


WHERE = [
    pytest.param("6.5.1", {"a": [(1, 1, LABELS)]}, {"b": [(90, 1, {})]}, id="6.5.1, 11.8.4: violations"),
    pytest.param("6.5.2", {"a": [(9, 1, {})]}, {"b": [(8, 1, {}), (8, 1, {})]}, id="6.5.2: first victim"),
    pytest.param("6.5.3", {"a": [(9, 1, {}), (5, 1, {})]}, {"b": [(9, 1, {}), (4, 1, {})]}, id="6.5.3: sum"),
    pytest.param(
        "6.5.5", {"a": [(9, 1, {}), (8, 9, {})]}, {"b": [(9, 2, {}), (8, 1, {})]}, id="6.5.5: start"
    ),
]


@pytest.mark.parametrize(("rule", "worse", "better"), WHERE)
async def test_6_5_1_and_6_5_2_and_6_5_3_and_6_5_5_and_11_8_4_which_node_is_taken(rule, worse, better):
    """Of two nodes all of whose pods have to go, distinguished by that rule alone, whichever comes first."""
    for order in ((worse, better), (better, worse)):
        cluster = crowded(2)
        cluster.add(budget(selector=LABELS))
        for i, side in enumerate(order):
            for name, pods in side.items():
                for j, (priority, started, labels) in enumerate(pods):
                    cpu = str(4 // len(pods))
                    place(cluster, f"{name}{j}", f"n{i}", cpu, priority, started=started, labels=labels)
        await arrives(cluster)

        assert {"b"} == {name[0] for name in evicted(cluster)}, rule


async def test_6_5_4_fewer_victims():
    """Equal sums of different numbers need a priority that is as low as can be: it adds nothing."""
    lowest = -(2**31)
    cluster = crowded(2)
    place(cluster, "one", "n0", "2", MIDDLE)
    place(cluster, "more", "n0", "2", lowest)
    place(cluster, "alone", "n1", "4", MIDDLE)
    await arrives(cluster)

    assert ["alone"] == evicted(cluster)


async def test_6_5_6_any_of_equals():
    """Not always the same of two nodes that are alike."""
    taken = set()
    for seed in range(10):
        cluster = crowded(2, seed=seed)
        place(cluster, "low0", "n0", started=1, priority=LOW)
        place(cluster, "low1", "n1", started=1, priority=LOW)
        await arrives(cluster)
        taken |= set(evicted(cluster))

    assert {"low0", "low1"} == taken
