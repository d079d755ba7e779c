"""Groups of pods that are scheduled together.

The objects of both versions of the API are read: disruptionMode is a text in v1alpha2, and an object with one
field in v1beta1.

Source: scheduling.k8s.io/v1alpha2 (Kubernetes v1.36), v1beta1 and v1alpha3 (v1.37).
"""

from berth.objects.api_object import ApiObject, Int32, Int64, TypedObject


class BasicPolicy(ApiObject, frozen=True):
    """Every pod of the group may go ahead on its own."""


class GangPolicy(ApiObject, frozen=True):
    """No pod goes ahead before that many have a node."""

    min_count: Int32 = 0


class GroupGangPolicy(ApiObject, frozen=True):
    """No pod below goes ahead before that many groups right below have a place."""

    min_group_count: Int32 = 0


class SchedulingPolicy(ApiObject, frozen=True):
    """How the group's pods depend on one another: one of the fields is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(ApiObject, frozen=True):
    """A node label; all pods of the group go where it has one value."""

    key: str = ""


class SchedulingConstraints(ApiObject, frozen=True):
    """Where the group's pods may be together."""

    topology: tuple[TopologyConstraint, ...] = ()


class Nothing(ApiObject, frozen=True):
    """A choice without settings."""


class DisruptionMode(ApiObject, frozen=True):
    """What of a group one disruption takes: one of the fields is set."""

    single: Nothing | None = None
    all: Nothing | None = None


class PodGroupResourceClaim(ApiObject, frozen=True):
    """A claim that the group's pods may share: one that is named, or one made from a template for the group.

    Pods use it with an entry of their own that has the same name and names the same claim or template.
    """

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(ApiObject, frozen=True):
    """How the group is to be scheduled."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str = ""
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()

    @property
    def disrupted_as_a_whole(self) -> bool:
        """Whether one pod's eviction is that of all pods of the group."""
        mode = self.disruption_mode
        return mode == "PodGroup" if isinstance(mode, str) else mode.all is not None


class PodGroupCondition(ApiObject, frozen=True):
    """One condition of the group's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 | None = None
    last_transition_time: str | None = None


class PodGroupClaimStatus(ApiObject, frozen=True):
    """The claim that was made from a template for an entry of the group; no name where none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(ApiObject, frozen=True):
    """What became of the group."""

    conditions: tuple[PodGroupCondition, ...] = ()
    resource_claim_statuses: tuple[PodGroupClaimStatus, ...] = ()


class PodGroup(TypedObject, frozen=True):
    """A PodGroup of scheduling.k8s.io."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def needed(self) -> int:
        """How many pods have to have a node: of a group that is no gang, one."""
        return self.min_count or 1

    @property
    def min_count(self) -> int | None:
        """How many pods a gang needs; None where the group is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count


class CompositeSchedulingPolicy(ApiObject, frozen=True):
    """How the groups right below depend on one another: one of the fields is set."""

    basic: BasicPolicy | None = None
    gang: GroupGangPolicy | None = None


class CompositePodGroupSpec(ApiObject, frozen=True):
    """How the groups below are to be scheduled."""

    scheduling_policy: CompositeSchedulingPolicy = CompositeSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str = ""

    @property
    def disrupted_as_a_whole(self) -> bool:
        """Whether one pod's eviction is that of all pods below."""
        return self.disruption_mode is not None and self.disruption_mode.all is not None


class CompositePodGroupStatus(ApiObject, frozen=True):
    """What became of the group."""

    conditions: tuple[PodGroupCondition, ...] = ()


class CompositePodGroup(TypedObject, frozen=True):
    """A CompositePodGroup of scheduling.k8s.io: a group of groups."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: CompositePodGroupStatus = CompositePodGroupStatus()

    @property
    def needed(self) -> int:
        """How many groups right below have to have a place: of a group that is no gang, one."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else max(gang.min_group_count, 1)
