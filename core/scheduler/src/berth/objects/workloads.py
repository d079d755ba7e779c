"""Objects around pods: namespaces, services and controllers, disruption budgets.

Default spreading reads services and controllers, namespace selectors namespaces, preemption budgets.
"""

from berth.objects.api_object import ApiObject, Int32, TypedObject
from berth.objects.label_selector import LabelSelector


class Namespace(TypedObject, frozen=True):
    """A namespace; only its labels count."""


class ServiceSpec(ApiObject, frozen=True):
    """Which pods the service sends to; None is not the same as an empty map."""

    selector: dict[str, str] | None = None


class Service(TypedObject, frozen=True):
    """A core/v1 Service."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(ApiObject, frozen=True):
    """Which pods the controller owns."""

    selector: dict[str, str] | None = None


class ReplicationController(TypedObject, frozen=True):
    """A core/v1 ReplicationController."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class WorkloadSpec(ApiObject, frozen=True):
    """Which pods the workload owns."""

    selector: LabelSelector | None = None


class ReplicaSet(TypedObject, frozen=True):
    """An apps/v1 ReplicaSet."""

    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(TypedObject, frozen=True):
    """An apps/v1 StatefulSet."""

    spec: WorkloadSpec = WorkloadSpec()


class DisruptionBudgetStatus(ApiObject, frozen=True):
    """How many more evictions the budget allows, and which are on their way."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(TypedObject, frozen=True):
    """A policy/v1 PodDisruptionBudget."""

    spec: WorkloadSpec = WorkloadSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()
