"""Victims are evicted beside the scheduling cycles, the last one last."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from berth.framework.handle import PodGoneError
from berth.framework.status import SUCCESS, Code
from berth.preemption.candidates import Candidate
from berth.preemption.departures import Departures
from berth.preemption.eviction import PreemptionEvictions
from berth.preemption.preemptor import alone
from berth.scheduler.loop.background import AsyncioBackground
from berth.testing.handles import FixedNominator, make_handle
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.preemption.kit import PREEMPTED, leaving, placed, preemptor

HIGH = preemptor()
A, B, C = (placed(name, priority=9 - i, uid=f"uid-{name}") for i, name in enumerate("abc"))
PLUGIN = "DefaultPreemption"


class Server:
    """An API server whose deletions are answered when a test says so."""

    def __init__(self):
        self.calls, self.answers, self.at_once = [], {}, True

    async def patch_pod_status(self, pod, condition, nominated_node_name):
        self.calls.append(("patch", pod.name, condition, nominated_node_name))
        await self._answer(f"patch {pod.name}", wait=False)

    async def delete_pod(self, pod):
        self.calls.append(("delete", pod.name))
        await self._answer(pod.name, wait=not self.at_once)

    def answer(self, name, error=None):
        """Answer that deletion, or prepare to."""
        future = self.answers.setdefault(name, asyncio.get_running_loop().create_future())
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    async def _answer(self, name, *, wait):
        if wait or name in self.answers:
            await self.answers.setdefault(name, asyncio.get_running_loop().create_future())

    @property
    def deleted(self):
        return [call[1] for call in self.calls if call[0] == "delete"]


class Numbers:
    """Metrics that are remembered."""

    def __init__(self):
        self.of_victims, self.outcomes = [], []

    def attempted(self):
        raise NotImplementedError

    def chosen(self, _preemptor, candidate):
        self.of_victims.append(len(candidate.victims))

    def evicted(self, _preemptor, _seconds, *, failed, beside):
        if beside:
            self.outcomes.append("failed" if failed else "done")


class Scene:
    """Evictions on fakes; `known` is what the watch has shown of victims."""

    def __init__(self, tasks, nominated=()):
        self.server, self.numbers, self.activated = Server(), Numbers(), []
        self.handle = make_handle(nominator=FixedNominator.of(nominated), writer=self.server)
        self.handle.background = AsyncioBackground(tasks)
        self.handle.activate = lambda pods: self.activated.extend(pod.name for pod in pods)
        self.known = {pod.uid: pod for pod in (A, B, C)}
        self.handle.known = lambda pod: self.known.get(pod.uid)
        self.evictions = PreemptionEvictions(self.handle, self.numbers, Departures())

    def start(self, *victims):
        self.evictions.start(PLUGIN, alone(HIGH), Candidate("n0", victims))

    @property
    def running(self):
        return self.evictions.running(HIGH.uid)

    @property
    def notes(self):
        return [(key, reason, note) for key, _, reason, _, note in self.handle.recorder.events]


@asynccontextmanager
async def scene(nominated=()):
    """A scene whose background work has ended once it is over."""
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
        yield Scene(tasks, nominated)


async def settle():
    """Let everything go as far as it goes."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_6_6_3_a_victim_gets_a_condition_then_is_deleted_with_an_event():
    async with scene() as s:
        s.start(A)
    (_, name, condition, nominated), deletion = s.server.calls

    assert ("a", None, ("delete", "a")) == (name, nominated, deletion)
    assert ("DisruptionTarget", "True", "PreemptionByScheduler") == (
        condition.type,
        condition.status,
        condition.reason,
    )
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    assert message == condition.message
    assert [("default/a", "Preempted", f"Preempted by pod {HIGH.uid} on node n0")] == s.notes
    assert [HIGH] == s.handle.recorder.related
    assert ([1], ["done"], []) == (s.numbers.of_victims, s.numbers.outcomes, s.activated)


