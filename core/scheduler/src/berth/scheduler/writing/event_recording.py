"""The core's events about pods, written by the client in the name of a profile."""

from berth.client.events import EventRecorder, Reference
from berth.client.resources import POD_GROUPS
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod


class PodEvents:
    """Implements berth.framework.handle.EventRecorder."""

    def __init__(self, recorder: EventRecorder, group_api_version: str = POD_GROUPS.api_version) -> None:
        self._recorder = recorder
        self._group_api_version = group_api_version

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
            self._reference(pod),
            None if related is None else self._reference(related),
            controller=controller or pod.spec.scheduler_name,
            type=kind,
            reason=reason,
            action=action,
            note=note,
        )

    def _reference(self, obj: Pod | PodGroup) -> Reference:
        """The object as an event names it."""
        version, kind = (self._group_api_version, "PodGroup") if isinstance(obj, PodGroup) else ("v1", "Pod")
        return Reference(version, kind, obj.namespace, obj.name, obj.uid, obj.metadata.resource_version)
