"""What pods ask for, as far as scheduling reads it.

`None` stands for an absent field wherever upstream distinguishes absent from empty.
"""

from typing import Any

import msgspec

from berth.objects.api_object import ApiObject, Int32, Int64, ShortText
from berth.objects.label_selector import LabelSelector
from berth.objects.node import Amount
from berth.objects.node_selector import NodeAffinity
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
