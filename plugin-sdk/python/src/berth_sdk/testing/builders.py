"""Nodes and pods as the API server's JSON, in as few words as a test needs."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]


def make_node(
    name: str,
    *,
    allocatable: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Mapping[str, str], ...] = (),
) -> Document:
    """Return a node."""
    resources = dict(allocatable or {"cpu": "8", "memory": "32Gi", "pods": "110"})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}", "labels": dict(labels or {})},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"allocatable": resources, "capacity": resources},
    }


def make_pod(
    name: str,
    *,
    namespace: str = "default",
    requests: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node_name: str | None = None,
    priority: int = 0,
) -> Document:
    """Return a pod with one container; its UID is made from its name."""
    resources = {"requests": dict(requests or {}), "limits": dict(requests or {})}
    spec: Document = {"containers": [{"name": "main", "image": "image", "resources": resources}]}
    if node_name:
        spec["nodeName"] = node_name
    if priority:
        spec["priority"] = priority
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"pod-{namespace}-{name}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }
