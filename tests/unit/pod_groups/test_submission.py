"""Handing in a group's result: everything else has its turn between two of its pods."""

from math import inf

import msgspec

from berth.framework.attempts.cycle_budget import TURN_SECONDS, CpuTime, CycleMeter
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import unschedulable
from berth.pod_groups.group_result import GroupResult
from berth.pod_groups.members import Member
from berth.pod_groups.submission import Submission
from berth.testing.builders import make_pod

PODS = 50
POD_SECONDS = TURN_SECONDS / 5


class Working(msgspec.Struct):
    """A clock that stands still, but for the failure of each pod: it takes so much CPU."""

    seconds: float = 0.0
    failed: int = 0

    def monotonic(self):
        return self.seconds

    cpu = monotonic

    def handle(self, info, status, nominating):
        del info, status, nominating
        self.failed += 1
        self.seconds += POD_SECONDS

    def end(self, record, status):
        pass


async def test_everything_else_has_its_turn_between_pods_of_a_large_group():
    """Thousands of pods without a node took a second at once."""
    work, failed_before = Working(), []
    pods = [make_pod(f"m{i}") for i in range(PODS)]
    members = [Member(QueuedPodInfo(pod, 0.0), CycleRecord(pod, "p", 1, b"", b"", 0, 0, 0)) for pod in pods]

    async def breathe():
        failed_before.append(work.failed)

    turns = CycleMeter(inf, CpuTime(work), breathe)
    submission = Submission(commit=None, failure=work, attempts=work)
    await turns.timed(submission.submit(None, members, GroupResult(unschedulable("no room")), turns))

    assert work.failed == PODS
    assert max(after - before for before, after in zip([0, *failed_before], failed_before, strict=False)) <= 6
    assert PODS - failed_before[-1] <= 6
