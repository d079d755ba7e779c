"""An openb node or task as the Kubernetes document that the sandbox creates.

Requests are the task's figures, zeros included: Kubernetes accepts a request of 0, and a zero that is present
is not replaced by the scheduler's defaults. The GPU share is an extended resource, whose limit must equal its
request, and which a pod that wants none must not name.
"""

from collections.abc import Sequence
from typing import Any

from berth.demo.dataset.shapes import (
    GPU_COUNT,
    GPU_MILLI,
    GPU_MODEL,
    GPU_MODELS,
    MILLI_GPU,
    Assignment,
    NamedNode,
    NamedPod,
    NodeShape,
    PodShape,
)
from berth.demo.dataset.source import Objects

NAMESPACE = "openb"
# The trace has no limit on pods. Tasks ask for a core at least and nodes have 128 at most: cpu ends first.
PODS_PER_NODE = "250"
IMAGE = "pause:3.10"
MILLI_PER_GPU = 1000
MIB_PER_GIB = 1024


def openb_objects(nodes: Sequence[NamedNode], pods: Sequence[NamedPod], assign: Assignment) -> Objects:
    """Build the namespace, the nodes and the pods, the latter with a schedulerName from `assign`."""
    schedulers = assign([pod.shape for pod in pods])
    return Objects(
        nodes=[node_document(*node) for node in nodes],
        pods=[pod_document(*pod, scheduler) for pod, scheduler in zip(pods, schedulers, strict=True)],
        others=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}],
    )


def node_document(name: str, shape: NodeShape) -> dict[str, Any]:
    """Build a ready v1 Node that offers the shape's figures."""
    labels = {"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": instance_type(shape)}
    offered = {
        "cpu": f"{shape.milli_cpu}m",
        "memory": f"{shape.memory_mib}Mi",
        "pods": PODS_PER_NODE,
    }
    if shape.gpus:
        labels |= {GPU_MODEL: shape.model, GPU_COUNT: str(shape.gpus)}
        offered[MILLI_GPU] = str(MILLI_PER_GPU * shape.gpus)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": offered, "allocatable": dict(offered), "conditions": [ready]},
    }


def instance_type(shape: NodeShape) -> str:
    """Name a shape as a cloud would, such as `96c-384g-8xG2`; odd figures keep their small unit."""
    cores, odd_milli = divmod(shape.milli_cpu, 1000)
    gib, odd_mib = divmod(shape.memory_mib, MIB_PER_GIB)
    cpu = f"{shape.milli_cpu}m" if odd_milli else f"{cores}c"
    memory = f"{shape.memory_mib}mi" if odd_mib else f"{gib}g"
    return f"{cpu}-{memory}" + (f"-{shape.gpus}x{shape.model}" if shape.gpus else "")


def pod_document(name: str, shape: PodShape, scheduler: str) -> dict[str, Any]:
    """Build a pending v1 Pod that asks for the shape's figures."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"app": "openb", "qos": shape.qos},
    }
    resources = {"requests": {"cpu": f"{shape.milli_cpu}m", "memory": f"{shape.memory_mib}Mi"}}
    if shape.gpus:
        metadata["annotations"] = _gpu_annotations(shape)
        share = str(shape.gpus * shape.gpu_milli)
        resources["requests"][MILLI_GPU] = share
        resources["limits"] = {MILLI_GPU: share}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "task", "image": IMAGE, "resources": resources}],
        },
    }


def _gpu_annotations(shape: PodShape) -> dict[str, str]:
    annotations = {GPU_COUNT: str(shape.gpus), GPU_MILLI: str(shape.gpu_milli)}
    return annotations | ({GPU_MODELS: "|".join(shape.models)} if shape.models else {})
