"""A core that decides on hostile pods in this process, one cycle after another."""

import asyncio
import json

import msgspec

from berth.objects.pods.pod_template import PodTemplate
from tests.benchmarks.workloads import Core, read_node, read_pod
from tests.hostile.arena import node, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def a_core(nodes=6, *, taints=()):
    """A core of so many nodes, and one more for each taint; it has decided once, so that it is warm."""
    core = Core()
    for number in range(nodes + len(taints)):
        document = node(number)
        document["metadata"]["uid"] = document["metadata"]["name"]
        if number >= nodes:
            document["spec"] = {"taints": [taints[number - nodes]]}
        core.cache.add_node(read_node(json.dumps(document).encode()))
    core.cache.update_snapshot(core.snapshot)
    decide(core, a_pod("warm"))
    return core


def a_pod(name="p", **fields):
    """A pod as the watch brings it."""
    document = pod(name, **fields)
    document["metadata"]["uid"] = name
    document["spec"].setdefault("schedulerName", "default-scheduler")
    return read_pod(json.dumps(document).encode())


def decide(core, pod):
    """The node that the pod gets, empty if none."""
    return asyncio.run(core.decide(pod)).node_name


def place(core, pod, on="node-0"):
    """Bring a pod that is on a node already."""
    placed = pod.placed_on(on)
    core.cache.add_pod(placed)
    core.cache.update_snapshot(core.snapshot)
    return placed


def remove(core, placed):
    """Let a placed pod go."""
    core.cache.remove_pod(placed)
    core.cache.update_snapshot(core.snapshot)


class CountedText(str):
    """A text that shows up in counted calls whenever it is compared or hashed."""

    __slots__ = ()

    def __eq__(self, other):
        return str.__eq__(self, other)

    def __hash__(self):
        return str.__hash__(self)


def with_counted_labels(pod):
    """The pod with labels whose every comparison is counted."""
    labels = {CountedText(key): CountedText(value) for key, value in pod.labels.items()}
    metadata = msgspec.structs.replace(pod.metadata, labels=labels)
    template = PodTemplate(pod.namespace, labels, metadata.owner_references, pod.spec, 0)
    return msgspec.structs.replace(pod, metadata=metadata, template=template)


__all__ = [
    "HOST",
    "PREFERRED",
    "REQUIRED",
    "ZONE",
    "CountedText",
    "a_core",
    "a_pod",
    "decide",
    "place",
    "remove",
    "with_counted_labels",
]
