"""Conditions of our own pod that the API server does not take."""

import asyncio

from berth.client.errors import RejectedError
from berth.scheduler.writing import own_pod_conditions
from berth.scheduler.writing.own_pod_conditions import OwnPod, OwnPodConditions
from tests.failures.reporting import reports

LEADING = {"type": "berth.dev/Leading", "status": "True"}


class Pods:
    """A pod whose status is refused a few times; `patches` has what was taken."""

    def __init__(self, refusals):
        self.refusals = refusals
        self.patches = []
        self.taken = asyncio.Event()

    async def patch_status(self, namespace, name, patch):
        if self.refusals:
            self.refusals -= 1
            raise RejectedError(403, "Forbidden", "not today")
        self.patches.append((namespace, name, patch))
        self.taken.set()


@reports(
    "own-conditions-not-shown",
    log="`conditions not shown`, once for a cause, with pod and cause; tried again",
)
async def test_refused_conditions(monkeypatch, caplog):
    """The cause is logged once, and the conditions are written as soon as they are taken."""
    monkeypatch.setattr(own_pod_conditions, "LOOK_SECONDS", 0)
    pods = Pods(refusals=3)
    conditions = OwnPodConditions(lambda: [LEADING], pods, OwnPod("berth", "berth-0"))
    following = asyncio.create_task(conditions.follow())
    await pods.taken.wait()
    following.cancel()

    said = "conditions not shown pod=berth/berth-0 err=403 Forbidden: not today"
    assert [said] == caplog.messages
    assert [("berth", "berth-0", {"status": {"conditions": [LEADING]}})] == pods.patches
