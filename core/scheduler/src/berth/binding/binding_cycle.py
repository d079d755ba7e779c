"""The binding cycle: from an assumed pod to a bound one, or back to the queue.

    pre-flight ──┬──────────────── no PreBind work, no waiting ────────────────┬─► Bind -> PostBind
                 └─► nomination -> wait for Permit -> PreBind: a task of its own ┘

Many run at once, each beside the scheduling cycles of other pods. A binding of the upper way is a request and
a callback; it gets a task where it fails, or where there are PostBind plugins.

Source: pkg/scheduler/schedule_one.go bindingCycle, handleBindingCycleError (Kubernetes v1.36).
"""

import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from berth.binding.pods_in_pre_bind import PodInPreBind, PodsInPreBind
from berth.binding.waiting_pods import WaitingPod, WaitingPods
from berth.cache.cache import Cache
from berth.cache.errors import PodStateError
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.clock import SYSTEM_CLOCK, Clock
from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.handle import ApiWriter, EventRecorder
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo, PreBindPlugin
from berth.framework.pod_conditions import unscheduled
from berth.framework.ports.background import Background, Promise
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, PluginError, Status, failed
from berth.objects.pods.pod import Pod
from berth.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)

ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)

OPERATION = "binding"
REASON_WAITING = "WaitingInPreBind"

PRE_BIND_MOMENT_SECONDS = 2.0
"""A pod whose PreBind plugins take longer has an event and a condition that say whom it waits for."""

OnFailure = Callable[[QueuedPodInfo, Status, NominatingInfo | None], None]


class PodBinding(NamedTuple):
    """One pod on its way from assumed to bound; `ended` is called once, with what came of it."""

    framework: Framework
    attempt: Attempt
    info: QueuedPodInfo
    assumed: Pod
    ended: Callable[[Status], None]


