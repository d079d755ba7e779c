"""From a chosen node to a binding cycle: assume, Reserve, Permit, and leave the rest to run beside others.

Called by: the scheduling cycle of a single pod, and that of a pod group for each of its pods.

Source: pkg/scheduler/schedule_one.go assumeAndReserve, prepareForBindingCycle (Kubernetes v1.36).
"""

import msgspec

from berth.binding.binding_cycle import BindingCycle, PodBinding, rejected_on
from berth.cache.cache import Cache
from berth.cache.errors import PodStateError
from berth.cycle.attempts import Attempts
from berth.cycle.failure import FailureHandler
from berth.framework.attempts.attempt import Attempt
from berth.framework.clock import nanoseconds
from berth.framework.interface import CLEAR_NOMINATION
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import Code, Status, failed
from berth.objects.pods.pod import Pod
from berth.queue.pools.nominator import Nominator

BINDING_CYCLE = "binding cycle"


class AssumeAndBind(msgspec.Struct, frozen=True):
    """Commits one decision after another."""

    cache: Cache
    nominator: Nominator
    binding: BindingCycle
    failure: FailureHandler
    attempts: Attempts

    async def commit(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, node_name: str, cycle: int
    ) -> None:
        """Assume the pod on the node, hold what it needs, and start binding.

        A sidecar's Reserve is sent before this returns and answered later: the next cycle sees the pod as
        assumed, and its calls reach the sidecar after Reserve (docs/decisions/0004-one-stream.md).
        """
        assumed = self._assumed(attempt, info, node_name, cycle)
        if assumed is None:
            return
        if framework.reserves_remotely:
            work = self._hold_and_bind(framework, attempt, info, assumed, cycle)
            self.binding.background.spawn(work, f"binding of {assumed.key}")
            # The task runs up to its first call, and the next cycle's calls come after it.
            await self.binding.background.breathe()
        elif await self._held(framework, attempt, info, assumed, cycle):
            self._bind(framework, attempt, info, assumed)

    async def commit_in_turn(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, node_name: str, cycle: int
    ) -> None:
        """The same, with Reserve and Permit answered before this returns, by sidecars, too."""
        assumed = self._assumed(attempt, info, node_name, cycle)
        if assumed is not None and await self._held(framework, attempt, info, assumed, cycle):
            self._bind(framework, attempt, info, assumed)

    def _assumed(self, attempt: Attempt, info: QueuedPodInfo, node_name: str, cycle: int) -> Pod | None:
        record = attempt.record
        record.node_name = node_name
        assumed = info.pod.placed_on(node_name)
        try:
            self.cache.assume_pod(assumed)
        except PodStateError as error:
            status = failed(error)
            record.end(cycle)
            self.failure.handle(info, status, CLEAR_NOMINATION)
            self.attempts.end(record, status)
            return None
        self.nominator.delete(info.pod)
        return assumed

    async def _hold_and_bind(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod, cycle: int
    ) -> None:
        if await self._held(framework, attempt, info, assumed, cycle):
            self._bind(framework, attempt, info, assumed)

    async def _held(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod, cycle: int
    ) -> bool:
        """Reserve and Permit; whether the pod may be bound, everything undone where it may not."""
        record = attempt.record
        status = await self._reserve_and_permit(framework, attempt, assumed)
        record.end(cycle, status)
        if not status.ok:
            await self.binding.undo(framework, attempt, info, assumed, status)
            self.attempts.end(record, status)
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
                self.binding.waiting_pods.add(assumed, permit.timeouts_seconds, permit.messages)
                return Status()
        return rejected_on(node_name, status) if status.rejected else status

    def _bind(self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod) -> None:
        record = attempt.record
        cycle = record.begin_phase(BINDING_CYCLE)

        def ended(status: Status) -> None:
            record.end(cycle, status)
            self.attempts.end(record, status)

        self.binding.begin(PodBinding(framework, attempt, info, assumed, ended))
