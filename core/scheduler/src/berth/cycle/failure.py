"""What happens to a pod whose attempt failed: back to the queue, nomination, event, condition.

Source: pkg/scheduler/schedule_one.go handleSchedulingFailure, updatePod (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from berth.cycle.budgets import CycleBudgets
from berth.framework.attempts.diagnosis import FitError, GroupFitError
from berth.framework.clock import Clock
from berth.framework.handle import ApiWriter, EventRecorder, PodGoneError
from berth.framework.interface import KEEP_NOMINATION, NominatingInfo, NominatingMode
from berth.framework.pacing import Backoff
from berth.framework.pod_conditions import changes, unscheduled
from berth.framework.ports.background import Background
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import Status
from berth.objects.pods.pod import Pod, PodCondition
from berth.queue.errors import AlreadyQueuedError
from berth.queue.scheduling_queue import SchedulingQueue

log = logging.getLogger(__name__)

REASON_UNSCHEDULABLE = "Unschedulable"
REASON_SCHEDULER_ERROR = "SchedulerError"

STATUS_BACKOFF = Backoff(1.0, longest=60.0)
"""Seconds until a status that could not be written is written again."""
MAX_TRIES = 10
"""Five minutes: by then the pod is tried again, and what no server takes is not sent for ever."""


class _StatusUpdate(NamedTuple):
    """What is to be written about an attempt, and how often that was tried."""

    attempts: int
    condition: PodCondition
    nominated_node_name: str | None
    tries: int = 1


class FailureHandler(msgspec.Struct, frozen=True):
    """Puts failed pods back and informs users why.

    `lookup` finds the pod as the watch last showed it, by namespace and name.
    """

    queue: SchedulingQueue
    lookup: Callable[[str, str], Pod | None]
    writer: ApiWriter
    recorder: EventRecorder
    background: Background
    clock: Clock
    budgets: CycleBudgets

    def handle(self, info: QueuedPodInfo, status: Status, nominating: NominatingInfo | None) -> None:
        """Give the pod back to the queue, then write its nomination, event and condition."""
        self.budgets.hold(info)
        info.unschedulable_plugins, info.pending_plugins = set(), set()
        info.gating_plugin, info.gating_message, info.gating_plugin_events = "", "", ()
        if isinstance(status.error, FitError):
            info.unschedulable_plugins = set(status.error.diagnosis.unschedulable_plugins)
            info.pending_plugins = set(status.error.diagnosis.pending_plugins)
        elif isinstance(status.error, GroupFitError):
            info.unschedulable_plugins = set(status.error.plugins)
        if not self._requeue(info):
            return
        self.queue.nominator.add(info.pod, nominating)
        if not status.rejected and status.error is None:
            # As in kube-scheduler nothing is written to the pod: no plugin says why.
            log.warning("pod goes back without a reason pod=%s code=%s", info.pod.key, status.code)
            return
        self._tell(info, status, nominating or KEEP_NOMINATION)

    def _requeue(self, info: QueuedPodInfo) -> bool:
        """Whether the pod still exists and was not replaced, so that its failure is reported."""
        pod, current = info.pod, self.lookup(info.pod.namespace, info.pod.name)
        if current is not None and current.uid != pod.uid:
            self.queue.done(pod.uid)
            return False
        if current is None or current.node_name:
            self.queue.done(pod.uid)
            return True
        info.pod = current
        try:
            self.queue.add_unschedulable_if_not_present(info)
        except AlreadyQueuedError as error:
            log.warning("pod not put back pod=%s err=%s", pod.key, error)
        return True

    def _tell(self, info: QueuedPodInfo, status: Status, nominating: NominatingInfo) -> None:
        pod = info.pod
        self.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", status.message)
        reason = REASON_UNSCHEDULABLE if status.rejected else REASON_SCHEDULER_ERROR
        condition = unscheduled(pod, reason, status.message, self.clock.wall())
        if not status.rejected and changes(pod, condition):
            # Once for a pod that fails again and again in the same words.
            log.warning("attempt failed pod=%s err=%s", pod.key, status.message)
        override = nominating.mode is NominatingMode.OVERRIDE
        name = nominating.node_name if override else None
        self._write(pod, _StatusUpdate(info.attempts, condition, name))

    def _write(self, pod: Pod, saying: "_StatusUpdate") -> None:
        self.background.spawn(self._patch(pod, saying), f"status of {pod.key}")

    async def _patch(self, pod: Pod, saying: "_StatusUpdate") -> None:
        try:
            await self.writer.patch_pod_status(pod, saying.condition, saying.nominated_node_name)
        except PodGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the pod is already back in the queue; only its status is stale
            level = logging.WARNING if saying.tries == 1 else logging.DEBUG
            log.log(level, "status not written pod=%s err=%s", pod.key, error)
            if saying.tries < MAX_TRIES:
                later = saying._replace(tries=saying.tries + 1)
                pause = STATUS_BACKOFF.pause(saying.tries)
                self.background.call_later(pause, partial(self._write_again, pod, later))

    def _write_again(self, pod: Pod, saying: "_StatusUpdate") -> None:
        """Unless the pod is tried again meanwhile: a newer attempt has its own to say."""
        record = self.queue.record(pod.namespace, pod.name)
        if record is None or record.pod.uid != pod.uid or record.attempts != saying.attempts:
            return
        if saying.nominated_node_name not in (None, self.queue.nominator.node_of(pod.uid)):
            saying = saying._replace(nominated_node_name=None)
        self._write(record.pod, saying)
