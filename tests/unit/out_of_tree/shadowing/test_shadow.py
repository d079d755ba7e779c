"""A plugin in shadow: what it is asked and notified of, and how its answers are compared with decisions."""

import asyncio
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import json

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import Diagnosis, Rejections
from berth.framework.interface import PostFilterResult
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework, ProfilePlugins
from berth.framework.status import Code, Status
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.shadowing import shadow
from berth.snapshot.pod_group_states import PodGroupStates
from berth.telemetry.traces.spans import EndedCycle, spans_of
from berth_plugin_proto import common_pb2, identity_pb2, queueing_pb2, scheduling_pb2
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import (
    NAME,
    POINTS,
    PROFILE,
    SUCCESS,
    Scripted,
    cycle,
    hosted,
    passing,
    until,
)

ROOM = identity_pb2.EXTENSION_POINT_POST_FILTER
GATE = identity_pb2.EXTENSION_POINT_PRE_ENQUEUE
NO = common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=["not today"])
BROKEN = common_pb2.Status(code=common_pb2.CODE_ERROR, reasons=["broken"])
NO_ROOM = PostFilterResult(Status(Code.UNSCHEDULABLE, ("no victims",), "DefaultPreemption"))


class Followed:
    """A profile whose only plugin is in its shadow."""

    def __init__(self, harness):
        self.harness = harness
        self.framework = Framework(
            PROFILE, ProfilePlugins(post_filter=[SimpleNamespace(name="DefaultPreemption")])
        )
        self.enabled = EnabledPlugins(self.framework)
        self.enabled.enable(harness.plugin, SidecarSpec(NAME, "h:1"), 2)
        self.enabled.set_aside(harness.plugin)
        harness.host.shadows.enter(harness.plugin, self.framework, self.enabled)
        [self.witness] = self.framework.decision_observers

    def choose(self, *, row=0, totals=(10, 10, 10), attempt=1, grouped=False):
        """A cycle chooses the node in that row; its state."""
        state = cycle(attempt)
        if grouped:
            state.write(PodGroupStates, PodGroupStates())
        record = state.read(CycleRecord)
        made = Attempt(record.pod, self.harness.snapshot, state, record)
        scores = NodeScores(np.arange(3), np.array(totals, dtype=np.int64))
        self.witness.on_node_chosen(made, row, scores)
        return state

    def find_none(self, result=NO_ROOM, *, grouped=False):
        """A cycle finds no node, and that came of PostFilter."""
        state = cycle()
        if grouped:
            state.write(PodGroupStates, PodGroupStates())
        record = state.read(CycleRecord)
        made = Attempt(record.pod, self.harness.snapshot, state, record)
        status = Status(Code.UNSCHEDULABLE, ("too small",), "NodeResourcesFit")
        rejections = Rejections(np.arange(3), np.ones(3, dtype=np.uint8), lambda _: status)
        diagnosis = Diagnosis(self.harness.snapshot.names, rejections=[rejections])
        self.witness.on_no_node(made, diagnosis, result)
        return state

    def end(self, state, result="scheduled"):
        """The attempt is over; its record."""
        record = state.read(CycleRecord)
        record.result, record.ended_ns = result, record.intervals[-1].ended_ns if record.intervals else 1
        self.harness.host.shadows.ending(record)
        assert [] == list(self.harness.host.cycles_done(record))
        return record

    def report(self):
        """What is known of the comparison."""
        return self.harness.host.shadows.report(NAME)[PROFILE]

    async def counted(self, count=1):
        """The outcomes, once there are so many."""
        await until(lambda: sum(self.report()["attempts"].values()) >= count)
        return self.report()["attempts"]


@asynccontextmanager
async def following(plugin, **options):
    """The plugin in the shadow of a profile, ready to be asked."""
    async with hosted(plugin, **options) as harness:
        await harness.up()
        yield Followed(harness)
        harness.host.shadows.close()


def scripted(*points, **replies):
    """A plugin that lets everything pass, but for these replies."""

    async def pass_all(request, _context):
        return passing(request)

    async def reserve(_request, _context):
        return scheduling_pb2.ReserveResponse(status=SUCCESS)

    plugin = Scripted(*points)
    plugin.replies |= {"FilterScore": pass_all, "Reserve": reserve} | replies
    return plugin


