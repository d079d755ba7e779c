"""Asking ahead: what a pod finds at its turn is what the plugin would have said then."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.config.out_of_tree.sidecars import DEFAULT_POLICY
from berth.evaluation.caching.answer_columns import VERDICTS
from berth.evaluation.caching.plugin_columns import PluginColumns
from berth.framework.attempts.cycle_state import CycleState
from berth.out_of_tree.connections.breaker import Circuit
from berth.out_of_tree.errors import CallFailedError
from berth.out_of_tree.points.asking_ahead import LookAhead
from berth.out_of_tree.points.filter_score import FilterScorePoint
from berth.out_of_tree.transport.sent_call import SentCall
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_handle
from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2

NODES = 6
LABELS = ("a", "b", "c")
CLASSES_AHEAD = 2
SUCCESS = common_pb2.Status(code=common_pb2.CODE_SUCCESS)


class Plugin:
    """A plugin with a number for each node; those asked ahead get their answers when `deliver` says so."""

    plugin = "p"

    def __init__(self, snapshot, *, answers_late):
        capabilities = identity_pb2.Capabilities(
            node_local=True, pod_fields=identity_pb2.PodFields(paths=["/metadata/labels"])
        )
        self.snapshot, self.answers_late = snapshot, answers_late
        self.numbers = [0] * NODES
        self.calls, self.pending, self.pods = [], [], {}
        self.feed = SimpleNamespace(touched=RowJournal(), external_changes=0, unanswered=0)
        self.connection = SimpleNamespace(
            ready=True,
            starts=1,
            epoch="e",
            capabilities=capabilities,
            breaker=SimpleNamespace(circuit=Circuit.CLOSED),
            spec=SimpleNamespace(shadow=False, policy_at=lambda point, _pod: DEFAULT_POLICY[point]),
            offers=lambda _point: True,
        )
        self.around = SimpleNamespace(pods=self)

    def get(self, uid):
        """The pod's JSON."""
        return self.pods.get(uid, b"")

    def pod(self, name, label):
        """A pod that the watch has brought."""
        pod = make_pod(name, labels={"app": label})
        self.pods[pod.uid] = msgspec.json.encode({"metadata": {"uid": pod.uid, "labels": {"app": label}}})
        return pod

    def head(self, _state, pod):
        """The head of a call."""
        ref = common_pb2.PodRef(uid=pod.uid, object=self.get(pod.uid) or None)
        return common_pb2.Call(generation=1, pod=ref)

    def check_generation(self, _request, _generation):
        """Every generation is there."""

    def truth(self, label):
        """Codes and raw scores of all rows as they are now."""
        numbers = np.array(self.numbers) * (1 + LABELS.index(label))
        return (numbers % 3 == 0).astype(int).tolist(), (numbers % 101).tolist()

    def answer(self, request):
        """What the plugin says now, and nonsense of rows that it is not asked about."""
        label = msgspec.json.decode(request.call.pod.object)["metadata"]["labels"]["app"]
        codes, scores = (np.array(each) for each in self.truth(label))
        if request.HasField("candidates"):
            bits = np.frombuffer(request.candidates.bitmap, dtype=np.uint8)
            asked = np.unpackbits(bits, count=NODES, bitorder="little").astype(bool)
            codes, scores = np.where(asked, codes, 1), np.where(asked, scores, 99)
        reason = common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text="no")
        verdicts = scheduling_pb2.Verdicts(each=codes.astype(np.uint8).tobytes(), reasons=[reason])
        score = scheduling_pb2.ScoreResponse(
            generation=1,
            status=SUCCESS,
            scores=scheduling_pb2.Scores(
                uint8=scores.astype(np.uint8).tobytes(), normalization=scheduling_pb2.NORMALIZATION_NONE
            ),
        )
        filtered = scheduling_pb2.FilterResponse(generation=1, status=SUCCESS, verdicts=verdicts)
        return scheduling_pb2.FilterScoreResponse(filter=filtered, score=score)

    def ask(self, name, request, _state, read):
        """Answer a pod's own question at once, and those asked ahead later."""
        ahead = request.call.pod.uid not in self.pods
        self.calls.append((name, ahead))
        when_asked, delivered = self.answer(request), asyncio.get_running_loop().create_future()
        if ahead:
            self.pending.append(delivered)
        else:
            delivered.set_result("answered")

        async def answered(response):
            if await response == "failed":
                raise CallFailedError(self.plugin, "no answer")
            answer = self.answer(request) if ahead and self.answers_late else when_asked
            return read(answer.filter if name == "Filter" else answer)

        return SentCall(delivered, ExitStack(), answered)

    async def deliver(self, what="answered"):
        """Let the oldest question asked ahead come to an end."""
        await turns()
        if self.pending:
            self.pending.pop(0).set_result(what)
            await turns()


