"""What metrics-server reports of nodes and pods, and the kinds as custom resources that stand for its API."""

from datetime import UTC, datetime, timedelta

CORES, MEMORY = 4, 64 << 30
"""What a node has, unless said otherwise; as scheduler_at_work's have."""


def _kind(kind, plural, scope):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, stands for metrics-server's API"},
        },
        "spec": {
            "group": "metrics.k8s.io",
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }


KIND = _kind("NodeMetrics", "nodes", "Cluster")
POD_KIND = _kind("PodMetrics", "pods", "Namespaced")


def node_metrics(name, share, cores=CORES, *, age=0):
    """A node's metrics, so many seconds old: the same share of its cores and of its memory is in use."""
    return node_usage(name, share * cores, memory=int(share * MEMORY), age=age)


def node_usage(name, cores, *, memory=0, age=0):
    """A node's metrics, so many seconds old."""
    return {**_head("NodeMetrics", {"name": name}, age), "usage": _usage(cores, memory)}


def pod_usage(name, cores, *, namespace="default", memory=0, age=0):
    """A pod's metrics, so many seconds old."""
    containers = [{"name": "c", "usage": _usage(cores, memory)}]
    return {**_head("PodMetrics", {"name": name, "namespace": namespace}, age), "containers": containers}


def _head(kind, metadata, age):
    at = datetime.now(UTC) - timedelta(seconds=age)
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, "metadata": metadata}
    return {**head, "timestamp": at.isoformat(), "window": "20s"}


def _usage(cores, memory):
    return {"cpu": f"{int(cores * 1e9)}n", "memory": f"{memory}"}