def answering(**changes):
    """A reply to FilterScore."""

    async def reply(request, _context):
        return passing(request, **changes)

    return reply


def waiting_for(event):
    """A reply to FilterScore that comes once that happened."""

    async def reply(request, _context):
        await event.wait()
        return passing(request)

    return reply


def verdicts(*codes):
    return scheduling_pb2.Verdicts(
        each=bytes(codes),
        reasons=[common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text="too blue")],
    )


def scores(*values):
    return scheduling_pb2.Scores(uint8=bytes(values), normalization=scheduling_pb2.NORMALIZATION_NONE)


@pytest.mark.parametrize(
    ("reply", "outcome", "detail", "rejected"),
    [
        pytest.param(answering(), "same", None, 0, id="of one mind"),
        pytest.param(answering(verdicts=verdicts(0, 1, 0)), "same", None, 1, id="turns down another"),
        pytest.param(answering(verdicts=verdicts(1, 1, 0)), "rejected", "too blue", 2, id="turns it down"),
        pytest.param(answering(scores=scores(5, 4, 5)), "same", None, 0, id="scores it best"),
        pytest.param(answering(scores=scores(5, 4, 6)), "moved", "n2", 0, id="scores another better"),
        pytest.param(
            answering(scores=scores(5, 9, 5), verdicts=verdicts(0, 1, 0)), "same", None, 1, id="but not that"
        ),
        pytest.param(answering(verdicts=verdicts(1)), "failed", "1 verdicts for 3 nodes", 0, id="garbage"),
        pytest.param(answering(scores=scores(101, 0, 0)), "failed", "score 101", 0, id="scores too high"),
    ],
)
async def test_outcome(reply, outcome, detail, rejected):
    """Verdicts and weighted scores are compared with the choice that was made."""
    async with following(scripted(FilterScore=reply)) as followed:
        followed.choose()
        assert {outcome: 1} == await followed.counted()

        report = followed.report()
        assert rejected == report["nodesRejected"]
        assert ([] if detail is None else [True]) == [detail in each["detail"] for each in report["latest"]]


async def test_nodes_that_were_out_of_the_question():
    """Nodes that no plugin left are neither counted as turned down nor preferred."""
    reply = answering(verdicts=verdicts(0, 1, 0), scores=scores(1, 0, 9))
    async with following(scripted(FilterScore=reply)) as followed:
        followed.choose(totals=(10, np.iinfo(np.int64).min, np.iinfo(np.int64).min + 5))

        assert {"same": 1} == await followed.counted()
        assert followed.report()["nodesRejected"] == 0


async def test_weight():
    """Its scores count as much as they would in the profile: twice."""
    async with following(scripted(FilterScore=answering(scores=scores(0, 1, 0)))) as followed:
        followed.choose(totals=(11, 10, 10))
        assert {"moved": 1} == await followed.counted()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [pytest.param(NO, "gated", id="holds it back"), pytest.param(BROKEN, "failed", id="fails")],
)
async def test_gate(status, outcome):
    """A gate is asked about pods that are being tried: all other gates let them in."""
    gate = scheduling_pb2.PreEnqueueResponse(status=status)

    async def reply(_request, _context):
        return gate

    async with following(scripted(GATE, PreEnqueue=reply)) as followed:
        followed.choose()
        assert {outcome: 1} == await followed.counted()


async def test_refuses_to_reserve():
    """A plugin that would not hold what the pod uses would have failed the attempt."""

    async def refuse(_request, _context):
        return scheduling_pb2.ReserveResponse(status=NO)

    async with following(scripted(Reserve=refuse)) as followed:
        followed.choose()
        assert {"refused": 1} == await followed.counted()
        assert followed.report()["latest"][0]["detail"] == "not today"


