"""Whether a Scheduler's pods lead, as its condition says it."""

import pytest

from berth.operator.reporting.leading_condition import OF_POD, LeadingConditions, leading
from tests.failures.reporting import reports


def pod(name, status="", reason="", message=""):
    """A pod that reports this, or nothing."""
    report = {"type": OF_POD, "status": status, "reason": reason, "message": message}
    return {"metadata": {"name": name}, "status": {"conditions": [report] if status else []}}


LEADS, STANDS_BY = pod("a", "True", "Leading"), pod("b", "False", "Standby", "x leads")
FAILS = pod("c", "False", "LeaseNotAcquired", "lease kube-scheduler: 403 Forbidden")


@reports("lease-lost", condition="`Leading=False` of the Scheduler: `LeaseNotAcquired`, with pod and cause")
@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], [], id="no pod"),
        pytest.param([pod("a")], [], id="no election"),
        pytest.param([STANDS_BY, LEADS], [(True, "Leading", "a pod of this Scheduler leads")], id="leads"),
        pytest.param([STANDS_BY], [(False, "Standby", "x leads")], id="another Scheduler leads"),
        pytest.param(
            [STANDS_BY, FAILS],
            [(False, "LeaseNotAcquired", "pod c: lease kube-scheduler: 403 Forbidden")],
            id="can't",
        ),
        pytest.param(
            [LEADS, FAILS],
            [(True, "LeaseNotAcquired", "pod c: lease kube-scheduler: 403 Forbidden")],
            id="a standby can't",
        ),
    ],
)
def test_leading(pods, expected):
    """It holds where one pod leads, and names what keeps a pod from its lease."""
    assert expected == [(one.holds, one.reason, one.message) for one in leading(pods)]


ENDS = 15 + 2 * 2 + 1
"""When a hand-over with the usual durations is over: lease, two tries of a standby, its report."""


class Handing:
    """The condition of one Scheduler over time, as the operator writes it, and when it looks again."""

    def __init__(self, *, leads, **spec):
        self.seconds, self.again = 100.0, []
        self.found = LeadingConditions(
            lambda: self.seconds, lambda key, after: self.again.append((*key, after))
        )
        self.scheduler = {"metadata": {"namespace": "ns", "name": "main"}, "spec": spec, "status": {}}
        if leads:
            self.scheduler["status"] = {"conditions": [{"type": "Leading", "status": "True"}]}

    def at(self, seconds, *pods):
        self.seconds = 100.0 + seconds
        return [(one.holds, one.reason) for one in self.found.condition(self.scheduler, pods)]


@pytest.mark.parametrize(
    "left", [pytest.param((STANDS_BY,), id="a standby"), pytest.param((), id="none yet")]
)
def test_hand_over(left):
    """After the pod that led has ended the condition holds for as long as a standby may take to lead."""
    handing = Handing(leads=True)
    assert [(True, "HandOver")] == handing.at(0, *left)
    assert [(True, "HandOver")] == handing.at(3, *left)
    assert [(True, "Leading")] == handing.at(4, LEADS)
    assert [("ns", "main", ENDS), ("ns", "main", ENDS - 3)] == handing.again


def test_no_hand_over():
    """Where no pod takes over in that time the condition says so, and goes on to, whatever its status is."""
    handing = Handing(leads=True)
    handing.at(0, STANDS_BY)

    assert [(False, "Standby")] == handing.at(ENDS, STANDS_BY)
    assert [(False, "Standby")] == handing.at(ENDS + 1, STANDS_BY)


def test_what_is_no_hand_over():
    """Before any pod has led, in trouble, and without replicas, nothing is handed over."""
    assert [(False, "Standby")] == Handing(leads=False).at(0, STANDS_BY)
    assert [(False, "LeaseNotAcquired")] == Handing(leads=True).at(0, STANDS_BY, FAILS)
    assert [] == Handing(leads=True, replicas=0).at(0)


def test_a_longer_lease_is_handed_over_for_longer():
    """The time that a hand-over may take is that of the Scheduler's own lease."""
    handing = Handing(leads=True, leaderElection={"leaseDuration": "1m", "retryPeriod": "5s"})

    assert [(True, "HandOver")] == handing.at(0, STANDS_BY)
    assert [("ns", "main", 71)] == handing.again