class BindingCycle(msgspec.Struct, frozen=True):
    """Runs the binding cycle of one attempt after another, all on the same parts.

    `at_work` counts the cycles that run. `announces` (NominatedNodeNameForExpectation) says whether PreBind
    plugins are asked beforehand what they have to do, and long waits reported in the pod's status.
    """

    cache: Cache
    queue: SchedulingQueue
    waiting_pods: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    writer: ApiWriter
    recorder: EventRecorder
    background: Background
    on_failure: OnFailure
    at_work: Counter[str] = msgspec.field(default_factory=Counter)
    announces: bool = True
    clock: Clock = SYSTEM_CLOCK

    def begin(self, binding: PodBinding) -> None:
        """Bind the assumed pod to the node it names; what fails is undone and goes back to the queue."""
        self.at_work[OPERATION] += 1
        framework, attempt, _, assumed, _ = binding
        pre_flight = SUCCESS
        if self.announces:
            pre_flight = framework.run_pre_bind_pre_flight(attempt.state, assumed, assumed.node_name)
        binder = framework.direct_binder
        if binder is None or not pre_flight.skip or self.waiting_pods.get(assumed.uid) is not None:
            self._spawn(binding, self._run(binding, pre_flight))
            return
        self.queue.done(assumed.uid)
        framework.begin_bind(binder, attempt.state, assumed, attempt.record, partial(self._bound, binding))

    def _spawn(self, binding: PodBinding, work: Coroutine[Any, Any, None]) -> None:
        self.background.spawn(work, f"binding of {binding.assumed.key}")

    def _bound(self, binding: PodBinding, status: Status) -> None:
        """End the binding, at once where nothing has to be waited for."""
        if not status.ok or binding.framework.wants_post_bind(binding.attempt.state):
            self._spawn(binding, self._conclude(binding, status))
            return
        record = binding.attempt.record
        self._tell(binding)
        record.end(record.begin("PostBind"), SUCCESS)
        self.activate(binding.attempt)
        self.at_work[OPERATION] -= 1
        binding.ended(status)

    async def _run(self, binding: PodBinding, pre_flight: Status) -> None:
        try:
            status = await self._until_bound(binding, pre_flight)
        except Exception as error:
            log.exception("binding cycle broke off pod=%s", binding.assumed.key)
            status = failed(error)
        await self._conclude(binding, status)

    async def _conclude(self, binding: PodBinding, status: Status) -> None:
        framework, attempt, info, assumed, ended = binding
        try:
            if status.ok:
                self._tell(binding)
                await framework.run_post_bind(attempt.state, assumed, assumed.node_name, attempt.record)
                self.activate(attempt)
            else:
                await self._undo_and_tell(framework, attempt, info, assumed, status)
        finally:
            self.at_work[OPERATION] -= 1
        ended(status)

    def _tell(self, binding: PodBinding) -> None:
        assumed = binding.assumed
        note = f"Successfully assigned {assumed.key} to {assumed.node_name}"
        self.recorder.event(binding.info.pod, "Normal", "Scheduled", "Binding", note)

    def activate(self, attempt: Attempt) -> None:
        """Bring back the pods that plugins asked for in this attempt."""
        pods = attempt.state.pods_to_activate
        if pods:
            self.queue.activate(list(pods.values()))
            pods.clear()

    async def undo(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod, status: Status
    ) -> None:
        """Let go of everything held for a pod that got no further than Permit; failure handling has it then.

        The pod was not yet announced on its node, so its removal is not announced either.
        """
        await self._release(framework, attempt, assumed)
        self.on_failure(info, status, CLEAR_NOMINATION)

    async def _release(self, framework: Framework, attempt: Attempt, assumed: Pod) -> bool:
        """Whether the cache gave the pod up; it does not where the binding was observed after all."""
        await framework.run_unreserve(attempt.state, assumed, assumed.node_name, attempt.record)
        try:
            self.cache.forget_pod(assumed)
        except PodStateError as error:
            log.warning("assumed pod not forgotten pod=%s err=%s", assumed.key, error)
            return False
        return True

    async def _undo_and_tell(
        self, framework: Framework, attempt: Attempt, info: QueuedPodInfo, assumed: Pod, status: Status
    ) -> None:
        """Undo, and let other pods try for what became free; a rejected pod itself has nothing to gain."""
        released = await self._release(framework, attempt, assumed)
        if released and not status.rejected:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None)
        self.on_failure(info, status, CLEAR_NOMINATION)
        if released and status.rejected:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None, lambda pod: pod.uid != assumed.uid)

    async def _until_bound(self, binding: PodBinding, pre_flight: Status) -> Status:
        framework, attempt, _, assumed, _ = binding
        node_name = assumed.node_name
        if not (pre_flight.ok or pre_flight.skip):
            return pre_flight
        if self.announces and (pre_flight.ok or self.waiting_pods.get(assumed.uid)):
            await self._nominate(assumed, node_name)
        status = await self._wait_on_permit(attempt, assumed)
        if not status.ok:
            return status
        self.queue.done(assumed.uid)
        if pre_flight.ok:
            return await self._pre_bind_and_bind(framework, attempt, assumed)
        return await framework.run_bind(attempt.state, assumed, node_name, attempt.record)

    async def _pre_bind_and_bind(self, framework: Framework, attempt: Attempt, assumed: Pod) -> Status:
        """Until PreBind is over, a more important pod may stop the binding."""
        stoppable = self.pods_in_pre_bind.add(assumed.uid)
        try:
            pre_bind = self._pre_bind(framework, attempt, assumed, stoppable)
            status = await self.background.unless(stoppable.cancelled, pre_bind)
            # A condition that is written later than the binding would stay on a pod that is bound.
            if stoppable.shown is not None:
                await stoppable.shown
            if status is not None and not status.ok and not stoppable.message:
                return status
            if not stoppable.mark_prebound():
                return failed(stoppable.message)
            return await framework.run_bind(attempt.state, assumed, assumed.node_name, attempt.record)
        finally:
            self.pods_in_pre_bind.remove(assumed.uid)

    async def _nominate(self, assumed: Pod, node_name: str) -> None:
        try:
            await self.writer.patch_pod_status(assumed, None, node_name)
        except Exception as error:  # noqa: BLE001 - the nomination is a hint to others; binding goes on without
            log.warning("nomination not written pod=%s err=%s", assumed.key, error)

    async def _wait_on_permit(self, attempt: Attempt, assumed: Pod) -> Status:
        waiting = self.waiting_pods.get(assumed.uid)
        if waiting is None:
            return SUCCESS
        self._tell_permit(assumed, waiting)
        point = attempt.record.begin("WaitOnPermit")
        status = await self.waiting_pods.wait(assumed.uid) or SUCCESS
        attempt.record.end(point, status)
        if status.rejected:
            return rejected_on(assumed.node_name, status)
        if not status.ok:
            text = f"waiting on permit for pod: {status.message}"
            return failed(PluginError(text)).from_plugin(status.plugin)
        return status

    async def _pre_bind(
        self, framework: Framework, attempt: Attempt, assumed: Pod, under_way: PodInPreBind
    ) -> Status:
        point = attempt.record.begin("PreBind")
        status = SUCCESS
        long_wait = self.background.call_later(
            PRE_BIND_MOMENT_SECONDS, partial(self._tell_pre_bind, assumed, under_way)
        )
        try:
            for group in framework.pre_bind_groups(attempt.state):
                runs = [
                    self._pre_bind_one(framework, plugin, attempt, assumed, under_way) for plugin in group
                ]
                status = await self._side_by_side(runs)
                if not status.ok:
                    break
        finally:
            long_wait.cancel()
        attempt.record.end(point, status)
        return status

    async def _pre_bind_one(
        self,
        framework: Framework,
        plugin: PreBindPlugin,
        attempt: Attempt,
        assumed: Pod,
        under_way: PodInPreBind,
    ) -> Status:
        under_way.plugins.append(plugin.name)
        try:
            return await framework.run_pre_bind_one(plugin, attempt.state, assumed, assumed.node_name)
        finally:
            under_way.plugins.remove(plugin.name)

    def _tell_pre_bind(self, assumed: Pod, under_way: PodInPreBind) -> None:
        if under_way.plugins:
            plugins = ", ".join(under_way.plugins)
            note = f"Node {assumed.node_name} was chosen; waiting in PreBind for {plugins}"
            self.recorder.event(assumed, "Normal", REASON_WAITING, "Binding", note)
            under_way.shown = self.background.outcome()
            self.background.spawn(
                self._show_pre_bind(assumed, note, under_way.shown), f"status of {assumed.key}"
            )

    async def _show_pre_bind(self, assumed: Pod, note: str, shown: Promise) -> None:
        """Write what the pod waits for into its condition, which the binding, or a failure, replaces."""
        condition = unscheduled(assumed, REASON_WAITING, note, self.clock.wall())
        try:
            await self.writer.patch_pod_status(assumed, condition, None)
        except Exception as error:  # noqa: BLE001 - the event has said it; the binding goes on
            log.warning("status not written pod=%s err=%s", assumed.key, error)
        finally:
            shown.set(None)

    def _tell_permit(self, assumed: Pod, waiting: WaitingPod) -> None:
        plugins = waiting.pending_plugins()
        if plugins:
            each = [f"{plugin} ({waiting.messages.get(plugin) or 'no reason given'})" for plugin in plugins]
            note = f"Node {assumed.node_name} was chosen; waiting at Permit for {', '.join(each)}"
            self.recorder.event(assumed, "Normal", "WaitingAtPermit", "Binding", note)

    async def _side_by_side(self, runs: Sequence[Coroutine[Any, Any, Status]]) -> Status:
        """The first failure, upon which the others are cancelled; success where all succeed."""
        if len(runs) == 1:
            return await runs[0]
        failed_one = self.background.outcome()
        failures: list[Status] = []

        async def watched(run: Coroutine[Any, Any, Status]) -> None:
            status = await self.background.unless(failed_one, run)
            if status is not None and not status.ok:
                failures.append(status)
                failed_one.set(status)

        await self.background.all_of([watched(run) for run in runs])
        return failures[0] if failures else SUCCESS


def rejected_on(node_name: str, status: Status) -> Status:
    """A Reserve or Permit rejection as users read it: no fit on the one node that was chosen."""
    diagnosis = Diagnosis([node_name], single={0: status})
    diagnosis.blame(status)
    return Status(status.code, plugin=status.plugin, error=FitError(diagnosis, 1))
