"""A small synthetic cluster: nodes and pods that give a plugin something to decide.

What the plugin announces is used: resources it looks at are on nodes and in pods, keys it reads are set.
"""

import copy
from collections.abc import Iterable
from typing import Any

from berth.conformance.announced import Announced

Document = dict[str, Any]

TEAMS = ("red", "blue")
ZONES = ("north", "south", "east")
SPOT_NODES = (3, 7)
ENOUGH_OF_IT = 1000
"""What a pod requests of a resource that the plugin looks at; some count in thousandths."""


OTHER_VALUES: dict[str, Any] = {
    "/metadata/labels/team": "green",
    "/metadata/labels/app": "another",
    "/metadata/labels/tier": "front",
    "/metadata/annotations/note": "another",
    "/metadata/namespace": "another",
    "/spec/priority": 1000,
    "/spec/serviceAccountName": "another",
    "/spec/nodeSelector": {"team": "green"},
    "/spec/tolerations": [{"operator": "Exists"}],
    "/spec/containers/0/image": "another",
    "/spec/containers/0/name": "another",
    "/spec/containers/0/resources/requests/cpu": "7",
    "/spec/containers/0/resources/requests/memory": "20Gi",
    "/spec/containers/0/resources/limits/cpu": "7",
    "/spec/hostNetwork": True,
    "/spec/restartPolicy": "Never",
}
"""Pod fields by JSON pointer, each with a value that `make_pod` does not give it."""

WIDELY_READ = frozenset(
    {
        "/metadata/namespace",
        "/spec/priority",
        "/spec/nodeSelector",
        "/spec/tolerations",
        "/spec/containers/*/resources/requests/cpu",
        "/spec/containers/*/resources/requests/memory",
    }
)


def make_nodes(count: int, announced: Announced, given: Iterable[Document]) -> list[Document]:
    """Nodes that differ in what is announced, in zones, room and taints; those given by the user first."""
    return [*given, *(_node(number, announced) for number in range(count))][: max(count, 0)]


def _node(number: int, announced: Announced) -> Document:
    room = str(ENOUGH_OF_IT * (number % len(ZONES)))
    extra = {} if room == "0" else dict.fromkeys(announced.resources, room)
    labels, annotations = {}, {}
    if number % len(ZONES):
        labels = dict.fromkeys(("team", *announced.labels), TEAMS[number % 2])
        annotations = dict.fromkeys(announced.annotations, TEAMS[number % 2])
    labels |= {"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": ZONES[number % 3]}
    allocatable = {"cpu": str(4 + 4 * (number % 3)), "memory": "32Gi", "pods": "110", **extra}
    taints = [{"key": "spot", "value": "true", "effect": "NoSchedule"}] if number in SPOT_NODES else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{number}",
            "uid": f"uid-of-node-{number}",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"taints": taints},
        "status": {
            "allocatable": allocatable,
            "capacity": dict(allocatable),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_pods(announced: Announced, profile: str, given: Iterable[Document]) -> list[Document]:
    """Pods to ask about: the user's own, one of each team, one for each announced resource and pod field."""
    found = [_in_profile(each, profile, number) for number, each in enumerate(given)]
    found += [_of_team(team, profile, announced) for team in TEAMS]
    found += [
        make_pod(f"wants-{number}", profile, requests={resource: str(ENOUGH_OF_IT)})
        for number, resource in enumerate(announced.resources)
    ]
    plain = make_pod("plain", profile)
    found += [
        changed(plain, pointer, value, f"other-{pointer.rsplit('/', 1)[-1].lower()}")
        for pointer, value in OTHER_VALUES.items()
        if any(_is_covered(pointer.replace("/0/", "/*/"), path) for path in announced.pod_fields)
    ]
    return found


def _is_covered(pointer: str, path: str) -> bool:
    """Whether a declared path says that this field is worth a sample; a broad one says so of few."""
    return pointer == path or (pointer in WIDELY_READ and pointer.startswith(f"{path}/"))


def _of_team(team: str, profile: str, announced: Announced) -> Document:
    pod = make_pod(team, profile, labels=dict.fromkeys(("team", *announced.labels), team))
    pod["metadata"]["annotations"] = dict.fromkeys(announced.annotations, team)
    return pod


def changed(pod: Document, pointer: str, value: Any, name: str) -> Document:
    """Return a copy under that name with another value at the JSON pointer."""
    copied: Any = copy.deepcopy(pod)
    place: Any = copied
    *path, last = pointer.split("/")[1:]
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    place[last] = value
    return renamed(copied, name)


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
