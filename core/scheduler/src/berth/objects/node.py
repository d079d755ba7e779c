"""Nodes, as far as scheduling reads them."""

from berth.objects.api_object import ApiObject, Int64, TypedObject
from berth.objects.taint import Taint

Amount = str | int | float


class NodeSpec(ApiObject, frozen=True):
    """What the node's owner asks of it."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = ""


class NodeCondition(ApiObject, frozen=True):
    """One condition; only type and status count for scheduling."""

    type: str = ""
    status: str = ""


class ContainerImage(ApiObject, frozen=True, gc=True, weakref=True):
    """An image on the node, under all of its names."""

    names: tuple[str, ...] | None = ()
    size_bytes: Int64 = 0


class NodeStatus(ApiObject, frozen=True):
    """What the node offers."""

    allocatable: dict[str, Amount] = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(TypedObject, frozen=True):
    """A machine that pods run on."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
