"""Nodes and pods for tests, as short as what matters of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.objects.api_object import ObjectMeta
from berth.objects.node import Amount, ContainerImage, Node, NodeSpec, NodeStatus
from berth.objects.pods.pod import Pod, PodStatus
from berth.objects.pods.pod_spec import Container, ContainerPort, PodSpec, Resources, SchedulingGate
from berth.objects.taint import Taint

ROOMY: Mapping[str, Amount] = {"cpu": "4", "memory": "16Gi", "pods": "110"}


def make_node(
    name: str = "n0",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    allocatable: Mapping[str, Amount] = ROOMY,
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
) -> Node:
    """A node; `images` are sizes in bytes by name."""
    return Node(
        metadata=ObjectMeta(name=name, uid=f"node-{name}", labels=dict(labels or {})),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints)),
        status=NodeStatus(
            allocatable=dict(allocatable),
            images=tuple(ContainerImage((image,), size) for image, size in (images or {}).items()),
        ),
    )


def make_pod(
    name: str = "p0",
    *,
    namespace: str = "default",
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, Amount] | None = None,
    containers: Sequence[Container] | None = None,
    host_ports: Iterable[ContainerPort | int] = (),
    gates: Iterable[str] = (),
    nominated_node_name: str = "",
    **spec: Any,
) -> Pod:
    """A pod of one container, or of those given; further keywords are fields of its spec."""
    if containers is None:
        ports = tuple(p if isinstance(p, ContainerPort) else ContainerPort(host_port=p) for p in host_ports)
        amounts = None if requests is None else dict(requests)
        containers = (Container("main", "app:1", Resources(requests=amounts), ports),)
    return Pod.of(
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=uid or f"{namespace}-{name}", labels=dict(labels or {})
        ),
        spec=PodSpec(
            containers=tuple(containers), scheduling_gates=tuple(SchedulingGate(g) for g in gates), **spec
        ),
        status=PodStatus(nominated_node_name=nominated_node_name),
    )
