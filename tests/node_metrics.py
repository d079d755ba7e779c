"""What metrics-server reports of nodes, and the kind as a custom resource that stands for its API."""

from datetime import UTC, datetime

CORES, MEMORY = 4, 64 << 30
"""What a node has, unless said otherwise; as scheduler_at_work's have."""
KIND = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "nodes.metrics.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, stands for metrics-server's API"},
    },
    "spec": {
        "group": "metrics.k8s.io",
        "scope": "Cluster",
        "names": {"kind": "NodeMetrics", "plural": "nodes"},
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


def node_metrics(name, share, cores=CORES):
    """A node's metrics of now: the same share of its cores and of its memory is in use."""
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": name},
        "timestamp": datetime.now(UTC).isoformat(),
        "window": "20s",
        "usage": {"cpu": f"{int(share * cores * 1e9)}n", "memory": f"{int(share * MEMORY)}"},
    }
