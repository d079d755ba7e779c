"""Pods, as far as scheduling reads them.

`None` stands for an absent field wherever upstream distinguishes absent from empty.
"""

from datetime import datetime
from typing import Any

import msgspec

from berth.objects.api_object import ApiObject, Int32, Int64, ObjectMeta, ShortText, TypedObject
from berth.objects.label_selector import LabelSelector
from berth.objects.node import Amount
from berth.objects.node_selector import NodeAffinity
from berth.objects.pod_template import PodTemplate, interned
from berth.objects.taint import Toleration

ResourceAmounts = dict[str, Amount]


class Resources(ApiObject, frozen=True):
    """What a container or a pod requests and may use at most."""

    requests: ResourceAmounts | None = None
    limits: ResourceAmounts | None = None


class ContainerPort(ApiObject, frozen=True):
    """A port; one with a host port claims it on the node."""

    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""
    container_port: Int32 = 0


class RestartPolicyRule(ApiObject, frozen=True):
    """What happens when a container exits in a given way."""

    action: str = ""


class Container(ApiObject, frozen=True):
    """A container; an init container that restarts always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartPolicyRule, ...] = ()

    @property
    def restartable(self) -> bool:
        """Whether an init container of this kind keeps running beside the others."""
        return self.restart_policy == "Always"


class PodAffinityTerm(ApiObject, frozen=True):
    """Pods to be near to or away from, within a topology."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiObject, frozen=True):
    """A term worth `weight` where it holds."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiObject, frozen=True):
    """Required and preferred terms, of affinity or of anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()

    @property
    def required(self) -> tuple[PodAffinityTerm, ...]:
        """The terms that have to hold."""
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[WeightedPodAffinityTerm, ...]:
        """The terms that score."""
        return self.preferred_during_scheduling_ignored_during_execution


class Affinity(ApiObject, frozen=True):
    """All that draws a pod to places and keeps it away."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiObject, frozen=True):
    """How evenly matching pods are spread over the values of a node label."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class SchedulingGate(ApiObject, frozen=True):
    """A name that keeps the pod out of scheduling while it stands."""

    name: str = ""


class PodResourceClaim(ApiObject, frozen=True):
    """A claim of devices, by name or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(ApiObject, frozen=True):
    """The PodGroup that the pod is scheduled with."""

    pod_group_name: str | None = None


class PodSpec(ApiObject, frozen=True):
    """What the pod asks for."""

    node_name: ShortText = ""
    scheduler_name: ShortText = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceAmounts | None = None
    resources: Resources | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: Int64 | None = None


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
    and from bytes by berth.objects.pod_decoding.
    """

    template: PodTemplate
    node_name: str = ""
    """The node the pod is on, empty while it is on none."""
    status: PodStatus = NO_STATUS

    @classmethod
    def of(
        cls, metadata: ObjectMeta = NO_METADATA, spec: PodSpec = NO_SPEC, status: PodStatus = NO_STATUS
    ) -> "Pod":
        """The pod that is written like this."""
        template = interned(metadata.namespace, metadata.labels, metadata.owner_references, spec)
        return cls(metadata=metadata, template=template, node_name=spec.node_name, status=status)

    def __post_init__(self) -> None:
        """Share what the template has; a pod of other metadata is one of another template."""
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
        return Pod.of(self.metadata, spec, self.status).placed_on(self.node_name)

    def written(self) -> PodObject:
        """The pod in the API's form."""
        spec = msgspec.structs.replace(self.spec, node_name=self.node_name)
        return PodObject(metadata=self.metadata, spec=spec, status=self.status)