async def turns():
    """Let everything run that can."""
    for _ in range(6):
        await asyncio.sleep(0)


class Harness:
    """A snapshot, a plugin and a profile's side of it."""

    def __init__(self, *, classes=CLASSES_AHEAD, answers_late=False):
        self.cache, self.snapshot = Cache(), Snapshot()
        for i in range(NODES):
            self.cache.add_node(make_node(f"n{i}"))
        self.cache.update_snapshot(self.snapshot)
        self.plugin = Plugin(self.snapshot, answers_late=answers_late)
        self.queued, self.count = [], 0
        look_ahead = LookAhead(classes, lambda most: self.queued[:most], lambda: None)
        handle = make_handle(self.snapshot, profile_name="")
        self.finding = FilterScorePoint(self.plugin, handle, look_ahead, PluginColumns(self.snapshot))

    def change(self, row, *, sent):
        """Something happens to a node: it was sent to the plugin, or only other plugins see it."""
        if sent:
            self.plugin.numbers[row] += 1
            self.plugin.feed.touched.note(row)
        else:
            self.snapshot.changed_footprints.note(row)

    def change_all(self, how):
        """Something happens to everything."""
        self.plugin.numbers = [number + 1 for number in self.plugin.numbers]
        if how == "outside":
            self.plugin.feed.external_changes += 1
        elif how == "restart":
            self.plugin.connection.starts += 1
        else:
            self.cache.add_node(make_node("n0", labels={"turn": str(sum(self.plugin.numbers))}))
            self.cache.update_snapshot(self.snapshot)

    def pod(self, label):
        """Another pod of that kind."""
        self.count += 1
        return self.plugin.pod(f"p{self.count}", label)

    async def cycle(self, label, pod=None):
        """What a pod of that kind finds at its turn: codes and raw scores."""
        state, pod = CycleState(), pod or self.pod(label)
        columns = self.finding.columns(state, pod)
        known = {row: columns.code(row) for row in range(NODES) if not columns.is_dirty(VERDICTS, row)}
        expected = self.plugin.truth(label)
        codes = await self._awaited(self.finding.filter(state, pod, self.snapshot))
        scores = await self._awaited(self.finding.score(state, pod, self.snapshot))
        assert known == {row: expected[0][row] for row in known}
        return codes.tolist(), scores.tolist()

    async def _awaited(self, answer):
        if isinstance(answer, np.ndarray):
            return answer
        answering = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        while not answering.done():
            await self.plugin.deliver()
        return await answering


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(0, NODES - 1), st.booleans()),
        st.tuples(st.just("all"), st.sampled_from(("outside", "restart", "node"))),
        st.tuples(st.just("cycle"), st.sampled_from(LABELS), st.sets(st.sampled_from(LABELS))),
        st.tuples(st.just("ahead")),
        st.tuples(st.just("deliver"), st.sampled_from(("answered", "failed"))),
    ),
    max_size=40,
)


