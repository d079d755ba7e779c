"""A small synthetic cluster: nodes and pods that give a plugin something to decide.

What the plugin declares is used: resources it looks at are on nodes and in pods, keys it reads are set.
"""

from collections.abc import Iterable
from typing import Any

from berth_plugin_proto import identity_pb2

Document = dict[str, Any]

TEAMS = ("red", "blue")
ZONES = ("north", "south", "east")
SPOT_NODES = (3, 7)
ENOUGH_OF_IT = 1000
"""What a pod requests of a resource that the plugin looks at; some count in thousandths."""


def resources_of(capabilities: identity_pb2.Capabilities) -> list[str]:
    """The resources that the plugin says it looks at."""
    named = [*capabilities.state.pod_resources]
    for interest in capabilities.events:
        named += interest.pod_resources
    return sorted(set(named) - {"cpu", "memory", "pods", "ephemeral-storage"})


def make_nodes(
    count: int, capabilities: identity_pb2.Capabilities, given: Iterable[Document]
) -> list[Document]:
    """Nodes that differ in teams, zones, room and taints; those given by the user first."""
    extra = resources_of(capabilities)
    return [*given, *(_node(number, extra) for number in range(count))][: max(count, 0)]


def _node(number: int, resources: Iterable[str]) -> Document:
    room = str(ENOUGH_OF_IT * (number % len(ZONES)))
    extra = {} if room == "0" else dict.fromkeys(resources, room)
    labels = {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": ZONES[number % 3]}
    if number % len(ZONES):
        labels["team"] = TEAMS[number % 2]
    allocatable = {"cpu": str(4 + 4 * (number % 3)), "memory": "32Gi", "pods": "110", **extra}
    taints = [{"key": "spot", "value": "true", "effect": "NoSchedule"}] if number in SPOT_NODES else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{number}",
            "uid": f"uid-of-node-{number}",
            "labels": labels,
            "annotations": {},
        },
        "spec": {"taints": taints},
        "status": {
            "allocatable": allocatable,
            "capacity": dict(allocatable),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_pods(
    capabilities: identity_pb2.Capabilities, profile: str, given: Iterable[Document]
) -> list[Document]:
    """Pods to ask about: the user's own first, then plain ones and one for each resource of the plugin's."""
    found = [_in_profile(each, profile, number) for number, each in enumerate(given)]
    found += [
        make_pod("red", profile, labels={"team": "red"}),
        make_pod("blue", profile, labels={"team": "blue"}),
    ]
    found += [
        make_pod(f"wants-{number}", profile, requests={resource: str(ENOUGH_OF_IT)})
        for number, resource in enumerate(resources_of(capabilities))
    ]
    return found


def make_pod(
    name: str,
    profile: str,
    *,
    labels: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
) -> Document:
    """A pod as the API server gives it."""
    resources = {
        "requests": {"cpu": "500m", "memory": "1Gi", **(requests or {})},
        "limits": dict(requests or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "labels": {"app": name, **(labels or {})},
            "annotations": {},
        },
        "spec": {
            "schedulerName": profile,
            "priority": 0,
            "tolerations": [],
            "containers": [{"name": "main", "image": "image", "resources": resources}],
        },
        "status": {"phase": "Pending"},
    }


def _in_profile(pod: Document, profile: str, number: int) -> Document:
    metadata = {"namespace": "default", "uid": f"uid-of-given-{number}", **pod["metadata"]}
    spec = {**pod["spec"], "schedulerName": profile}
    spec.pop("nodeName", None)
    return {**pod, "metadata": metadata, "spec": spec}


def renamed(pod: Document, name: str) -> Document:
    """The same pod under another name and UID."""
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": f"uid-of-{name}"}}
