"""What a pod of a known class costs, counted in calls of functions: nothing of it grows with the cluster."""

import pytest

from berth.testing.builders import make_pod
from tests.hostile.work import calls
from tests.unit.evaluation.caching.test_equivalence_cache import Comparison, crowded, renamed, roomy


def finished(work):
    """Run a coroutine that waits for nothing."""
    with pytest.raises(StopIteration):
        work.send(None)


async def known_class(comparison, template):
    """What a decision takes on the fourth pod of a class, after one row changed."""
    for _ in range(3):
        await comparison.schedule(template)
    side = comparison.remembering
    comparison.cache.add_pod(make_pod("other", requests={"cpu": "1m"}).placed_on("n1"))
    comparison.cache.update_snapshot(comparison.snapshot)
    attempt = side.attempt(renamed(template, "fourth"))
    taken = calls(lambda: finished(side.algorithm.decide(side.framework, attempt)))

    assert attempt.record.remembered
    return taken, attempt.record


async def test_a_decision_calls_as_many_functions_on_any_number_of_nodes():
    """A hundred and sixteen hundred nodes take the same calls, and few of them."""
    few, _ = await known_class(Comparison(roomy(*(f"n{i}" for i in range(100)))), make_pod("p"))
    many, record = await known_class(Comparison(roomy(*(f"n{i}" for i in range(1600)))), make_pod("p"))

    assert abs(many - few) <= 5
    assert many < 250
    assert 1600 == record.feasible_count


async def test_a_pod_that_fits_nowhere_calls_as_many_on_any_number_of_nodes():
    """Its reasons are read off what is known: no plugin is asked about a node that did not change."""
    few, _ = await known_class(*crowded(100))
    many, record = await known_class(*crowded(800))

    assert abs(many - few) <= 5
    assert 0 == record.feasible_count


async def test_a_cycle_of_a_known_class_has_two_intervals():
    """Only what was asked is in the record: the rows that changed, of Filter and of Score."""
    _, record = await known_class(Comparison(roomy("n0", "n1", "n2")), make_pod("p"))

    assert ["Filter", "Score"] == [interval.name for interval in record.intervals]


async def test_many_dirty_rows_ask_no_plugin_whose_answers_pods_leave_alone():
    """Where most rows changed, PreFilter and plugins that look at nodes' own objects keep their answers."""
    comparison, template = (
        Comparison(roomy(*(f"n{i}" for i in range(100)))),
        make_pod("p", requests={"cpu": "1"}),
    )
    for _ in range(3):
        await comparison.schedule(template)
    for i in range(100):
        comparison.cache.add_pod(make_pod(f"other-{i}", requests={"cpu": "1m"}).placed_on(f"n{i}"))
    comparison.cache.update_snapshot(comparison.snapshot)
    attempt = comparison.remembering.attempt(renamed(template, "fourth"))
    await comparison.remembering.algorithm.decide(comparison.remembering.framework, attempt)

    asked = {interval.name for interval in attempt.record.intervals}
    assert {"PreFilter", "PreScore", "TaintToleration", "ImageLocality"}.isdisjoint(asked)
    assert {"NodeResourcesFit", "NodeResourcesBalancedAllocation"} <= asked
