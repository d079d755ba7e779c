"""The core's events about pods, written by the client in the name of a profile."""

from berth.client.events import EventRecorder, Reference
from berth.objects.pod import Pod
from berth.objects.pod_groups import PodGroup

GROUP_API_VERSION = "scheduling.k8s.io/v1alpha2"


class PodEvents:
    """Implements berth.framework.handle.EventRecorder."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def event(
        self,
        pod: Pod,
        kind: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Pod | PodGroup | None = None,
        controller: str = "",
    ) -> None:
        """Record an event of that type (Normal, Warning) regarding the pod, done for the related one."""
        self._recorder.event(
            reference(pod),
            None if related is None else reference(related),
            controller=controller or pod.spec.scheduler_name,
            type=kind,
            reason=reason,
            action=action,
            note=note,
        )


def reference(obj: Pod | PodGroup) -> Reference:
    """The object as an event names it."""
    version, kind = (GROUP_API_VERSION, "PodGroup") if isinstance(obj, PodGroup) else ("v1", "Pod")
    return Reference(version, kind, obj.namespace, obj.name, obj.uid, obj.metadata.resource_version)
