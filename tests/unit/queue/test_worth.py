"""Core 2.8: what an event means for a rejected pod."""

import logging

import pytest

from berth.framework.cluster_event import FORCE_ACTIVATE, QueueingHint
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.requeueing.hints import build_hint_map
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.requeueing.requeue_strategy import RequeueStrategies, RequeueStrategy
from berth.testing.builders import make_node
from berth.testing.handles import ManualClock
from tests.failures.reporting import reports
from tests.unit.queue.kit import (
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    CountingMetrics,
    Rejector,
    a_pod,
    queue_it,
    skip_it,
)

SKIP, BACKOFF, NOW = RequeueStrategy.SKIP, RequeueStrategy.AFTER_BACKOFF, RequeueStrategy.IMMEDIATELY


def strategies(*plugins, metrics=None):
    profiles = {PROFILE: QueueProfile((), build_hint_map(plugins))}
    return RequeueStrategies(profiles, ManualClock(), metrics or CountingMetrics())


def a_record(unschedulable=(), pending=(), **pod):
    return QueuedPodInfo(
        a_pod(**pod), 0.0, unschedulable_plugins={*unschedulable, *pending}, pending_plugins=set(pending)
    )


A = Rejector("A", {NODE_ADD: queue_it})
B = Rejector("B", {NODE_ADD: skip_it})


@pytest.mark.parametrize(
    ("unschedulable", "pending", "strategy"),
    [
        pytest.param("", "", BACKOFF, id="1: no plugin rejected it"),
        pytest.param("A", "", BACKOFF, id="4: queue"),
        pytest.param("B", "", SKIP, id="4: skip"),
        pytest.param("C", "", SKIP, id="5: its rejector waits for nothing"),
        pytest.param("", "A", NOW, id="4: a pending plugin says queue"),
        pytest.param("", "B", SKIP, id="4: a pending plugin says skip"),
        pytest.param("AB", "", BACKOFF, id="best of: one queue is enough"),
        pytest.param("A", "B", BACKOFF, id="11.3.4: the pending one skips"),
        pytest.param("B", "A", NOW, id="best of: immediately wins"),
    ],
)
def test_best_of(unschedulable, pending, strategy):
    """2.8: Immediately beats AfterBackoff beats Skip, over the plugins that rejected the pod."""
    record = a_record(unschedulable, pending)

    assert strategy is strategies(A, B).worth(record, NODE_ADD, None, make_node(), [])


def test_immediately_is_looked_for_behind_a_queue():
    """2.8.4: with pending plugins a Queue of another rejector does not end the search."""
    pending_last = Rejector("Z", {NODE_ADD: queue_it})

    assert strategies(A, pending_last).worth(a_record("A", "Z"), NODE_ADD, None, None, []) is NOW


@pytest.mark.parametrize(
    ("new", "strategy"),
    [
        pytest.param(None, BACKOFF, id="nothing named"),
        pytest.param(a_pod("other"), SKIP, id="another pod"),
        pytest.param(make_node(), SKIP, id="no pod"),
        pytest.param(a_pod(), BACKOFF, id="this pod"),
    ],
)
@pytest.mark.parametrize("rejectors", ["A", "B"])
def test_wildcard(new, strategy, rejectors):
    """2.8.2 and 11.3.7: a wildcard is for everybody, or for the one pod that it names."""
    assert strategy is strategies(A, B).worth(a_record(rejectors), FORCE_ACTIVATE, None, new, [])


@reports(
    "profile-gone", log="`no profile of that name`, with pod and profile; the pod is tried after its backoff"
)
def test_unknown_profile(caplog):
    """2.8.3: a pod whose profile is gone is retried after its backoff."""
    record = a_record("A", scheduler_name="gone")
    with caplog.at_level(logging.ERROR):
        assert strategies(A).worth(record, NODE_ADD, None, None, []) is BACKOFF

    assert "no profile of that name" in caplog.text


def raising(*_question):
    raise RuntimeError("lost")


@reports("hint-fails", log="`hint failed, the pod is queued`, with plugin, event, pod and cause")
@pytest.mark.parametrize(
    ("hint", "text", "strategy"),
    [(queue_it, "Queue", BACKOFF), (skip_it, "QueueSkip", SKIP), (raising, "Error", BACKOFF)],
)
def test_hints_are_counted(hint, text, strategy, caplog):
    """2.8.4: each answer is timed under its name; an error is logged and counts as Queue."""
    metrics = CountingMetrics()
    asked = strategies(Rejector("A", {NODE_ADD: hint}), metrics=metrics)
    with caplog.at_level(logging.ERROR):
        assert strategy is asked.worth(a_record("A"), NODE_ADD, None, None, [])

    assert metrics.hints == {("A", "NodeAdd", text): 1}
    assert (hint is raising) == ("hint failed, the pod is queued plugin=A" in caplog.text)


def test_the_hint_sees_the_waiting_pod_and_both_objects():
    """2.8.4: a hint gets the waiting pod, the old and the new object."""
    seen = []

    def hint(*question):
        seen.append(question)
        return QueueingHint.SKIP

    old, new, record = make_node(), make_node(labels={"a": "b"}), a_record("A")
    strategies(Rejector("A", {NODE_LABEL: hint})).worth(record, NODE_LABEL, old, new, [])

    assert seen == [(record.pod, old, new)]
