"""Why there, why not: every node's verdict as the cluster stands."""

import asyncio

import msgspec
import numpy as np
import pytest

from berth.aggregated_api.text_pages import page as page_of
from berth.cycle.budgets import CycleBudgets
from berth.explain.attempt_log import AttemptLog
from berth.explain.explainer import Explainer, ExplainOptions, UnknownPodError
from berth.explain.pod_states import PodStates
from berth.explain.trying import Trying
from berth.framework.mirrors.listers import Listers
from berth.framework.status import unschedulable
from berth.scheduler.loop.fair_turn import FairTurn
from berth.testing.builders import make_node, make_pod
from tests.fakes import PROFILE, Binds, Normalizes, PreFilters, Rejects, Scores, framework, make_core, pending


def unknown(*_):
    """Nothing else is known of."""


def cluster(n=3, extenders=(), **points):
    profile = framework(bind=[Binds()], **points)
    profile.extenders = list(extenders)
    w = make_core(profile, *(make_node(f"n{i}") for i in range(1, n + 1)))
    states = PodStates(
        queue=w.queue,
        cache=w.cache,
        waiting_pods=w.waiting_pods,
        pods_in_pre_bind=w.pods_in_pre_bind,
        clock=w.clock,
        frameworks=w.frameworks,
        queue_profiles=w.queue_profiles,
    )
    attempts = AttemptLog()
    explainer = Explainer(
        states=states,
        trying=Trying(w.queue.nominator),
        cache=w.cache,
        snapshot=w.schedule_one.snapshot,
        unassigned=w.unassigned,
        watched=unknown,
        frameworks=w.frameworks,
        evaluators=unknown,
        budgets=CycleBudgets(w.clock, w.background),
        attempts=attempts,
        listers=Listers(),
        turn=FairTurn(asyncio.Lock(), lambda: False, w.clock).question("").__enter__(),
    )
    return w, explainer, attempts


def refused(found):
    """The nodes of each reason, in order: (plugin, reasons, names)."""
    return [(g.refusals[0].plugin, g.refusals[0].reasons, g.nodes) for g in found.nodes.groups]


def scored(found):
    """The nodes that fit, in order."""
    return [node.name for node in found.nodes.scored]


async def test_a_waiting_pod():
    """The best node first, the rejected ones apart, each with who said so and why."""
    w, explainer, _ = cluster(
        filter=[Rejects("F", {"n2": "too small"})],
        score=[(Normalizes("S", {"n1": 1, "n3": 2}, add=1), 3), Scores("T")],
    )
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert ("default/p0", PROFILE, "Active") == (found.pod, found.profile, found.state.kind)
    assert (["n3", "n1"], [("F", ["too small"], ["n2"])]) == (scored(found), refused(found))
    best = found.nodes.scored[0]
    assert (9, ("S", 2, 3, 9)) == (
        best.total,
        (best.parts[0].plugin, best.parts[0].raw, best.parts[0].score, best.parts[0].weighted),
    )


async def test_a_pod_that_fits_nowhere():
    w, explainer, _ = cluster(1, filter=[Rejects("F", {"n1": "f"})])
    w.add_pod(pending())
    await w.turn()

    found = await explainer.explain("default", "p0")

    assert "0/1 nodes are available: 1 f." == found.nodes.message
    assert "The pod fits on no node: f (F)." == found.cause
    assert (["F"], 1) == (found.state.rejected_by, found.state.attempts)


async def test_a_pod_on_a_node_is_tried_as_if_it_were_not_there():
    class Alone(Rejects):
        def filter(self, state, pod, nodes):
            del state, pod
            return (nodes.pod_count > 0).astype("uint8")

    w, explainer, _ = cluster(2, filter=[Alone("A", {"": "taken"})])
    w.cache.add_pod(make_pod("p0", scheduler_name=PROFILE, node_name="n1"))
    w.cache.add_pod(make_pod("p1", scheduler_name=PROFILE, node_name="n2"))

    found = await explainer.explain("default", "p0")

    assert ("Bound", "n1") == (found.state.kind, found.state.node)
    assert (["n1"], [("A", ["taken"], ["n2"])]) == (scored(found), refused(found))


async def test_the_own_node_is_shown_whatever_its_place():
    w, explainer, _ = cluster(30, score=[Scores("S", {f"n{i}": i for i in range(1, 31)})])
    w.cache.add_pod(make_pod("p0", scheduler_name=PROFILE, node_name="n1"))

    found = await explainer.explain("default", "p0")

    assert [("n30", 1, False), ("n1", 30, True)] == [
        (node.name, node.place, node.own) for node in (found.nodes.scored[0], found.nodes.scored[-1])
    ]
    assert 19 == found.nodes.scored_left_out


async def test_a_nomination_hides_no_other_node():
    w, explainer, _ = cluster(score=[Scores("S")])
    w.add_pod(pending(nominated_node_name="n2"))

    found = await explainer.explain("default", "p0")

    assert ["n1", "n2", "n3"] == scored(found)


async def test_sampling_hides_no_node():
    w, explainer, _ = cluster(250, percentage=40, score=[Scores("S")])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert 250 == found.nodes.feasible


