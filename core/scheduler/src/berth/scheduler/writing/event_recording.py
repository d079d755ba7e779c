"""The core's events about pods, written by the client in the name of a profile."""

from berth.client.events import EventRecorder, Reference
from berth.client.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from berth.framework.mirrors.group_trees import AnyGroup
from berth.objects.pod_groups import CompositePodGroup, PodGroup
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
        related: Pod | AnyGroup | None = None,
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

    def _reference(self, obj: Pod | AnyGroup) -> Reference:
        """The object as an event names it."""
        kind, version = type(obj).__name__, "v1"
        if isinstance(obj, PodGroup):
            version = self._group_api_version
        elif isinstance(obj, CompositePodGroup):
            version = COMPOSITE_POD_GROUPS.api_version
        return Reference(version, kind, obj.namespace, obj.name, obj.uid, obj.metadata.resource_version)
