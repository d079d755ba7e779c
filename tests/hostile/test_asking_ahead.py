"""A plugin that is asked ahead and answers rubbish, or never, and pods of ever new kinds: all is bounded."""

import asyncio

import pytest

from berth.evaluation.caching import plugin_columns
from berth.framework.attempts.cycle_state import CycleState
from berth.out_of_tree.connections.breaker import FAILURES_IN_A_ROW
from berth.out_of_tree.points import filter_score
from berth.out_of_tree.points.asking_ahead import CLASSES_AHEAD
from berth.snapshot.journal import KEPT
from berth_plugin_proto import identity_pb2, scheduling_pb2
from tests.hostile.work import calls
from tests.unit.out_of_tree.points.test_asking_ahead import NODES, Harness, turns
from tests.unit.out_of_tree.scripted import SUCCESS, Scripted, hosted, passing, until

RUBBISH = {
    "wrong length": scheduling_pb2.FilterScoreResponse(
        filter=scheduling_pb2.FilterResponse(
            generation=1, status=SUCCESS, verdicts=scheduling_pb2.Verdicts(each=b"\x00" * 99)
        )
    ),
    "nothing": scheduling_pb2.FilterScoreResponse(),
    "an old generation": scheduling_pb2.FilterScoreResponse(
        filter=scheduling_pb2.FilterResponse(status=SUCCESS, verdicts=scheduling_pb2.Verdicts(all=0))
    ),
    "no scores": None,
    "no protobuf": b"\xff\xff\xff",
}


def by_node(answer):
    """A plugin that is asked by node, and `answer`s what is asked ahead: such calls are of no attempt."""
    plugin = Scripted(node_local=True, pod_fields=identity_pb2.PodFields())

    async def filter_score(request, context):
        if request.call.pod.attempt:
            return passing(request)
        return await answer(request, context)

    plugin.replies["FilterScore"] = filter_score
    return plugin


def asked_ahead(plugin):
    """How many questions that no pod waited for came to the plugin."""
    return sum(not request.call.pod.attempt for request in plugin.requests("FilterScore"))


@pytest.mark.parametrize("what", RUBBISH)
async def test_rubbish_ahead(what):
    """What was answered wrongly ahead is asked at the pod's turn, and counts once for the circuit."""

    async def answer(request, _context):
        return passing(request, scores=None, status=None) if what == "no scores" else RUBBISH[what]

    plugin = by_node(answer)
    async with hosted(plugin) as harness:
        await harness.up()
        await harness.filter()
        harness.connection._state._feed.touch("n1")
        harness.host.ask_ahead()
        await until(lambda: not harness.plugin.asking_ahead.unanswered)
        failures = harness.connection.breaker._failures
        codes = await harness.filter(harness.pod("q"))

    assert 1 == asked_ahead(plugin) == failures
    assert [0, 0, 0] == codes.tolist()
    assert 0 == harness.connection.breaker._failures


async def test_answers_ahead_that_never_come():
    """The pod waits for them no longer than for a call of its own, and then asks itself."""

    async def never(_request, _context):
        await asyncio.Event().wait()

    plugin = by_node(never)
    async with hosted(plugin) as harness:
        await harness.up()
        await harness.filter()
        harness.connection._state._feed.touch("n1")
        harness.allow(0.2)
        harness.host.ask_ahead()
        await until(lambda: asked_ahead(plugin))
        harness.allow()
        codes = await harness.filter(harness.pod("q"))

    assert [0, 0, 0] == codes.tolist()


async def test_unanswered_questions_are_bounded():
    """However often there is a reason to ask, so many questions wait for answers, and no more."""
    w = Harness(classes=CLASSES_AHEAD)
    for label in ("a", "b", "c"):
        await w.cycle(label)
    for i in range(100):
        w.change(i % NODES, sent=True)
        w.queued = [w.pod(label) for label in ("a", "b", "c")]
        w.finding.ask_ahead()
        await turns()
        assert len(w.plugin.pending) <= CLASSES_AHEAD

    assert w.plugin.pending


async def test_pods_of_ever_new_kinds(monkeypatch):
    """What is kept of kinds of pods is bounded in bytes and number, and so is what one more costs."""
    monkeypatch.setattr(plugin_columns, "MAX_SIGNATURES", 50)
    w = Harness()

    async def come(n):
        for _ in range(n):
            state, pod = CycleState(), w.pod("a")
            w.plugin.connection.capabilities.pod_fields.paths[:] = ["/metadata/uid"]
            await w._awaited(w.finding.filter(state, pod, w.snapshot))

    w.finding.cached = plugin_columns.PluginColumns(w.snapshot, max_bytes=40 * plugin_columns.ENTRY_BYTES)
    await come(30)
    few = calls(w.finding.ask_ahead)
    await come(300)

    assert len(w.finding.cached) <= 40
    assert w.finding.cached.size_bytes <= 40 * plugin_columns.ENTRY_BYTES
    assert calls(w.finding.ask_ahead) <= 2 * few


async def test_a_storm_of_changes_is_no_storm_of_questions(monkeypatch):
    """Where more rows changed than are asked about ahead, or than are known, the next pod asks."""
    monkeypatch.setattr(filter_score, "ROWS_AHEAD", NODES - 1)
    w = Harness()
    await w.cycle("a")
    for i in range(KEPT + 1):
        w.change(i % NODES, sent=True)
    w.finding.ask_ahead()
    await turns()

    assert [("FilterScore", False)] == w.plugin.calls
    assert w.plugin.truth("a") == await w.cycle("a")


async def test_the_circuit_ends_asking_ahead():
    """A plugin that keeps failing is asked nothing that no pod waits for."""

    async def answer(_request, _context):
        return RUBBISH["wrong length"]

    plugin = by_node(answer)
    async with hosted(plugin) as harness:
        await harness.up()
        await harness.filter()
        for _ in range(50):
            harness.connection._state._feed.touch("n1")
            harness.host.ask_ahead()
            await until(lambda: not harness.plugin.asking_ahead.unanswered)

    assert FAILURES_IN_A_ROW == asked_ahead(plugin)