@pytest.mark.parametrize(
    ("result", "received"),
    [
        pytest.param("scheduled", ["FilterScore", "Reserve", "CycleDone"], id="bound"),
        pytest.param("error", ["FilterScore", "Reserve", "Unreserve", "CycleDone"], id="failed"),
    ],
)
async def test_the_plugin_is_notified_of_outcomes(result, received):
    """It hears of reservations and ends in their order, and is never asked to permit, prepare or bind."""
    plugin = scripted()
    async with following(plugin) as followed:
        state = followed.choose(row=1)
        await followed.counted()
        followed.end(state, result)
        await until(lambda: plugin.requests("CycleDone"))

        asked = [name for name, _ in plugin.asked if name not in {"Handshake", "Configure"}]
        assert received == asked
        assert plugin.requests("Reserve")[0].node_name == "n1"
        assert {1} == {request.call.pod.attempt for name, request in plugin.asked if name in received}


@pytest.mark.parametrize("part", ["annotations", "labels"])
async def test_patches(part):
    """What it asks to have written to a pod is written nowhere, and no plugin is shown it."""

    async def patch(_request, _context):
        wanted = json.encode({part: {"colour": "red"}})
        return scheduling_pb2.ReserveResponse(status=SUCCESS, metadata_patch=wanted)

    async with following(scripted(Reserve=patch)) as followed:
        state, harness = followed.choose(), followed.harness
        uid = harness.pod().uid
        as_it_came = harness.host.pods.get(uid)
        assert {"same": 1} == await followed.counted()
        followed.end(state)

        assert ([], {}) == (harness.writer.patches, state.binding_annotations)
        assert as_it_came == harness.host.pods.get(uid)


def room(*victims, node="n1", code=common_pb2.CODE_SUCCESS):
    """A reply to PostFilter."""

    async def reply(_request, _context):
        status = common_pb2.Status(code=code, reasons=[] if code == common_pb2.CODE_SUCCESS else ["no"])
        return scheduling_pb2.PostFilterResponse(
            status=status, nominated_node_name=node, victim_uids=list(victims)
        )

    return reply


@pytest.mark.parametrize(
    ("reply", "outcome", "detail"),
    [
        pytest.param(room("pod-default-v"), "room", "nominates n1, evicts default/v", id="evicts"),
        pytest.param(room(), "room", "nominates n1", id="nominates"),
        pytest.param(room(node=None, code=common_pb2.CODE_UNSCHEDULABLE), "same", None, id="no way"),
        pytest.param(room("uid-q"), "failed", "which is on no node", id="no pod's victim"),
        pytest.param(room(node=None, code=common_pb2.CODE_ERROR), "failed", "no", id="fails"),
    ],
)
async def test_room(reply, outcome, detail):
    """For a pod without a node the comparison names the plugin's victims; none is evicted."""
    plugin = scripted(ROOM, PostFilter=reply)
    async with following(plugin) as followed:
        harness = followed.harness
        harness.cache.add_pod(harness.pod("v", node_name="n1"))
        harness.step()
        followed.end(followed.find_none(), "unschedulable")
        await until(lambda: followed.report()["attempts"])
        report = followed.report()

        assert {outcome: 1} == report["attempts"]
        latest = {"pod": "default/p", "node": "", "outcome": outcome}
        assert ([] if detail is None else [latest]) == [
            {key: each[key] for key in latest} for each in report["latest"] if detail in each["detail"]
        ]
        verdicts = plugin.requests("PostFilter")[0].verdicts
        assert ([1, 1, 1], "too small") == (list(verdicts.each), verdicts.reasons[0].text)
        assert ([], []) == (harness.writer.deleted, harness.writer.patches)


async def test_no_turn_to_make_room():
    """Where a plugin before it has made room, and in a trial of a group, it would not have been asked."""
    made = PostFilterResult(Status(Code.SUCCESS, (), "DefaultPreemption"))
    plugin = scripted(ROOM, PostFilter=room())
    async with following(plugin) as followed:
        followed.find_none(made)
        followed.find_none(grouped=True)
        followed.find_none(PostFilterResult(Status(Code.SUCCESS, (), "one behind it")))

        assert {"room": 1} == await followed.counted()
        assert len(plugin.requests("PostFilter")) == 1


async def test_no_opinion_on_nodes():
    """A plugin that looks at no nodes leaves nothing out where a node was chosen."""
    async with following(scripted(ROOM, PostFilter=room())) as followed:
        followed.choose()
        followed.find_none()

        assert {"room": 1} == await followed.counted()


