"""The pods of a group that are tried together, all in flight from here on.

Source: pkg/scheduler/schedule_one_podgroup.go podGroupInfoForPod (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import PluginError
from berth.objects.pods.pod import Pod
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.pod_group_states import PodGroupState


class Member(msgspec.Struct, frozen=True):
    """One pod of the group, popped, and the record of this attempt at it."""

    info: QueuedPodInfo
    record: CycleRecord

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self.info.pod


def popped_with(queue: SchedulingQueue, first: QueuedPodInfo, group: PodGroupState) -> list[QueuedPodInfo]:
    """The popped pod and all others of its group that wait ungated, in the order they are tried in."""
    waiting = sorted(group.unscheduled, key=lambda pod: pod.name)
    others = (queue.pop_specific(pod) for pod in waiting if pod.uid != first.pod.uid)
    return sorted((first, *(info for info in others if info is not None)), key=turn_of)


def turn_of(info: QueuedPodInfo) -> tuple[int, float]:
    """The key by which a group's pods are tried; among equals the first popped one, then by name."""
    return -info.pod.priority, info.initial_attempt_timestamp or 0.0


def profile_of(infos: Iterable[QueuedPodInfo], frameworks: Mapping[str, Framework]) -> Framework:
    """The profile that all of them name.

    Raises: PluginError where they name several, or one that there is none of.
    """
    names = list(dict.fromkeys(info.pod.spec.scheduler_name for info in infos))
    if len(names) > 1:
        raise PluginError(
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            f'got: "{names[0]}" and "{names[1]}"'
        )
    if names[0] not in frameworks:
        raise PluginError(f'profile not found for scheduler name "{names[0]}"')
    return frameworks[names[0]]