@given(steps=STEPS, answers_late=st.booleans())
def test_asked_ahead_as_asked_at_its_turn(steps, answers_late):
    """Whatever happens between question, answer and turn, a pod finds what the plugin would say now."""

    async def play():
        w = Harness(answers_late=answers_late)
        for what, *how in steps:
            if what == "change":
                w.change(how[0], sent=how[1])
            elif what == "all":
                w.change_all(how[0])
            elif what == "ahead":
                w.finding.ask_ahead()
                await turns()
            elif what == "deliver":
                await w.plugin.deliver(how[0])
            else:
                w.queued = [w.pod(label) for label in sorted(how[1])]
                assert w.plugin.truth(how[0]) == await w.cycle(how[0])
            assert len(w.plugin.pending) <= CLASSES_AHEAD

    asyncio.run(play())


async def test_a_known_pod_waits_for_nothing():
    """What changed was asked about before the pod came, and its turn takes no call."""
    w = Harness()
    await w.cycle("a")
    w.change(2, sent=True)
    w.finding.ask_ahead()
    await w.plugin.deliver()
    before = list(w.plugin.calls)

    assert w.plugin.truth("a") == await w.cycle("a")
    assert [("FilterScore", False), ("FilterScore", True)] == before == w.plugin.calls


async def test_an_answer_stays_until_something_touches_its_rows():
    """Pods of a kind that is known are not asked about again while nothing happens."""
    w = Harness()
    for _ in range(3):
        await w.cycle("a")
        w.change(2, sent=False)

    assert [("FilterScore", False)] == w.plugin.calls


async def test_kinds_that_are_next_are_asked_together():
    """While a pod of a new kind waits, the plugin is asked about the next kinds, so many at a time."""
    w = Harness()
    w.queued = [w.pod(label) for label in LABELS]
    await w.cycle("a")
    await turns()
    asked = [ahead for _, ahead in w.plugin.calls]
    for label in ("b", "c"):
        await w.plugin.deliver()
        assert w.plugin.truth(label) == await w.cycle(label)

    assert [False, True, True] == asked
    assert len(asked) == len(w.plugin.calls)


async def test_nothing_is_asked_while_an_answer_may_change_others():
    """A Reserve that was not answered yet may change what the plugin says of its node."""
    w = Harness()
    await w.cycle("a")
    w.plugin.feed.unanswered = 1
    w.change(2, sent=True)
    w.finding.ask_ahead()
    await turns()

    assert [("FilterScore", False)] == w.plugin.calls


async def test_a_failure_ahead_costs_the_pod_nothing():
    """The pod asks itself; nothing is asked ahead again until something changes."""
    w = Harness()
    await w.cycle("a")
    w.change(2, sent=True)
    w.finding.ask_ahead()
    await w.plugin.deliver("failed")
    w.finding.ask_ahead()
    await turns()

    assert w.plugin.truth("a") == await w.cycle("a")
    assert [False, True, False] == [ahead for _, ahead in w.plugin.calls]


@pytest.mark.parametrize(
    "without",
    [
        pytest.param({"node_local": False}, id="not by node"),
        pytest.param({"pod_fields": None}, id="no pod fields"),
        pytest.param({"score_needs_feasible": True}, id="needs feasible nodes"),
    ],
)
async def test_a_plugin_whose_answers_do_not_last_is_not_asked_ahead(without):
    """It is asked about all nodes for every pod, at its turn."""
    w = Harness()
    wanted = w.plugin.connection.capabilities
    for name, value in without.items():
        if value is None:
            wanted.ClearField(name)
        else:
            setattr(wanted, name, value)
    w.queued = [w.pod("b")]
    pods = [w.pod("a"), w.pod("a")]
    for pod in pods:
        state = CycleState()
        await w._awaited(w.finding.filter(state, pod, w.snapshot))
        w.finding.ask_ahead()
        await turns()

    assert [False, False] == [ahead for _, ahead in w.plugin.calls]


async def test_without_classes_nothing_is_asked_ahead():
    """The bound of 0 switches it off."""
    w = Harness(classes=0)
    w.queued = [w.pod("b")]
    await w.cycle("a")
    w.change(2, sent=True)
    w.finding.ask_ahead()
    await turns()

    assert [("FilterScore", False)] == w.plugin.calls