async def test_room_where_it_leaves_no_node():
    """A plugin whose Filter turns all nodes down is asked what it would have done about that."""
    reply = answering(verdicts=verdicts(1, 1, 0))
    plugin = scripted(ROOM, *POINTS, FilterScore=reply, PostFilter=room(node="n0"))
    async with following(plugin) as followed:
        followed.choose(totals=(10, 10, -1))
        assert {"rejected": 1} == await followed.counted()

        assert "too blue; nominates n0" == followed.report()["latest"][0]["detail"]
        found = plugin.requests("PostFilter")[0].verdicts
        texts = [found.reasons[code - 1].text for code in found.each]
        assert ["too blue", "too blue", "turned down by another plugin"] == texts


async def test_attempts_without_a_node():
    """The plugin is notified of an attempt that found no node, which is not compared."""
    plugin = scripted()
    async with following(plugin) as followed:
        followed.end(cycle(), "unschedulable")
        await until(lambda: plugin.requests("CycleDone"))

        assert ({}, []) == (followed.report()["attempts"], plugin.requests("FilterScore"))


@reports("shadow-breaks", log="`shadow broke off`, with plugin and cause; the cycle goes on")
async def test_a_shadow_that_breaks_off(monkeypatch, caplog):
    """What breaks in a shadow is logged, and it follows the next attempt."""
    plugin = scripted()
    async with following(plugin) as followed:
        with monkeypatch.context() as patch:
            patch.setattr(followed.witness.shadows[0], "_conclude", lambda *_: 1 / 0)
            followed.choose(attempt=1)
            await until(lambda: f"shadow broke off plugin={NAME}" in caplog.text)
        followed.choose(attempt=2)

        assert {"same": 1} == await followed.counted(1)
    assert "division by zero" in caplog.text


@reports("shadow-breaks", log="`not followed in shadow`, with pod and cause")
@pytest.mark.parametrize("part", ["on_node_chosen", "on_no_node"])
async def test_a_shadow_that_does_not_follow(monkeypatch, caplog, part):
    """Whatever breaks as a shadow is shown a choice is logged, and is none of the cycle's business."""
    async with following(scripted()) as followed:
        monkeypatch.setattr(followed.witness.shadows[0], part, lambda *_: 1 / 0)
        getattr(followed.witness, part)(SimpleNamespace(pod=followed.harness.pod("seen")), None, None)

    assert "not followed in shadow pod=default/seen" in caplog.text
    assert "division by zero" in caplog.text


async def test_cannot_keep_up():
    """While it works on one attempt it is asked about no other, and notified of all."""
    go_on = asyncio.Event()
    plugin = scripted(FilterScore=waiting_for(go_on))
    async with following(plugin) as followed:
        followed.choose(attempt=1)
        await until(lambda: plugin.requests("FilterScore"))
        for attempt in (2, 3):
            followed.choose(attempt=attempt)
        assert {"skipped": 2} == followed.report()["attempts"]
        go_on.set()
        assert {"skipped": 2, "same": 1} == await followed.counted(3)
        await until(lambda: len(plugin.requests("Reserve")) == 3)

        assert [1, 2, 3] == [request.call.pod.attempt for request in plugin.requests("Reserve")]
        assert len(plugin.requests("FilterScore")) == 1


async def test_far_behind(monkeypatch):
    """Waiting notifications are bounded; what was not sent is not taken back either."""
    monkeypatch.setattr(shadow, "MAX_WAITING", 2)
    go_on = asyncio.Event()
    plugin = scripted(FilterScore=waiting_for(go_on))
    async with following(plugin) as followed:
        followed.choose(attempt=1)
        await until(lambda: plugin.requests("FilterScore"))
        states = [followed.choose(attempt=attempt) for attempt in (2, 3, 4)]
        go_on.set()
        await until(lambda: len(plugin.requests("Reserve")) == 3)
        followed.end(states[-1], "error")
        await until(lambda: plugin.requests("CycleDone"))

        assert [] == plugin.requests("Unreserve")


