"""The kinds that decisions read: those that a scheduler watches, and what admission reads of pods."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from berth.client import resources
from berth.client.resources import SCHEDULER_PLUGINS, SCHEDULERS, Resource, in_each_version
from berth.objects.api_object import Int32, TypedObject
from berth.objects.decode import decoder
from berth.objects.devices.devices import DeviceTaintRule
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_decoding import decode_pod
from berth.scheduler.watching.watches import LIVE_PODS, LOOKED_UP

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)


class PriorityClass(TypedObject, frozen=True):
    """A scheduling.k8s.io/v1 PriorityClass, which admission turns into a pod's priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = ""


class SimulatedKind(msgspec.Struct, frozen=True):
    """A kind, its API path, and how its objects are decoded."""

    resource: Resource
    type: type[TypedObject]
    decode: Callable[[bytes], Any]
    field_selector: str = ""

    @property
    def name(self) -> str:
        """The kind's name."""
        return self.type.__name__

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions in which objects are read, preferred first."""
        return tuple(resource.version for resource in in_each_version(self.resource))


def _kind(resource: Resource, of: type[TypedObject]) -> SimulatedKind:
    return SimulatedKind(resource, of, decoder(of))


KINDS: Final[tuple[SimulatedKind, ...]] = (
    _kind(PRIORITY_CLASSES, PriorityClass),
    *(_kind(watched.resource, watched.kind) for watched in LOOKED_UP),
    _kind(resources.DEVICE_TAINT_RULES, DeviceTaintRule),
    _kind(resources.NODES, Node),
    SimulatedKind(resources.PODS, Pod, decode_pod, LIVE_PODS),
)
"""In the order in which a simulation takes them in: what others refer to comes first, nodes and pods last."""

SCHEDULER_OBJECTS: Final[Mapping[str, Resource]] = MappingProxyType(
    {
        "Scheduler": SCHEDULERS,
        "SchedulerPlugin": SCHEDULER_PLUGINS,
    }
)
"""What the operator makes a scheduler of: no decision reads them, but a simulation may be of them."""

BY_NAME: Final[Mapping[tuple[str, str], SimulatedKind]] = MappingProxyType(
    {(kind.resource.group, kind.name): kind for kind in KINDS}
)
"""Each kind by its group and name."""


def document_of(obj: TypedObject, kind: SimulatedKind) -> bytes:
    """The object as JSON, with only the fields that decisions read."""
    written = obj.written() if isinstance(obj, Pod) else obj
    head = msgspec.json.encode({"apiVersion": kind.resource.api_version, "kind": kind.name})
    body = msgspec.json.encode(written)
    return head if body == b"{}" else head[:-1] + b"," + body[1:]
