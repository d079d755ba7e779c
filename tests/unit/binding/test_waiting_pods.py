"""A pod that waits: the first outcome counts."""

import pytest

from berth.binding.waiting_pods import WaitingPods, go_duration
from berth.framework.status import SUCCESS, Code
from berth.testing.builders import make_pod
from berth.testing.handles import ManualClock
from tests.fakes import Steps

POD = make_pod()


@pytest.fixture
def background():
    steps = Steps(ManualClock())
    yield steps
    steps.close()


@pytest.fixture
def pods(background):
    waiting = WaitingPods(background, background.clock)
    waiting.add(POD, {"A": 10.0, "B": 1.5})
    return waiting


def outcomes(pods, background):
    """What the pod's waiting ends with, once something waits for it."""
    found = []

    async def wait():
        found.append(await pods.wait(POD.uid))

    background.spawn(wait(), "wait")
    background.run()
    return found


def test_everybody_has_to_allow(pods, background):
    found = outcomes(pods, background)
    pods.get(POD.uid).allow("A")
    pods.get(POD.uid).allow("stranger")
    background.run()
    assert [] == found

    pods.get(POD.uid).allow("B")
    background.run()
    assert [SUCCESS] == found
    assert pods.get(POD.uid) is None


@pytest.mark.parametrize("method", ["reject", "preempt"])
def test_the_first_outcome_counts(pods, background, method):
    pod = pods.get(POD.uid)

    assert getattr(pod, method)("A", "first")
    assert not pod.reject("B", "second")
    assert not pod.preempt("B", "third")
    pod.allow("A")
    pod.allow("B")

    [status] = outcomes(pods, background)
    assert (Code.UNSCHEDULABLE if method == "reject" else Code.ERROR) is status.code
    assert ("A", "first") == (status.plugin, status.message)
    assert all(timer.cancelled for timer in background.timers)


def test_an_allowed_pod_cannot_be_rejected(pods):
    pod = pods.get(POD.uid)
    pod.allow("A")
    pod.allow("B")

    assert not pod.reject("A", "late")


def test_the_shortest_time_runs_out_first(pods, background):
    background.advance(1.5)

    [status] = outcomes(pods, background)
    assert ("B", "rejected due to timeout after waiting 1.5s at plugin B") == (status.plugin, status.message)
    assert all(timer.cancelled for timer in background.timers)


def test_a_plugin_that_allowed_cannot_run_out_of_time(pods, background):
    found = outcomes(pods, background)
    pods.get(POD.uid).allow("B")
    background.advance(5)
    background.run()

    assert [] == found


def test_the_pod_is_seen_until_its_outcome_is_taken(pods, background):
    pods.get(POD.uid).reject("A", "no")
    assert [POD] == [waiting.pod for waiting in pods]

    outcomes(pods, background)
    assert [] == list(pods)


def test_a_pod_that_does_not_wait_has_no_outcome(background):
    assert [None] == outcomes(WaitingPods(background, background.clock), background)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.3, "300ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (10, "10s"),
        (60, "1m0s"),
        (90.5, "1m30.5s"),
        (900, "15m0s"),
        (3600, "1h0m0s"),
        (3661, "1h1m1s"),
    ],
)
def test_durations_as_go_writes_them(seconds, text):
    assert text == go_duration(seconds)
