"""Gates and hints of sidecars: asked beside the queue, answered later."""

import pytest

from berth.framework.cluster_event import QueueingHint
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import SUCCESS, failed, unschedulable
from berth.queue.moves.async_pre_enqueue import AsyncPreEnqueue
from berth.testing.handles import ManualClock
from tests.fakes import Steps
from tests.unit.queue.kit import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    Gates,
    Rejector,
    a_bench,
    a_pod,
    queue_it,
    skip_it,
)


def ask_it(*_question):
    return QueueingHint.ASK


class FarGate(Gates):
    """A PreEnqueue sidecar; a test gives its answers, by pod version."""

    in_process = False

    def __init__(self, steps, name="Far", hint=queue_it):
        super().__init__(name, (NODE_ADD,), hint)
        self._steps = steps
        self.answers = []

    def pre_enqueue(self, pod):
        del pod
        self.asked += 1
        later = self._steps.outcome()
        self.answers.append(later)
        return later


class Later:
    """A background whose work begins after its spawner is done, as a task's does."""

    work = None

    def spawn(self, work, _name):
        self.work = work

    async def all_of(self, waits):
        return [await each for each in waits]

    async def answer(self, status):
        return status


@pytest.fixture
def far_bench():
    """Makes a queue with PreEnqueue sidecars of the given names."""
    steps = Steps(ManualClock())

    def make(*names, near=(), hint=queue_it):
        gates = [FarGate(steps, name, hint) for name in names or ("Far",)]
        return a_bench([*near, *gates], background=steps), steps, gates

    yield make
    steps.close()


def give(steps, gate, status=SUCCESS, turn=-1):
    """Let the gate answer what it was asked."""
    steps.run()
    gate.answers[turn].set(status)
    steps.run()


def test_a_pod_waits_for_the_answer_of_a_sidecars_gate(far_bench):
    """While a sidecar is asked its pod is in the pool, and goes on once it may."""
    bench, steps, (gate,) = far_bench()
    pod = bench.add()
    waiting = bench.queue.record("default", "p0")

    assert ("pool", "Far", set()) == (bench.where(pod), waiting.gating_plugin, waiting.rejectors)
    give(steps, gate)
    assert ("active", False, 1) == (bench.where(pod), waiting.gated, gate.asked)


def test_a_sidecars_rejection_gates(far_bench):
    """A plugin that says no holds the pod back until one of its events."""
    bench, steps, (gate,) = far_bench()
    pod = bench.add()
    give(steps, gate, unschedulable("quota"))
    record = bench.queue.record("default", "p0")

    assert ("pool", "Far", {"Far"}) == (bench.where(pod), record.gating_plugin, record.rejectors)
    bench.queue.move_all(NODE_LABEL, None, None)
    assert gate.asked == 1
    bench.queue.move_all(NODE_ADD, None, None)
    assert gate.asked == 2
    give(steps, gate)
    assert bench.where(pod) == "active"


def test_an_event_during_the_question_is_not_lost(far_bench):
    """What happens while the plugin makes up its mind is asked about after a no."""
    bench, steps, (gate,) = far_bench()
    pod = bench.add()
    steps.run()
    bench.queue.move_all(NODE_ADD, None, None)
    give(steps, gate, unschedulable("quota"))

    assert gate.asked == 2
    give(steps, gate)
    assert bench.where(pod) == "active"


def test_an_event_that_does_not_help_leaves_the_no(far_bench):
    """A hint that skips the event keeps the pod where it is, without another question."""
    bench, steps, (gate,) = far_bench(hint=skip_it)
    pod = bench.add()
    bench.queue.move_all(NODE_ADD, None, None)
    give(steps, gate, unschedulable("quota"))

    assert ("pool", 1) == (bench.where(pod), gate.asked)


def test_sidecars_gates_are_asked_together(far_bench):
    """All of them have to pass, and each is asked once."""
    bench, steps, gates = far_bench("One", "Two")
    pod = bench.add()
    steps.run()
    assert [1, 1] == [gate.asked for gate in gates]
    gates[1].answers[0].set(SUCCESS)
    give(steps, gates[0])

    assert ("active", [1, 1]) == (bench.where(pod), [gate.asked for gate in gates])


def test_a_gate_here_comes_first(far_bench):
    """A pod that a plugin of this process holds back is no question to another process."""
    bench, _, (gate,) = far_bench(near=[Gates()])
    bench.add(gates=["Gates"])

    assert gate.asked == 0


def test_another_version_is_another_question(far_bench):
    """The answer to an outdated version of the pod counts for nothing."""
    bench, steps, (gate,) = far_bench()
    old = bench.add()
    steps.run()
    bench.update(old, a_pod(labels={"a": "b"}))
    steps.run()
    give(steps, gate, turn=0)
    assert ("pool", 2) == (bench.where(old), gate.asked)

    give(steps, gate, turn=1)
    assert bench.where(old) == "active"


async def test_a_change_that_asks_nothing_anew_leaves_the_question_open():
    """A pod that is seen anew before anybody listens for the answer gets it all the same."""
    background, reported = Later(), []
    gates = AsyncPreEnqueue(
        background, lambda record, verdicts, _missed: reported.append((record.pod, verdicts))
    )
    record = QueuedPodInfo(a_pod(), 0.0)
    gates.ask(record, {"Far": background.answer(SUCCESS)})
    seen_anew = record.pod = a_pod()
    await background.work

    assert [(seen_anew, {"Far": SUCCESS})] == reported


