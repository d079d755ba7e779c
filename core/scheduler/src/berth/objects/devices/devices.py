"""Devices that drivers publish, and the classes that claims choose them by.

Source: resource.k8s.io/v1 (Kubernetes v1.36).
"""

import msgspec

from berth.objects.api_object import ApiObject, Int64, TypedObject
from berth.objects.devices.resource_claims import DeviceConfiguration, DeviceSelector
from berth.objects.node import Amount
from berth.objects.node_selector import NodeSelector
from berth.objects.taint import Taint


class DeviceAttribute(ApiObject, frozen=True):
    """A property of a device: one of the fields is set, which has one value or, with KEP-5491, several."""

    integer: Int64 | None = msgspec.field(default=None, name="int")
    boolean: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    integers: tuple[Int64, ...] | None = msgspec.field(default=None, name="ints")
    booleans: tuple[bool, ...] | None = msgspec.field(default=None, name="bools")
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRange(ApiObject, frozen=True):
    """The amounts that may be consumed: from `min`, in steps, to `max`."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityPolicy(ApiObject, frozen=True):
    """How requests for a capacity are rounded, and what is consumed without one."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(ApiObject, frozen=True):
    """How much of something a device has."""

    value: Amount = "0"
    request_policy: CapacityPolicy | None = None


class Counter(ApiObject, frozen=True):
    """An amount that partitions of a device share."""

    value: Amount = "0"


class CounterSet(ApiObject, frozen=True):
    """The counters of one physical device, by name."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(ApiObject, frozen=True):
    """What a device takes out of a counter set while it is in use."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()
    """With which devices of the set it may be in use together (KEP-5963)."""


class DeviceSpec(ApiObject, frozen=True):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(ApiObject, frozen=True):
    """The pool that a slice belongs to; only slices of the newest generation count."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(ApiObject, frozen=True):
    """Some devices of a pool, and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[DeviceSpec, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(TypedObject, frozen=True):
    """A resource.k8s.io/v1 ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(ApiObject, frozen=True):
    """Which devices belong to the class, and the configuration of their drivers."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(TypedObject, frozen=True):
    """A resource.k8s.io/v1 DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(ApiObject, frozen=True):
    """Which devices a rule taints: those that have every name that is given."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiObject, frozen=True):
    """A taint, and the devices that get it; without a selector none do."""

    device_selector: DeviceTaintSelector | None = None
    taint: Taint = Taint()


class DeviceTaintRule(TypedObject, frozen=True):
    """A resource.k8s.io/v1beta2 DeviceTaintRule."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
