"""Pods that wait cost little, however many they are and however often something happens."""

import pytest

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource, QueueingHint
from berth.objects.pods.pod import Pod
from berth.queue.pools.in_flight import InFlight
from berth.queue.queue_metrics import QueueMetrics
from tests.hostile.deciding import a_pod
from tests.hostile.work import calls, growth, kept_bytes
from tests.unit.queue.kit import NODE_ADD, POD_LABEL, Rejector, a_bench, queue_it, skip_it

POD_DELETE = ClusterEvent(EventResource.POD, ActionType.DELETE)
MEBIBYTE = 1 << 20


def waiting(n, event=NODE_ADD, *, hint=skip_it, kinds=1):
    """A queue in which so many pods of so many kinds wait for the event, which helps none of them."""
    bench = a_bench([Rejector("A", {event: hint})])
    for i in range(n):
        bench.pooled(f"p{i}", labels={"kind": str(i % kinds)})
    return bench


@pytest.mark.parametrize("event", [NODE_ADD, POD_DELETE])
def test_an_event_is_linear_in_the_kinds_of_pods_that_wait_for_it(event):
    def work(n):
        bench = waiting(n, event, kinds=n)
        return lambda: bench.queue.move_all(event, None, None)

    assert growth(work, 50) < 1.2


def test_an_event_asks_a_few_calls_of_each_kind_of_pod():
    bench = waiting(200, kinds=200)

    assert calls(lambda: bench.queue.move_all(NODE_ADD, None, None)) < 200 * 25


def test_an_event_that_helps_no_pod_costs_nothing_for_each_of_one_kind():
    def work(n):
        bench = waiting(n, kinds=4)
        return lambda: bench.queue.move_all(NODE_ADD, None, None)

    assert calls(work(400)) <= calls(work(20)) + 10


def test_an_event_that_helps_them_asks_a_few_calls_of_each_pod_that_it_moves():
    bench = waiting(200, hint=queue_it)

    assert calls(lambda: bench.queue.move_all(NODE_ADD, None, None)) < 200 * 80


class AskAboutAll:
    """A sidecar's hint: the plugin is to be asked about all pods."""

    def __call__(self, _pod, _old, _new):
        return QueueingHint.ASK

    def of_all(self, _old, _new):
        return QueueingHint.ASK


def asked(n):
    """A queue whose pods, none like another, wait for a sidecar's answer, and what the sidecar is asked."""
    questions = []
    bench = a_bench(
        [Rejector("A", {NODE_ADD: AskAboutAll()})], ask_hints=lambda asked, _: questions.extend(asked)
    )
    for i in range(n):
        bench.pooled(f"p{i}", labels={"kind": str(i)})
    return bench, questions


def test_a_sidecar_is_asked_one_question_about_all_pods_that_wait():
    bench, questions = asked(200)

    assert calls(lambda: bench.queue.move_all(NODE_ADD, None, "node")) < 200 * 3
    assert [200] == [len(question.records) for question in questions]


def test_a_sidecars_answer_asks_a_few_calls_of_each_pod_that_it_moves():
    bench, questions = asked(200)
    bench.queue.move_all(NODE_ADD, None, "node")

    assert calls(lambda: bench.queue.hints_answered(questions)) < 200 * 80
    assert bench.queue.sizes().active == 200


def test_a_sidecars_answer_is_linear_in_the_pods_that_it_moves():
    def work(n):
        bench, questions = asked(n)
        bench.queue.move_all(NODE_ADD, None, "node")
        return lambda: bench.queue.hints_answered(questions)

    assert growth(work, 50) < 1.2


def test_an_event_costs_nothing_while_no_pod_waits():
    bench = waiting(0)

    assert calls(lambda: bench.queue.move_all(NODE_ADD, None, None)) < 15


def test_an_event_that_no_waiting_pod_waits_for_costs_nothing_for_each():
    def work(n):
        bench = waiting(n)
        return lambda: bench.queue.move_all(POD_LABEL, None, None)

    assert calls(work(400)) <= calls(work(20)) + 50


def test_a_pods_own_update_costs_the_same_however_many_wait():
    """A user may change a label of one's own pod a hundred times a second."""

    def work(n):
        bench = waiting(n)
        old = bench.known["default/p0"]
        new = a_pod("p0", labels={"flaps": "1"})
        return lambda: bench.queue.update(old, new)

    # A heap of twenty times as many is twice as deep.
    assert calls(work(400)) <= 2 * calls(work(20))


def test_pods_created_and_deleted_under_one_name_leave_nothing():
    bench = waiting(3)

    def again():
        for _ in range(300):
            bench.queue.delete(bench.add("again"))

    again()

    assert kept_bytes(again, enough=40_000) < 40_000


def test_distinct_scheduler_names_leave_nothing():
    bench = waiting(3)

    def come_and_go(of):
        for i in range(300):
            bench.queue.delete(bench.add(f"{of}-{i}", scheduler_name=f"{of}-{i}"))
            bench.known.clear()

    come_and_go("warm")

    assert kept_bytes(lambda: come_and_go("x"), enough=40_000) < 40_000


def test_events_for_a_pod_that_waits_for_its_permit_take_a_bounded_amount_of_memory():
    """A pod may be in flight for ten minutes, and each event holds two versions of another user's pod."""
    flights = InFlight(QueueMetrics())
    flights.begin("uid")

    def flap():
        old = Pod.of()
        for i in range(200):
            new = a_pod("p", labels={"flaps": str(i)}, annotations={"a": str(i) + "z" * 100_000})
            flights.record(POD_LABEL, old, new)
            old = new

    assert kept_bytes(flap, enough=16 * MEBIBYTE) < 16 * MEBIBYTE
