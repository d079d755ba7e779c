"""Nodes: upstream's default, templates and strategies, given to them as they are created.

Source: test/integration/scheduler_perf/node_util.go, util.go makeBaseNode; test/utils/runners.go (Kubernetes
v1.36.2). Upstream patches nodes after they are there, in the order of their names, which need not be those
that it just created.
"""

import uuid

from berth.client.resources import CSI_NODES, NODES
from tests.scheduler_perf.requests import many
from tests.scheduler_perf.templates import ObjectTemplate

HOSTNAME = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
CAPACITY = {"pods": "110", "cpu": "4", "memory": "32Gi"}


async def create_nodes(requests, operation, prefix, declared=()):
    """Create an operation's nodes; `declared` are names of features that each declares."""
    count, path = operation["count"] or 0, operation["nodeTemplatePath"]
    template = ObjectTemplate(path, operation["templateParams"]) if path else None
    allocatable = operation["nodeAllocatableStrategy"]

    async def create(index):
        node = template.document(index, count) if template else base_node(prefix)
        node = prepared(node, index, operation, requests.generated)
        if declared:
            node["status"]["declaredFeatures"] = sorted(declared)
        await requests.create(NODES, "", node)
        if allocatable:
            await requests.create(CSI_NODES, "", csi_node(node["metadata"]["name"], allocatable))

    await many(count, create)


def base_node(prefix):
    """The node of an operation without a template."""
    ready = {"type": "Ready", "status": "True"}
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "phase": "Running", "conditions": [ready]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": prefix},
        "spec": {},
        "status": status,
    }


def prepared(node, index, operation, generated):
    """The node with a name, its hostname, and what the operation's strategy adds."""
    metadata, status = dict(node["metadata"]), dict(node.get("status") or {})
    name = metadata.setdefault("name", generated(metadata.pop("generateName", "node-")))
    labels = {**metadata.get("labels", {}), HOSTNAME: name}
    status.setdefault("allocatable", status.get("capacity", {}))
    if strategy := operation["labelNodePrepareStrategy"]:
        values = strategy["labelValues"]
        labels[strategy["labelKey"]] = values[index % len(values)]
    elif strategy := operation["uniqueNodeLabelStrategy"]:
        labels[strategy["labelKey"]] = str(uuid.uuid4())
    return {**node, "metadata": {**metadata, "labels": labels}, "status": status}


def csi_node(name, strategy):
    """What the node's CSI drivers allow. (The API server takes no allocatable from the strategy's patch.)"""
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": allocatable}
        for driver, allocatable in (strategy.get("csiNodeAllocatable") or {}).items()
    ]
    annotations = {MIGRATED: ",".join(strategy.get("migratedPlugins") or ())}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"drivers": drivers},
    }