@reports("shadow-skips", answer="`berth plugin describe`: attempts in shadow that were `skipped`")
async def test_not_there():
    """A plugin that cannot be reached is skipped; a scheduler's cycles don't wait for it."""
    plugin = scripted()
    async with following(plugin) as followed:
        followed.harness.connection.disconnect("a test says so")
        await until(lambda: not followed.harness.connection.ready)
        followed.choose()

        assert {"skipped": 1} == followed.report()["attempts"]


async def test_pod_groups():
    """Trials of pods of a group are not attempts: they are neither asked about nor counted."""
    plugin = scripted()
    async with following(plugin) as followed:
        followed.choose(grouped=True)
        followed.choose()
        await followed.counted()

        assert ({"same": 1}, 1) == (followed.report()["attempts"], len(plugin.requests("FilterScore")))


async def test_a_later_state():
    """An answer about a later state says nothing about the choice: the pod may count on a node by then."""

    async def reply(request, _context):
        request.call.generation = followed.harness.plugin.caller.feed.generation
        return passing(request)

    async with following(scripted(FilterScore=reply)) as followed:
        followed.choose()
        await asyncio.sleep(0)
        followed.harness.add_nodes("n9")

        assert {"outdated": 1} == await followed.counted()


async def test_asked_too_late():
    """Where the state has gone on before the question was sent, it is not sent."""
    plugin = scripted()
    async with following(plugin) as followed:
        followed.choose()
        followed.harness.add_nodes("n9")

        assert {"outdated": 1} == await followed.counted()
        assert [] == plugin.requests("FilterScore")


async def test_trace():
    """The attempt's trace has the plugin, what the comparison came to, and its calls."""
    async with following(scripted(FilterScore=answering(verdicts=verdicts(1, 0, 0)))) as followed:
        state = followed.choose()
        await followed.counted()
        spans = {span.name: span for span in spans_of(EndedCycle(followed.end(state), ""), {})}

        assert {
            "berth.shadow.outcome": "rejected",
            "berth.shadow.nodes_rejected": 1,
            "berth.shadow.detail": "too blue",
        } == spans[NAME].attributes
        for call in ("FilterScore", "Reserve"):
            assert spans[NAME].span_id == spans[f"{NAME} {call}"].parent_span_id
        assert spans["schedule pod"].span_id == spans[NAME].parent_span_id


async def test_trace_of_an_attempt_that_ends_first():
    """An attempt's record is not touched once it is over; the comparison counts all the same."""
    go_on = asyncio.Event()
    plugin = scripted(FilterScore=waiting_for(go_on))
    async with following(plugin) as followed:
        state = followed.choose()
        await until(lambda: plugin.requests("FilterScore"))
        record = followed.end(state)
        before = [copy(interval) for interval in record.intervals]
        assert "pending" == before[0].attributes["berth.shadow.outcome"]
        go_on.set()

        assert {"same": 1} == await followed.counted()
        assert before == record.intervals


async def test_out_of_the_shadow():
    """A plugin that takes part again gives back what it held in shadow, and follows nothing more."""
    plugin = scripted()
    async with following(plugin) as followed:
        state = followed.choose()
        await followed.counted()
        followed.harness.host.shadows.leave(followed.harness.plugin, followed.framework)
        followed.enabled.take_back(followed.harness.plugin)
        followed.end(state, "error")
        await until(lambda: plugin.requests("CycleDone"))

        assert len(plugin.requests("Unreserve")) == 1
        assert ({}, []) == (followed.harness.host.shadows.report(NAME), followed.framework.decision_observers)
        assert [followed.harness.plugin] == followed.framework.plugins.filter


async def test_a_request_to_requeue():
    """What a plugin in shadow says of pods that wait is not done."""
    turned_down = []
    waiting = SimpleNamespace(reject=lambda plugin, _cause: turned_down.append(plugin))
    request = queueing_pb2.RequeueResponse(reject_waiting=queueing_pb2.PodSet(uids=["uid"]), cause="because")
    async with following(scripted()) as followed:
        host, connection = followed.harness.host, followed.harness.connection
        host._waiting_pods = {"uid": waiting}
        for in_shadow in (True, False):
            connection.spec = replace(connection.spec, shadow=in_shadow)
            host._on_requeue(host.connections[NAME], request)
            assert ([] if in_shadow else [NAME]) == turned_down
