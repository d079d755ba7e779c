"""One pod after another: pop, decide, assume, reserve, permit, and leave the rest to a binding cycle.

    queue.pop -> snapshot -> schedule_pod -> assume -> Reserve -> Permit -> (binding cycle, concurrently)
                                 |             |          |         |
                                 +-------------+----------+---------+--> failure: back to the queue

Scheduling cycles never overlap each other, but for the answers of sidecars to Reserve and
Permit (docs/decisions/0004-one-stream.md). Source: pkg/scheduler/schedule_one.go ScheduleOne, schedulingCycle
(Kubernetes v1.36).
"""

import logging
from collections.abc import Mapping
from typing import Protocol

import msgspec

from berth.cache.cache import Cache
from berth.cycle.assume_and_bind import AssumeAndBind
from berth.cycle.attempts import Attempts
from berth.cycle.failure import FailureHandler
from berth.cycle.schedule_pod import SchedulePod, guarded_decision
from berth.cycle.skip_check import skipped
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.pod_group_states import GroupKey, group_of
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

SCHEDULING_CYCLE = "scheduling cycle"


class GroupScheduler(Protocol):
    """Schedules pods together with their group, on a floor above."""

    async def schedule(self, popped: QueuedPodInfo, key: GroupKey) -> None:
        """Run the cycle of the popped group, or of the popped pod's."""


class ScheduleOne(msgspec.Struct, frozen=True):
    """The scheduling loop's body; without `groups` every pod is scheduled alone."""

    frameworks: Mapping[str, Framework]
    queue: SchedulingQueue
    cache: Cache
    snapshot: Snapshot
    algorithm: SchedulePod
    commit: AssumeAndBind
    failure: FailureHandler
    attempts: Attempts
    groups: GroupScheduler | None = None

    async def schedule(self, info: QueuedPodInfo) -> None:
        """Run the scheduling cycle of a popped pod and start its binding cycle."""
        if self.groups is not None and (key := group_of(info.pod)) is not None:
            await self.groups.schedule(info, key)
            return
        framework = self.frameworks.get(info.pod.spec.scheduler_name)
        if framework is None or skipped(info.pod, self.cache, self.failure.recorder):
            if framework is None:
                log.error("no profile pod=%s profile=%s", info.pod.key, info.pod.spec.scheduler_name)
            self.queue.done(info.pod.uid)
            return
        record = self.attempts.begin(info, framework.profile_name)
        self.cache.update_snapshot(self.snapshot)
        meter = self.failure.budgets.begin(info, len(self.snapshot))
        await meter.timed(self._cycle(framework, info, record, meter))
        self.failure.budgets.settle(info)

    async def _cycle(
        self, framework: Framework, info: QueuedPodInfo, record: CycleRecord, meter: CycleMeter
    ) -> None:
        state = CycleState(meter)
        state.write(CycleRecord, record)
        attempt = Attempt(info.pod, self.snapshot, state, record)
        cycle = record.begin_phase(SCHEDULING_CYCLE)
        decision = await guarded_decision(self.algorithm, framework, attempt)
        if not decision.status.ok:
            record.end(cycle, decision.status)
            self.failure.handle(info, decision.status, decision.nominating_info)
            self.attempts.end(record, decision.status)
            return
        await self.commit.commit(framework, attempt, info, decision.node_name, cycle)
