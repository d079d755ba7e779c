"""Popped pods that need no scheduling any more.

Source: pkg/scheduler/schedule_one.go skipPodSchedule (Kubernetes v1.36).
"""

from berth.cache.cache import Cache
from berth.framework.handle import EventRecorder
from berth.objects.pods.pod import Pod


def skipped(pod: Pod, cache: Cache, recorder: EventRecorder) -> bool:
    """Whether the pod is on its way out, which its owner learns by an event, or on its way to a node."""
    if pod.terminating:
        note = f"skip schedule deleting pod: {pod.key}"
        recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
        return True
    return cache.is_assumed(pod.uid)