async def test_6_6_async_the_last_victim_waits_for_all_the_others():
    """Vector 11.8.6: two deletions side by side, the third once both succeeded."""
    async with scene() as s:
        s.server.at_once = False
        s.start(A, B, C)
        await settle()
        first = list(s.server.deleted)
        s.server.answer("a")
        await settle()
        second = list(s.server.deleted)
        s.server.answer("b")
        s.server.answer("c")

    assert (["a", "b"], ["a", "b"], ["a", "b", "c"]) == (first, second, s.server.deleted)


async def test_6_6_async_a_failure_spares_the_last_victim_and_activates_the_preemptor():
    """Vector 11.8.6, its second half."""
    async with scene() as s:
        s.server.answer("b", RuntimeError("refused"))
        s.start(A, B, C)

    assert "c" not in s.server.deleted
    assert (["high"], ["failed"], False) == (s.activated, s.numbers.outcomes, s.running)


async def test_6_6_async_a_failure_with_the_last_victim_activates_the_preemptor():
    async with scene() as s:
        s.server.answer("a", RuntimeError("refused"))
        s.start(A)

    assert ([], ["high"], ["failed"]) == (s.notes, s.activated, s.numbers.outcomes)


@pytest.mark.parametrize("call", ["a", "patch a"])
async def test_6_6_3_a_victim_that_is_gone_is_no_failure_and_no_news(call):
    async with scene() as s:
        s.server.answer(call, PodGoneError("not found"))
        s.start(A, B)

    assert (["done"], ["default/b"]) == (s.numbers.outcomes, [key for key, _, _ in s.notes])


async def test_6_6_async_1_victims_that_are_leaving_need_no_call():
    """Vector 11.8.5."""
    async with scene() as s:
        s.start(leaving(A), B)

    assert (["b"], [2]) == (s.server.deleted, s.numbers.of_victims)


async def test_6_6_async_1_nothing_happens_where_all_victims_are_leaving():
    async with scene() as s:
        s.start(leaving(A), leaving(B))

        assert ([], [], False) == (s.server.calls, s.numbers.of_victims, s.running)


async def test_6_6_async_3_1_less_important_nominations_are_taken_back_first():
    """Vector 11.8.8, its first half."""
    lower, equal = (preemptor("1", p, f"p{p}", nominated_node_name="n0") for p in (3, 10))
    bare = preemptor("1", 0, "bare")
    async with scene() as s:
        s.handle.nominator.by_node = {"n0": [lower, equal, bare]}
        s.start(A)

    assert ("patch", "p3", None, "") == s.server.calls[0]
    assert ["p3", "a", "a"] == [call[1] for call in s.server.calls]


@reports("nomination-not-taken-back", log="`nomination not taken back`, with the cause")
async def test_6_6_async_3_1_a_nomination_that_stays_marks_failure_and_stops_nothing(caplog):
    lower = preemptor("1", 3, "lower", nominated_node_name="n0")
    async with scene([lower]) as s:
        s.server.answer("patch lower", RuntimeError("refused"))
        s.start(A)

    assert (["a"], ["failed"], ["high"]) == (s.server.deleted, s.numbers.outcomes, s.activated)
    assert "nomination not taken back pod=default/lower err=refused" in caplog.text


class Waiting:
    """A pod that waits for permission."""

    def __init__(self, took_effect):
        self.took_effect, self.calls = took_effect, []

    def preempt(self, plugin, message):
        self.calls.append((plugin, message))
        return self.took_effect

    def cancel(self, message):
        self.calls.append(message)
        return self.took_effect


async def test_6_6_1_a_waiting_victim_is_turned_down_in_memory():
    async with scene() as s:
        waiting = Waiting(took_effect=True)
        s.handle.waiting_pods = {A.uid: waiting}
        s.start(A)

    note = f"Preempted by pod {HIGH.uid} on node n0 (in kube-scheduler memory)."
    assert ([(PLUGIN, "preempted")], [], [note]) == (
        waiting.calls,
        s.server.calls,
        [note for _, _, note in s.notes],
    )


async def test_6_6_1_a_waiting_victim_that_was_decided_on_is_deleted_without_a_look_at_pre_bind():
    async with scene() as s:
        in_pre_bind = Waiting(took_effect=True)
        s.handle.waiting_pods = {A.uid: Waiting(took_effect=False)}
        s.handle.pods_in_pre_bind = {A.uid: in_pre_bind}
        s.start(A)

    assert (["a"], []) == (s.server.deleted, in_pre_bind.calls)


