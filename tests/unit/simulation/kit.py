"""Clusters for simulations, from documents."""

import json

from berth.config.loading import load
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions

ZONE = "topology.kubernetes.io/zone"
APP = {"app": "a"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": APP},
}
"""Over zones, the pods of APP."""
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": APP}}
        ]
    }
}
"""One pod of APP a node."""
GANGS = ("GenericWorkload", "GangScheduling")
"""The feature gates with which gangs are placed together."""


def node(name, cpu="4", labels=None, annotations=None, **spec):
    """A node document, roomy but for its cpu."""
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    status = {"capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def pod(name, cpu="1", labels=None, annotations=None, **spec):
    """A pod document; further keywords are fields of its spec."""
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def thing(kind, name, version="v1", **fields):
    """A document of another kind."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def gang(name, count, least=None, **constraints):
    """A group of so many pods, of which `least` go together."""
    policy = {"gang": {"minCount": least or count}}
    spec = {"schedulingPolicy": policy, **constraints}
    group = thing("PodGroup", name, "scheduling.k8s.io/v1alpha2", spec=spec)
    return group, [pod(f"{name}-{i}", schedulingGroup={"podGroupName": name}) for i in range(count)]


def written(path, *documents):
    """The documents as a file of the path's format."""
    path.write_text("\n".join(json.dumps(each) for each in documents), encoding="utf-8")
    return path


def cluster(tmp_path, *documents):
    """The documents, read as a file."""
    return read_cluster([written(tmp_path / "cluster.json", *documents)])


def outcome(found, configuration=None, **options):
    """What comes of a cluster under the configuration, a document."""
    loaded = load(None if configuration is None else json.dumps(configuration))
    return simulate(found, SimulationOptions(loaded, **options))


def profiles(*profiles, **fields):
    """A KubeSchedulerConfiguration document."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "profiles": list(profiles), **fields}
