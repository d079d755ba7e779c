"""Claims of devices: what pods ask for and what they were given.

What is only carried along (configuration for drivers, their reports) stays a plain document.

Source: resource.k8s.io/v1 (Kubernetes v1.36).
"""

from collections.abc import Container
from datetime import datetime
from typing import Any

import msgspec

from berth.objects.api_object import ApiObject, Int64, TypedObject
from berth.objects.node import Amount
from berth.objects.node_selector import NodeSelector
from berth.objects.taint import Toleration

EXACT_COUNT = "ExactCount"
ALL = "All"


class CELSelector(ApiObject, frozen=True):
    """An expression over one device."""

    expression: str = ""


class DeviceSelector(ApiObject, frozen=True):
    """One condition on a device."""

    cel: CELSelector | None = None


class DerivedAttribute(ApiObject, frozen=True):
    """An attribute that a request makes of what a device has (KEP-6080)."""

    name: str = ""
    expression: str = ""


class CapacityRequirements(ApiObject, frozen=True):
    """How much of a device's capacity is asked for, by qualified name."""

    requests: dict[str, Amount] = {}


class DeviceSubRequest(ApiObject, frozen=True):
    """One alternative of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class ExactDeviceRequest(ApiObject, frozen=True):
    """Devices of one class, without alternatives."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceRequest(ApiObject, frozen=True):
    """A named request: exactly this, or the first of these that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiObject, frozen=True):
    """What the devices of some requests have to have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueConfiguration(ApiObject, frozen=True):
    """Parameters that only the driver understands."""

    driver: str = ""
    parameters: Any = None


class DeviceConfiguration(ApiObject, frozen=True):
    """Parameters for the devices of some requests, of all where none is named."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(ApiObject, frozen=True):
    """All requests of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(ApiObject, frozen=True):
    """What is asked for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(ApiObject, frozen=True):
    """One device that a request got."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] = {}
    compatibility_groups: dict[str, tuple[str, ...]] = {}
    """Those that the device had at its allocation, by counter set."""


class AllocatedConfiguration(ApiObject, frozen=True):
    """Parameters that go with an allocation, and whether they come from the class or from the claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocation(ApiObject, frozen=True):
    """The devices of an allocated claim."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class Allocation(ApiObject, frozen=True):
    """What the claim got, and from which nodes it can be reached (None: from all)."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class Consumer(ApiObject, frozen=True):
    """Who may use the claim: a pod (resource `pods`) or all pods of a group (`podgroups`)."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(ApiObject, frozen=True):
    """A condition that a driver reports of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 | None = None
    last_transition_time: str | None = None


class AllocatedDeviceStatus(ApiObject, frozen=True):
    """What a driver reports of one allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] = ()
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(ApiObject, frozen=True):
    """What became of the claim."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(TypedObject, frozen=True):
    """A resource.k8s.io/v1 ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def allocation(self) -> Allocation | None:
        """What the claim got, None while it has nothing."""
        return self.status.allocation

    def reserved_for_any(self, uids: Container[str]) -> bool:
        """Whether one of these UIDs, of pods or groups, is among the claim's consumers."""
        return any(consumer.uid in uids for consumer in self.status.reserved_for)

    def allocated_as(self, allocation: Allocation | None) -> "ResourceClaim":
        """The same claim with that allocation."""
        status = msgspec.structs.replace(self.status, allocation=allocation)
        return msgspec.structs.replace(self, status=status)