@pytest.mark.parametrize("broken", [Scores("S", ValueError("boom")), Normalizes("S", add=ValueError("boom"))])
async def test_a_plugin_that_breaks_is_reported(broken):
    w, explainer, _ = cluster(2, score=[broken])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert found.nodes.message.endswith('"S" failed with: boom')


async def test_a_narrowed_choice_says_who_narrowed_it():
    w, explainer, _ = cluster(2, pre_filter=[PreFilters("A", node_names=["n1"])])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert [("A", ["node(s) didn't satisfy plugin(s) [A]"], ["n2"])] == refused(found)


async def test_who_narrowed_a_choice_is_not_who_turned_the_rest_down():
    plugins = {"pre_filter": [PreFilters("A", node_names=["n1"])], "filter": [Rejects("F", {"n1": "f"})]}
    w, explainer, _ = cluster(2, **plugins)
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert [("A", ["node(s) didn't satisfy plugin(s) [A]"], ["n2"]), ("F", ["f"], ["n1"])] == refused(found)


async def test_what_is_against_the_pod_itself():
    """PreFilter's reason is said once and counts for no node; with all reasons those of nodes stand below."""
    plugins = {
        "pre_filter": [PreFilters("A", unschedulable("no such claim"))],
        "filter": [Rejects("F", {"n1": "f"})],
    }
    w, explainer, _ = cluster(3, **plugins)
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")
    assert [("A", ["no such claim"])] == [(each.plugin, each.reasons) for each in found.nodes.refusals]
    assert ([], 0) == (found.nodes.groups, found.nodes.groups_left_out)
    assert "The pod is turned down before any node is looked at: no such claim (A)." == found.cause
    page = "\n".join(page_of(msgspec.to_builtins(found), wide=False))
    assert "  0/3 nodes are available: no such claim.\n" in page
    assert page.endswith("\n  turned down before any node was looked at: no such claim (A)")

    found = await explainer.explain("default", "p0", ExplainOptions(all_reasons=True))
    assert ["A"] == [each.plugin for each in found.nodes.refusals]
    assert [("F", ["f"], ["n1"])] == refused(found)


async def test_all_reasons():
    """Every plugin is asked about every node that the pod does not fit on."""
    w, explainer, _ = cluster(2, filter=[Rejects("F", {"n1": "f"}), Rejects("G", {"n1": "g", "n2": "g"})])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0", ExplainOptions(all_reasons=True))

    assert [["G"], ["F", "G"]] == [[r.plugin for r in group.refusals] for group in found.nodes.groups]


async def test_many_nodes_stay_a_page():
    """However many nodes there are, a group has a count and a few names."""

    class Full(Rejects):
        def filter(self, state, pod, nodes):
            del state, pod
            return np.ones(len(nodes), dtype=np.uint8)

    w, explainer, _ = cluster(1000, filter=[Full("F", {"": "full"})])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")
    wide = await explainer.explain("default", "p0", ExplainOptions(wide=True))

    assert [(1000, 5), (1000, 500)] == [
        (g.nodes.groups[0].count, len(g.nodes.groups[0].nodes)) for g in (found, wide)
    ]


async def test_what_was_tried_before():
    w, explainer, attempts = cluster(1)
    pod = w.add_pod(pending())
    await w.turn()
    attempts.on_record(w.records[0])
    w.unassigned.remove(pod)

    found = await explainer.explain("default", "p0")

    assert [("scheduled", "n1")] == [(a.result, a.node) for a in found.attempts]


async def test_a_pod_that_costs_more_than_its_budget():
    """It is not tried to the end, and the answer says so."""

    class Costly(Rejects):
        def filter(self, state, pod, nodes):
            w.clock.seconds += 10
            return super().filter(state, pod, nodes)

    w, explainer, _ = cluster(1, filter=[Costly("F", {"n1": "f"})])
    w.add_pod(pending())

    found = await explainer.explain("default", "p0")

    assert (0, []) == (found.nodes.feasible, found.proposals)
    assert "F" in found.cause
    assert found.nodes.message in found.cause


async def test_nothing_is_held_or_moved():
    w, explainer, _ = cluster(1)
    w.add_pod(pending())
    await explainer.explain("default", "p0")

    assert (0, [], 1) == (w.cache.pod_count(), list(w.queue.in_flight()), w.queue.sizes().active)


async def test_a_pod_of_another_scheduler_has_no_verdicts():
    w, explainer, _ = cluster(1)
    w.cache.add_pod(make_pod("p0", scheduler_name="other", node_name="n1"))

    assert (await explainer.explain("default", "p0")).nodes is None


async def test_a_pod_that_is_gone_is_distinguished_from_one_that_never_was():
    """It was tried lately, so its last attempts are known."""
    w, explainer, attempts = cluster(1, filter=[Rejects("F", {"n1": "f"})])
    pod = w.add_pod(pending())
    await w.turn()
    attempts.on_record(w.records[0])
    w.unassigned.remove(pod)
    w.queue.delete(pod)

    found = await explainer.explain("default", "p0")

    assert ("Gone", ["unschedulable"]) == (found.state.kind, [a.result for a in found.attempts])


async def test_a_pod_that_is_unknown():
    _, explainer, _ = cluster(1)

    with pytest.raises(UnknownPodError, match="no pod default/p0 is known"):
        await explainer.explain("default", "p0")
