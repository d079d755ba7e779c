"""Pods and nodes as plugins see them: typed views on the API server's JSON, with all of it under `.raw`."""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from berth_sdk import quantity

Quantities = dict[str, str | int | float]


class ObjectMeta(Struct, frozen=True):
    """The parts of metadata that plugins read."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Taint(Struct, frozen=True):
    """One taint of a node."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Struct, frozen=True):
    """The parts of a node's spec that plugins read."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Struct, frozen=True):
    """The parts of a node's status that plugins read."""

    allocatable: Quantities = {}
    capacity: Quantities = {}


class Node(Struct, frozen=True, rename={"source": "(source)"}):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    source: bytes = b""

    @property
    def name(self) -> str:
        """Return metadata.name."""
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """Return metadata.labels."""
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """Return metadata.annotations."""
        return self.metadata.annotations

    @property
    def raw(self) -> dict[str, Any]:
        """Return the whole object; decoded at each access."""
        return _raw(self.source)

    def allocatable(self, resource: str) -> int:
        """Return what pods may use: milli-cores of "cpu", units of anything else, 0 if it has none."""
        return quantity.units(resource, self.status.allocatable.get(resource, 0))


class Resources(Struct, frozen=True):
    """Requests and limits of a container or of a pod."""

    requests: Quantities = {}
    limits: Quantities = {}


class Container(Struct, frozen=True):
    """The parts of a container that plugins read."""

    name: str = ""
    image: str = ""
    resources: Resources = Resources()
    restart_policy: str = field(default="", name="restartPolicy")


class Toleration(Struct, frozen=True):
    """One toleration of a pod."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PodSpec(Struct, frozen=True, rename="camel"):
    """The parts of a pod's spec that plugins read."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    node_selector: dict[str, str] = {}
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Quantities = {}
    resources: Resources = Resources()
    tolerations: tuple[Toleration, ...] = ()


class PodStatus(Struct, frozen=True, rename="camel"):
    """The parts of a pod's status that plugins read."""

    phase: str = ""
    nominated_node_name: str = ""


class Pod(Struct, frozen=True, rename={"source": "(source)"}):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    source: bytes = b""

    @property
    def uid(self) -> str:
        """Return metadata.uid."""
        return self.metadata.uid

    @property
    def name(self) -> str:
        """Return metadata.name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Return metadata.namespace."""
        return self.metadata.namespace

    @property
    def labels(self) -> dict[str, str]:
        """Return metadata.labels."""
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """Return metadata.annotations."""
        return self.metadata.annotations

    @property
    def raw(self) -> dict[str, Any]:
        """Return the whole object; decoded at each access."""
        return _raw(self.source)

    def request(self, resource: str) -> int:
        """Return what the scheduler counts for the pod: milli-cores of "cpu", units of anything else.

        Containers and restartable init containers add up; an ordinary init container runs beside the
        restartable ones before it, and the pod needs the larger of both. A pod-level request replaces that.
        Source: component-helpers/resource/helpers.go (Kubernetes v1.36).
        """
        overhead = _amount(resource, self.spec.overhead)
        if resource in self.spec.resources.requests:
            return _amount(resource, self.spec.resources.requests) + overhead
        running = sum(_amount(resource, each.resources.requests) for each in self.spec.containers)
        peak = sidecars = 0
        for each in self.spec.init_containers:
            amount = _amount(resource, each.resources.requests)
            peak = max(peak, sidecars + amount)
            sidecars += amount if each.restart_policy == "Always" else 0
        return max(peak, running + sidecars) + overhead


Object = TypeVar("Object", Node, Pod)

_NODES = msgspec.json.Decoder(Node)
_PODS = msgspec.json.Decoder(Pod)


def decode_node(data: bytes) -> Node:
    """Return the view on a node's JSON.

    Raises: msgspec.ValidationError, msgspec.DecodeError: it is no node.
    """
    return _decode(_NODES, Node, data)


def decode_pod(data: bytes) -> Pod:
    """Return the view on a pod's JSON.

    Raises: msgspec.ValidationError, msgspec.DecodeError: it is no pod.
    """
    return _decode(_PODS, Pod, data)


def _decode(decoder: msgspec.json.Decoder[Object], kind: type[Object], data: bytes) -> Object:
    try:
        view = decoder.decode(data)
    except msgspec.ValidationError:
        # null means absent in Kubernetes, and hand-written objects do contain it.
        view = msgspec.convert(_without_nulls(msgspec.json.decode(data)), kind)
    msgspec.structs.force_setattr(view, "source", data)
    return view


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _raw(source: bytes) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(source)
    return document


def _amount(resource: str, quantities: Quantities) -> int:
    return quantity.units(resource, quantities.get(resource, 0))