@pytest.mark.parametrize(("in_time", "deleted"), [(True, []), (False, ["a"])], ids=["in time", "too late"])
async def test_6_6_2_a_victim_in_pre_bind_is_stopped_if_there_is_time(in_time, deleted):
    async with scene() as s:
        in_pre_bind = Waiting(took_effect=in_time)
        s.handle.pods_in_pre_bind = {A.uid: in_pre_bind}
        s.start(A)

    assert ([f"preempted by {PLUGIN}"], deleted) == (in_pre_bind.calls, s.server.deleted)
    assert in_time == s.notes[0][2].endswith(" (in kube-scheduler memory).")


async def test_6_6_gate_running_until_the_last_victim_was_evicted():
    """And until the watch has shown it: on nodes as they were, the pod would preempt once more."""
    async with scene() as s:
        s.server.at_once = False
        s.start(A, B)
        at_first = s.running
        await settle()
        s.server.answer("a")
        await settle()
        last_is_on_its_way = s.running
        s.server.answer("b")
        await settle()
        answered = s.running
        s.known[B.uid] = leaving(B)

        assert (True, True, True, False) == (at_first, last_is_on_its_way, answered, s.running)


@pytest.mark.parametrize("news", [None, leaving(B)], ids=["gone", "leaving"])
async def test_6_6_gate_opens_once_the_watch_tells_of_the_last_victim(news):
    """Vector 11.8.7: also before the API server's answer is here."""
    async with scene() as s:
        s.server.at_once = False
        s.server.answer("a")
        s.start(A, B)
        await settle()
        s.known[B.uid] = news
        opened = not s.running
        s.server.answer("b")

    assert opened
    assert [] == s.activated


async def test_6_6_gate_news_of_other_victims_do_not_open_it():
    async with scene() as s:
        s.server.at_once = False
        s.start(A, B)
        await settle()
        s.known[A.uid] = s.known[B.uid] = None
        closed = s.running
        s.server.answer("a")
        s.server.answer("b")

    assert closed


async def test_a_preemptor_whose_last_victim_left_unheard_is_activated():
    """The event that would have brought it back came while it was held back."""
    async with scene() as s:
        s.server.answer("a", PodGoneError("not found"))
        s.known[A.uid] = None
        s.start(A)

    assert (["high"], ["done"]) == (s.activated, s.numbers.outcomes)


async def test_6_6_sync_all_at_once_then_nominations():
    lower = preemptor("1", 3, "lower", nominated_node_name="n0")
    async with scene([lower]) as s:
        status = await s.evictions.carry_out(PLUGIN, alone(HIGH), Candidate("n0", (A, leaving(B), C)))

    assert SUCCESS == status
    assert (["a", "c"], "lower") == (sorted(s.server.deleted), s.server.calls[-1][1])
    assert ([3], []) == (s.numbers.of_victims, s.numbers.outcomes)


async def test_6_6_sync_a_failure_is_an_error_and_nominations_stay():
    lower = preemptor("1", 3, "lower", nominated_node_name="n0")
    async with scene([lower]) as s:
        s.server.answer("a", RuntimeError("refused"))
        status = await s.evictions.carry_out(PLUGIN, alone(HIGH), Candidate("n0", (A,)))

    assert (Code.ERROR, "refused") == (status.code, status.message)
    assert "lower" not in [call[1] for call in s.server.calls]


async def test_5_10_a_victim_that_bears_the_condition_already_is_only_deleted():
    """The condition says the same, so the writer has nothing to send; the deletion follows."""
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    condition = msgspec.structs.replace(PREEMPTED, message=message)
    victim = placed("a", conditions=(condition,))
    async with scene() as s:
        s.start(victim)

    _, _, sent, _ = s.server.calls[0]
    held = victim.status.conditions[0]
    assert (held.status, held.reason, held.message) == (sent.status, sent.reason, sent.message)
    assert ["a"] == s.server.deleted
