"""Whether a Scheduler's pods lead, as its condition says it."""

import pytest

from berth.operator.leading_condition import OF_POD, leading
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