def test_activation_does_not_ask_twice(far_bench):
    """A pod about which a plugin is being asked waits for that answer, even if it is activated."""
    bench, _, (gate,) = far_bench()
    pod = bench.add()
    bench.queue.activate([pod])

    assert ("pool", 1) == (bench.where(pod), gate.asked)


def test_a_pod_that_went_is_not_queued_by_a_late_answer(far_bench):
    """An answer about a pod that was deleted does nothing."""
    bench, steps, (gate,) = far_bench()
    pod = bench.add()
    bench.queue.delete(pod)
    give(steps, gate)

    assert bench.where(pod) == "nowhere"


def test_a_broken_gate_of_a_sidecar_keeps_the_pod_back(far_bench):
    """An error counts as a no."""
    bench, steps, (gate,) = far_bench()
    pod = bench.add()
    give(steps, gate, failed("no answer"))

    assert ("pool", {"Far"}) == (bench.where(pod), bench.queue.record("default", "p0").rejectors)


def test_a_gate_that_comes_later(far_bench):
    """Pods that were queued before a gate was known are asked about; pods of other profiles are not."""
    bench, steps, (gate,) = far_bench()
    gate.pre_enqueue, asking = lambda _pod: SUCCESS, gate.pre_enqueue
    ours, theirs = bench.add("ours"), bench.add("theirs", scheduler_name="other")
    gate.pre_enqueue = asking
    bench.queue.check_gates_again(PROFILE)
    assert ["pool", "active"] == [bench.where(pod) for pod in (ours, theirs)]

    give(steps, gate)
    assert bench.where(ours) == "active"


# Hints.


def asking(*plugins):
    """A queue whose questions are kept for the test."""
    asked = []
    bench = a_bench(
        list(plugins) or [Rejector("A", {NODE_ADD: ask_it})],
        ask_hints=lambda questions, _answered: asked.extend(questions),
    )
    bench.asked = asked
    return bench


def test_a_sidecars_hint_moves_the_pod():
    """One question is put for all rejected pods; those move for which its answer is Queue."""
    bench = asking()
    records = [bench.pooled(f"p{i}") for i in range(3)]
    bench.queue.move_all(NODE_ADD, None, "node")
    (question,) = bench.asked
    assert ("A", PROFILE, "node") == (question.plugin, question.profile, question.new)
    assert [(record, 1) for record in records] == list(zip(question.records, question.attempts, strict=True))
    assert ["pool"] * 3 == [bench.where(record.pod) for record in records]

    bench.queue.hints_answered([question.about([1])])
    assert ["pool", "active", "pool"] == [bench.where(record.pod) for record in records]


def test_only_plugins_that_rejected_are_asked():
    """A plugin that did not reject the pod is not asked about it."""
    bench = asking(Rejector("A", {NODE_ADD: ask_it}), Rejector("B", {NODE_ADD: ask_it}))
    bench.pooled(rejectors=["B"])
    bench.queue.move_all(NODE_ADD, None, None)

    assert ["B"] == [question.plugin for question in bench.asked]


def test_no_plugin_is_asked_for_what_is_decided():
    """Where a plugin of this process says Queue the pod moves at once."""
    bench = asking(Rejector("A", {NODE_ADD: ask_it}), Rejector("B", {NODE_ADD: queue_it}))
    record = bench.pooled(rejectors=["A", "B"])
    bench.queue.move_all(NODE_ADD, None, None)

    assert ("active", []) == (bench.where(record.pod), bench.asked)


def test_a_pending_sidecar_may_still_hurry():
    """A pod backs off for one plugin's Queue; the pending plugin's Queue ends that."""
    bench = asking(Rejector("A", {NODE_ADD: ask_it}), Rejector("B", {NODE_ADD: queue_it}))
    record = bench.popped()
    bench.fail(record, "B", pending=["A"])
    bench.queue.move_all(NODE_ADD, None, None)
    assert ("normal", ["A"]) == (bench.where(record.pod), [question.plugin for question in bench.asked])

    bench.queue.hints_answered(bench.asked)
    assert bench.where(record.pod) == "active"


@pytest.mark.parametrize(("pending", "place"), [((), "normal"), (("A",), "active")])
def test_backoff_after_a_hint(pending, place):
    """Queue waits for the backoff to end, unless the plugin left the pod pending."""
    bench = asking()
    record = bench.popped()
    bench.fail(record, "A", pending=pending)
    bench.queue.move_all(NODE_ADD, None, None)
    bench.queue.hints_answered(bench.asked)

    assert place == bench.where(record.pod)


def test_an_event_in_flight_is_asked_about_after_the_attempt():
    """What came while the pod was being scheduled becomes a question once it is rejected."""
    bench = asking()
    record = bench.popped()
    bench.queue.move_all(NODE_ADD, None, "node")
    assert [] == bench.asked
    bench.fail(record, "A")

    assert [("A", "node")] == [(question.plugin, question.new) for question in bench.asked]
    assert bench.where(record.pod) == "pool"


def test_an_answer_to_an_older_attempt_counts_for_nothing():
    """An attempt that began after the event has seen it; its rejection stands."""
    bench = asking()
    record = bench.pooled()
    bench.queue.move_all(NODE_ADD, None, None)
    bench.queue.activate([record.pod])
    bench.fail(bench.queue.pop(), "A")
    bench.queue.hints_answered(bench.asked)

    assert bench.where(record.pod) == "pool"


def test_without_anybody_to_ask_pods_are_queued():
    """Until questions are carried to plugins the answer is Queue."""
    bench = a_bench([Rejector("A", {NODE_ADD: ask_it})])
    record = bench.pooled()
    bench.queue.move_all(NODE_ADD, None, None)

    assert bench.where(record.pod) == "active"
