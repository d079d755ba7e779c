"""Pods, as far as scheduling reads them.

`None` stands for an absent field wherever upstream distinguishes absent from empty.
"""

from datetime import datetime
from typing import Any

import msgspec

from berth.objects.api_object import ApiObject, Int64, ObjectMeta, ShortText, TypedObject
from berth.objects.pods.pod_spec import PodSpec, ResourceAmounts, Resources
from berth.objects.pods.pod_template import PodTemplate, interned

POD_SCHEDULED = "PodScheduled"
"""The condition in which a scheduler says whether the pod has a node, and why not."""


class PodCondition(ApiObject, frozen=True):
    """One condition of the pod's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    observed_generation: Int64 | None = None


class ContainerStatus(ApiObject, frozen=True):
    """What a container got; differs from its spec while a resize is under way."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: ResourceAmounts | None = None


class PodStatus(ApiObject, frozen=True):
    """Where the pod stands."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: ShortText = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: Resources | None = None
    allocated_resources: ResourceAmounts | None = None
    resource_claim_statuses: tuple[dict[str, Any], ...] = ()
    extended_resource_claim_status: dict[str, Any] | None = None


NO_METADATA, NO_SPEC, NO_STATUS = ObjectMeta(), PodSpec(), PodStatus()


class PodObject(TypedObject, frozen=True):
    """A pod as it is written: what the API server sends, as far as scheduling reads it."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Pod(TypedObject, frozen=True, kw_only=True):
    """A unit of scheduling: its template, and what is its own.

    The metadata's namespace, labels and owners are the template's, whatever the pod is made of. Made by `of`,
    and from bytes by berth.objects.pods.pod_decoding.
    """

    template: PodTemplate
    node_name: str = ""
    """The node the pod is on, empty while it is on none."""
    status: PodStatus = NO_STATUS
    start_time: datetime | None = None
    """When its kubelet took it on; in `status` only as `written` gives it, so that pods share theirs."""

    @classmethod
    def of(
        cls, metadata: ObjectMeta = NO_METADATA, spec: PodSpec = NO_SPEC, status: PodStatus = NO_STATUS
    ) -> "Pod":
        """The pod that is written like this."""
        template = interned(metadata.namespace, metadata.labels, metadata.owner_references, spec)
        return cls(metadata=metadata, template=template, node_name=spec.node_name, status=status)

    def __post_init__(self) -> None:
        """Share what the template has; a pod of other metadata is one of another template."""
        status = self.status
        if status.start_time is not None:
            msgspec.structs.force_setattr(self, "start_time", status.start_time)
            msgspec.structs.force_setattr(self, "status", msgspec.structs.replace(status, start_time=None))
        metadata, template = self.metadata, self.template
        if (
            metadata.labels is template.labels
            and metadata.owner_references is template.owner_references
            and metadata.namespace == template.namespace
        ):
            return
        namespace, labels, owners = metadata.namespace, metadata.labels, metadata.owner_references
        template = interned(namespace, labels, owners, template.spec)
        metadata = msgspec.structs.replace(
            metadata, labels=template.labels, owner_references=template.owner_references
        )
        msgspec.structs.force_setattr(self, "template", template)
        msgspec.structs.force_setattr(self, "metadata", metadata)

    @property
    def spec(self) -> PodSpec:
        """What the pod asks for, the same object for all pods of the template; it names no node."""
        return self.template.spec

    @property
    def priority(self) -> int:
        """The pod's priority; a pod without one has 0."""
        return self.template.spec.priority or 0

    @property
    def nominated_node_name(self) -> str:
        """The node the pod is nominated to, empty if to none."""
        return self.status.nominated_node_name

    @property
    def terminating(self) -> bool:
        """Whether the pod's deletion has begun."""
        return self.metadata.deletion_timestamp is not None

    def placed_on(self, node_name: str) -> "Pod":
        """The same pod, on that node."""
        return msgspec.structs.replace(self, node_name=node_name)

    def with_spec(self, spec: PodSpec) -> "Pod":
        """The same pod, on the same node, of another spec."""
        pod = Pod.of(self.metadata, spec, self.status)
        return msgspec.structs.replace(pod, node_name=self.node_name, start_time=self.start_time)

    def written(self) -> PodObject:
        """The pod in the API's form."""
        spec = msgspec.structs.replace(self.spec, node_name=self.node_name)
        status = msgspec.structs.replace(self.status, start_time=self.start_time)
        return PodObject(metadata=self.metadata, spec=spec, status=status)
