"""The core's events about pods, written by the client in the name of the pod's profile."""

from berth.client.events import EventRecorder, Reference
from berth.objects.pod import Pod


class PodEvents:
    """Implements berth.framework.handle.EventRecorder."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def event(
        self, pod: Pod, kind: str, reason: str, action: str, note: str, *, related: Pod | None = None
    ) -> None:
        """Record an event of that type (Normal, Warning) regarding the pod, done for the related one."""
        self._recorder.event(
            reference(pod),
            None if related is None else reference(related),
            controller=(related or pod).spec.scheduler_name,
            type=kind,
            reason=reason,
            action=action,
            note=note,
        )


def reference(pod: Pod) -> Reference:
    """The pod as an event names it."""
    return Reference("v1", "Pod", pod.namespace, pod.name, pod.uid, pod.metadata.resource_version)
