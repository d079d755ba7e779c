"""Why there, why not: every node's verdict as the cluster stands."""

import asyncio
from types import SimpleNamespace

import pytest

from berth.cycle.budgets import CycleBudgets
from berth.scheduler.attempt_log import AttemptLog
from berth.scheduler.explain import Explainer, UnknownPodError
from berth.testing.builders import make_node, make_pod
from tests.fakes import PROFILE, Binds, Normalizes, PreFilters, Rejects, Scores, framework, pending, world


def cluster(n=3, **points):
    w = world(framework(bind=[Binds()], **points), *(make_node(f"n{i}") for i in range(1, n + 1)))
    core = SimpleNamespace(
        budgets=CycleBudgets(w.clock, w.background),
        cache=w.cache,
        snapshot=w.schedule_one.snapshot,
        queue=w.queue,
        unassigned=w.unassigned,
        profiles=SimpleNamespace(frameworks=w.frameworks),
    )
    attempts = AttemptLog()
    return w, Explainer(core, attempts, asyncio.Lock()), attempts


async def test_a_waiting_pod():
    """The best node first, the rejected ones last, each with who said so and why."""
    w, explainer, _ = cluster(
        filter=[Rejects("F", {"n2": "too small"})],
        score=[(Normalizes("S", {"n1": 1, "n3": 2}, add=1), 3), Scores("T")],
    )
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert ("default/p0", PROFILE, "", "") == (
        found["pod"],
        found["profile"],
        found["node"],
        found["message"],
    )
    assert ["n3", "n1", "n2"] == [node["name"] for node in found["nodes"]]
    assert {"name": "n2", "plugin": "F", "code": "Unschedulable", "reasons": ["too small"]} == found["nodes"][
        2
    ]
    assert (9, {"raw": 2, "score": 3, "weighted": 9}) == (
        found["nodes"][0]["total"],
        found["nodes"][0]["scores"]["S"],
    )


async def test_a_pod_that_fits_nowhere():
    w, explainer, _ = cluster(1, filter=[Rejects("F", {"n1": "f"})])
    w.add_pod(pending())
    await w.turn()

    found = await explainer.explain("default", "p0")

    assert "0/1 nodes are available: 1 f." == found["message"]
    assert (["F"], 1) == (found["queue"]["rejectedBy"], found["queue"]["attempts"])


async def test_a_pod_on_a_node_is_tried_as_if_it_were_not_there():
    class Alone(Rejects):
        def filter(self, state, pod, nodes):
            del state, pod
            return (nodes.pod_count > 0).astype("uint8")

    w, explainer, _ = cluster(2, filter=[Alone("A", {"": "taken"})])
    w.cache.add_pod(make_pod("p0", scheduler_name=PROFILE, node_name="n1"))
    w.cache.add_pod(make_pod("p1", scheduler_name=PROFILE, node_name="n2"))

    found = await explainer.explain("default", "p0")

    assert "n1" == found["node"]
    assert [("n1", None), ("n2", "A")] == [(n["name"], n.get("plugin")) for n in found["nodes"]]
    assert {} == found["queue"]


async def test_a_nomination_hides_no_other_node():
    w, explainer, _ = cluster(score=[Scores("S")])
    w.add_pod(pending(nominated_node_name="n2"))

    found = await explainer.explain("default", "p0")

    assert ["n1", "n2", "n3"] == [node["name"] for node in found["nodes"] if "total" in node]


async def test_sampling_hides_no_node():
    w, explainer, _ = cluster(250, percentage=40, score=[Scores("S")])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert 250 == sum("total" in node for node in found["nodes"])


@pytest.mark.parametrize("broken", [Scores("S", ValueError("boom")), Normalizes("S", add=ValueError("boom"))])
async def test_a_plugin_that_breaks_is_told(broken):
    w, explainer, _ = cluster(2, score=[broken])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert found["message"].endswith('"S" failed with: boom')


async def test_a_narrowed_choice_says_who_narrowed_it():
    w, explainer, _ = cluster(2, pre_filter=[PreFilters("A", node_names=["n1"])])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert ["node(s) didn't satisfy plugin(s) [A]"] == found["nodes"][1]["reasons"]


async def test_what_was_tried_before():
    w, explainer, attempts = cluster(1)
    pod = w.add_pod(pending())
    await w.turn()
    attempts.on_record(w.records[0])
    w.unassigned.remove(pod)

    found = await explainer.explain("default", "p0")

    assert [("scheduled", "n1")] == [(a["result"], a["node"]) for a in found["attempts"]]


async def test_nothing_is_held_or_moved():
    w, explainer, _ = cluster(1)
    w.add_pod(pending())
    await explainer.explain("default", "p0")

    assert (0, [], 1) == (w.cache.pod_count(), list(w.queue.in_flight()), w.queue.sizes().active)


async def test_a_pod_of_another_scheduler_has_no_verdicts():
    w, explainer, _ = cluster(1)
    w.cache.add_pod(make_pod("p0", scheduler_name="other", node_name="n1"))

    assert "nodes" not in await explainer.explain("default", "p0")


async def test_a_pod_that_nobody_knows():
    _, explainer, _ = cluster(1)

    with pytest.raises(UnknownPodError, match="no pod default/p0 is waiting"):
        await explainer.explain("default", "p0")
