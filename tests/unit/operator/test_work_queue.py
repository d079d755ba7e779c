"""The operator's queue: each Scheduler once, failures later and later; and what the operator counts."""

import asyncio

from berth.client.errors import ClientError, RejectedError
from berth.operator.failure_log import FailureLog
from berth.operator.kinds import SchedulerKey
from berth.operator.metrics import OperatorMetrics
from berth.operator.reporting.conditions import StatusCondition
from berth.operator.work_queue import LONGEST_PAUSE_SECONDS, WorkQueue
from tests.failures.reporting import reports

A, B = SchedulerKey("n", "a"), SchedulerKey("n", "b")


class Later:
    """Notes what is to be done later, and does it on request."""

    def __init__(self):
        self.waiting = []

    def __call__(self, seconds, work):
        self.waiting.append((seconds, work))

    def pass_by(self):
        for _, work in self.waiting:
            work()
        self.waiting.clear()


async def test_once():
    """A key that is added again while it waits is looked at once; in the order of the first time."""
    queue = WorkQueue(Later())
    for key in (A, B, A):
        queue.add(key)

    assert [A, B] == [await queue.get(), await queue.get()]
    assert 0 == len(queue)


async def test_added_meanwhile():
    """A key that is added while it is at work is looked at again, and not before that is done."""
    queue = WorkQueue(Later())
    queue.add(A)
    await queue.get()
    queue.add(A)
    again = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not again.done()

    queue.succeeded(A)
    assert A == await again


async def test_waits():
    """Who asks an empty queue gets what comes next."""
    queue = WorkQueue(Later())
    asked = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not asked.done()

    queue.add(B)
    assert B == await asked


async def test_failures():
    """Pauses double from failure to failure up to a limit, and begin anew after a success."""
    later = Later()
    queue = WorkQueue(later)
    pauses = [queue.failed(A) for _ in range(12)]
    assert [0.2, 0.4, 0.8] == pauses[:3]
    assert LONGEST_PAUSE_SECONDS == pauses[-1]

    queue.succeeded(A)
    assert 0.2 == queue.failed(A)
    later.pass_by()
    assert A == await queue.get()


@reports("operator-breaks", log="`reconcile failed, tried again`, once for a cause; `reconciled again`")
def test_failures_are_logged_when_they_begin_and_end(caplog):
    """A cause is one line however often it is met, another cause is another, and so is the end."""
    caplog.set_level("INFO", logger="berth.operator")
    failures = FailureLog()
    for error in [ClientError("no answer")] * 9 + [KeyError("metadata")] * 3:
        failures.failed(A, error)
    for _ in range(3):
        failures.went_well(A)
        failures.went_well(B)

    assert [
        ("WARNING", "reconcile failed, tried again scheduler=n/a err=no answer", False),
        ("WARNING", "reconcile failed, tried again scheduler=n/a err='metadata'", True),
        ("INFO", "reconciled again scheduler=n/a", False),
    ] == [(one.levelname, one.getMessage(), bool(one.exc_info)) for one in caplog.records]


@reports(
    "operator-without-rights",
    log="`rights are gone, as while Berth is uninstalled; else apply it again`, once for all Schedulers",
)
def test_rights_that_are_gone_are_logged_once_for_all(caplog):
    """Of rights that the operator lacks there is one line, until its writes are taken again."""
    caplog.set_level("INFO", logger="berth.operator")
    failures = FailureLog()
    for key in (A, B, A, B):
        failures.failed(key, RejectedError(403, "Forbidden", "no"))
    for key in (A, B):
        failures.went_well(key)

    assert [
        "rights are gone, as while Berth is uninstalled; else apply it again err=403 Forbidden: no",
        "reconciled again scheduler=n/a",
        "reconciled again scheduler=n/b",
    ] == caplog.messages


CONDITIONS = [
    StatusCondition("Available", True, "R", ""),
    StatusCondition("Degraded", False, "S", ""),
    StatusCondition("ArgumentsAccepted", False, "Refused", ""),
]


@reports("arguments-refused", metric="`berth_operator_scheduler_condition`, type `ArgumentsAccepted`")
def test_metrics():
    """Looks, applied objects and conditions are counted; a Scheduler that is gone is forgotten."""
    metrics = OperatorMetrics()
    metrics.reconciled("success", 0.01)
    metrics.applied("Deployment")
    metrics.conditions(A, CONDITIONS)
    text = metrics.text().decode()
    assert 'berth_operator_reconciles_total{result="success"} 1.0' in text
    assert 'berth_operator_applied_total{kind="Deployment"} 1.0' in text
    series = 'berth_operator_scheduler_condition{name="a",namespace="n",'
    assert f'{series}reason="R",type="Available"}} 1.0' in text
    assert f'{series}reason="S",type="Degraded"}} 0.0' in text
    assert f'{series}reason="Refused",type="ArgumentsAccepted"}} 0.0' in text
    metrics.conditions(A, [StatusCondition("Available", False, "T", "")])
    text = metrics.text().decode()
    assert [f'{series}reason="T",type="Available"}} 0.0'] == [
        line for line in text.splitlines() if line.startswith(series)
    ]

    metrics.forget(A)
    metrics.forget(B)
    assert 'name="a"' not in metrics.text().decode()
