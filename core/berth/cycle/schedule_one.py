"""One pod after another: pop, decide, assume, reserve, permit, and leave the rest to a binding cycle.

    queue.pop -> snapshot -> schedule_pod -> assume -> Reserve -> Permit -> (binding cycle, concurrently)
                                 |             |          |         |
                                 +-------------+----------+---------+--> failure: back to the queue

Scheduling cycles never overlap each other, but for the answers of plugins in other processes to Reserve and
Permit (docs/decisions/0004-one-stream.md). Source: spec/core.md 4.1, 4.2, 5.1-5.3.
"""

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from berth.binding.binding_cycle import BindingCycle, rejected_on
from berth.cache.cache import Cache
from berth.cache.errors import PodStateError
from berth.cycle.failure import FailureHandler
from berth.cycle.schedule_pod import Decision, SchedulePod
from berth.framework.attempt import Attempt
from berth.framework.clock import Clock
from berth.framework.cycle_record import CycleRecord, nanoseconds
from berth.framework.cycle_state import CycleState
from berth.framework.interface import CLEAR_NOMINATION
from berth.framework.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import Code, Status, failed
from berth.objects.pod import Pod
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8

SCHEDULING_CYCLE = "scheduling cycle"
BINDING_CYCLE = "binding cycle"


@dataclass(frozen=True, slots=True)
class ScheduleOne:
    """The scheduling loop's body. `on_record` is told of every attempt once it has ended."""

    frameworks: Mapping[str, Framework]
    queue: SchedulingQueue
    cache: Cache
    snapshot: Snapshot
    algorithm: SchedulePod
    binding: BindingCycle
    failure: FailureHandler
    clock: Clock
    chance: random.Random
    on_record: Callable[[CycleRecord], None]

    async def schedule(self, info: QueuedPodInfo) -> None:
        """Run the scheduling cycle of a popped pod and start its binding cycle."""
        framework = self.frameworks.get(info.pod.spec.scheduler_name)
        if framework is None or self._skip(info.pod):
            if framework is None:
                log.error("no profile pod=%s profile=%s", info.pod.key, info.pod.spec.scheduler_name)
            self.queue.done(info.pod.uid)
            return
        record = self._new_record(info, framework.profile_name)
        state = CycleState()
        state.write(CycleRecord, record)
        attempt = Attempt(info.pod, self.snapshot, state, record)
        self.cache.update_snapshot(self.snapshot)
        cycle = record.begin_phase(SCHEDULING_CYCLE)
        decision = await self._decide(framework, attempt)
        if not decision.status.ok:
            record.end(cycle, decision.status)
            self._failed(info, record, decision)
            return
        await self._commit(framework, attempt, info, decision.node_name, cycle)

    async def _decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """The algorithm's decision; whatever breaks in it costs this pod its attempt and nobody else."""
        try:
            return await self.algorithm.decide(framework, attempt)
        except Exception as error:
            log.exception("scheduling cycle broke off pod=%s", attempt.pod.key)
            return Decision(failed(error), nominating_info=CLEAR_NOMINATION)

    def _skip(self, pod: Pod) -> bool:
        if pod.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.binding.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self.cache.is_assumed(pod.uid)

    async def _commit(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, node_name: str, cycle: int
    ) -> None:
        """Assume the pod on the node, hold what it needs, and start binding."""
        record = attempt.record
        record.node_name = node_name
        assumed = info.pod.placed_on(node_name)
        try:
            self.cache.assume_pod(assumed)
        except PodStateError as error:
            record.end(cycle)
            self._failed(info, record, Decision(failed(error), nominating_info=CLEAR_NOMINATION))
            return
        self.queue.nominator.delete(info.pod)
        name = f"binding of {assumed.key}"
        if framework.holds_elsewhere:
            self.binding.background.spawn(self._hold_and_bind(framework, attempt, info, assumed, cycle), name)
        elif await self._held(framework, attempt, info, assumed, cycle):
            self.binding.background.spawn(self._bind(framework, attempt, info, assumed), name)

    async def _hold_and_bind(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod, cycle: int
    ) -> None:
        """Go on while the next cycle begins: it sees the pod as assumed, and its calls come after ours."""
        if await self._held(framework, attempt, info, assumed, cycle):
            await self._bind(framework, attempt, info, assumed)

    async def _held(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod, cycle: int
    ) -> bool:
        """Reserve and Permit; whether the pod may be bound, everything undone where it may not."""
        record = attempt.record
        status = await self._reserve_and_permit(framework, attempt, assumed)
        record.end(cycle, status)
        if not status.ok:
            await self.binding.undo(framework, attempt, info, assumed, status)
            self._finish(record, status)
            return False
        self.binding.activate(attempt)
        record.cycle_ended_ns = nanoseconds()
        return True

    async def _reserve_and_permit(self, framework: Framework, attempt: Attempt, assumed: Pod) -> Status:
        node_name, record = assumed.node_name, attempt.record
        status = await framework.run_reserve(attempt.state, assumed, node_name, record)
        if status.ok:
            permit = await framework.run_permit(attempt.state, assumed, node_name, record)
            status = permit.status
            if status.code is Code.WAIT:
                self.binding.waiting_pods.add(assumed, permit.timeouts_seconds)
                return Status()
        return rejected_on(node_name, status) if status.rejected else status

    async def _bind(self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod) -> None:
        cycle = attempt.record.begin_phase(BINDING_CYCLE)
        status = await self.binding.run(framework, attempt, info, assumed)
        attempt.record.end(cycle, status)
        self._finish(attempt.record, status)

    def _failed(self, info: QueuedPodInfo, record: CycleRecord, decision: Decision) -> None:
        self.failure.handle(info, decision.status, decision.nominating_info)
        self._finish(record, decision.status)

    def _finish(self, record: CycleRecord, status: Status) -> None:
        record.status = status
        record.result = "scheduled" if status.ok else "unschedulable" if status.rejected else "error"
        record.ended_ns = nanoseconds()
        self.on_record(record)

    def _new_record(self, info: QueuedPodInfo, profile: str) -> CycleRecord:
        now = nanoseconds()
        offset = int(self.clock.now() * 1e9) - now
        first = info.initial_attempt_timestamp or info.timestamp
        return CycleRecord(
            pod=info.pod,
            profile=profile,
            attempt=info.attempts,
            trace_id=self.chance.randbytes(TRACE_ID_BYTES),
            root_span_id=self.chance.randbytes(SPAN_ID_BYTES),
            wall_offset_ns=offset,
            enqueued_ns=int(info.timestamp * 1e9) - offset,
            dequeued_ns=now,
            first_enqueued_ns=int(first * 1e9) - offset,
        )
