"""Deployments become pods, at once and without ReplicaSets between them: the one simplification.

    template ─▶ hash ─▶ pods of that hash come (maxSurge), others go once those are ready (maxUnavailable)

Source: pkg/controller/deployment (v1.36).
"""

import asyncio
import copy
import hashlib
import math
from collections.abc import Callable

import msgspec

from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.meta import generated_name
from berth.sandbox.rest import Deletion, RestStorage
from berth.sandbox.store import Json, StoredObject, encode

HASH_LABEL = "pod-template-hash"
_FINISHED = ("Succeeded", "Failed")


class _Pods(msgspec.Struct, frozen=True):
    """The pods of one deployment."""

    new: list[Json]
    old: list[Json]

    @property
    def ready(self) -> int:
        return sum(map(_is_ready, [*self.new, *self.old]))


class Deployments:
    """Keeps the pods of all deployments until it is closed."""

    def __init__(self, rest: RestStorage) -> None:
        deployments, pods = (
            rest.catalogue.get("apps", "v1", "deployments"),
            rest.catalogue.get("", "v1", "pods"),
        )
        assert deployments is not None
        assert pods is not None
        self._rest = rest
        self._deployments: ServedResource = deployments
        self._pods: ServedResource = pods
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._unsubscribe: list[Callable[[], None]] = [
            rest.collection(resource).subscribe(self._wake) for resource in (deployments, pods)
        ]

    def close(self) -> None:
        """Stop."""
        for stop in self._unsubscribe:
            stop()

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._advance)

    def _advance(self) -> None:
        self._scheduled = False
        for entry in self._rest.collection(self._deployments).entries():
            document = entry.decode()
            if not document["metadata"].get("deletionTimestamp"):
                self._keep(entry, document)

    def _keep(self, entry: StoredObject, deployment: Json) -> None:
        template = deployment["spec"].get("template") or {}
        name = hashlib.sha256(encode(template)).hexdigest()[:10]
        pods = self._pods_of(deployment, name)
        if not deployment["spec"].get("paused"):
            self._scale(deployment, template, name, pods)
        self._report(entry.key, self._pods_of(deployment, name))

    def _pods_of(self, deployment: Json, name: str) -> _Pods:
        uid, namespace = deployment["metadata"]["uid"], deployment["metadata"]["namespace"]
        wanted = uid.encode()
        found = _Pods([], [])
        for entry in self._rest.collection(self._pods).entries(f"{namespace}/"):
            if wanted not in entry.body:
                continue
            pod = entry.decode()
            if _is_owned(pod, uid) and pod.get("status", {}).get("phase") not in _FINISHED:
                same = pod["metadata"].get("labels", {}).get(HASH_LABEL) == name
                (found.new if same else found.old).append(pod)
        return found

    def _scale(self, deployment: Json, template: Json, name: str, pods: _Pods) -> None:
        spec = deployment["spec"]
        replicas = spec.get("replicas", 1)
        surge, unavailable = _bounds(spec.get("strategy") or {}, replicas)
        new, old = _staying(pods.new), _staying(pods.old)
        missing = min(replicas - len(new), replicas + surge - len(new) - len(old))
        if (spec.get("strategy") or {}).get("type") == "Recreate":
            # A pod that is still ending runs. Source: pkg/controller/deployment/recreate.go (v1.36).
            unavailable, missing = replicas, 0 if pods.old else replicas - len(new)
        for _ in range(missing):
            self._create(deployment, template, name)
        for pod in new[replicas:] if replicas < len(new) else ():
            self._delete(pod)
        # What is not ready goes first: taking it away makes nothing worse.
        old.sort(key=_is_ready)
        spare = sum(map(_is_ready, [*new, *old])) - (replicas - unavailable)
        for pod in old:
            if _is_ready(pod):
                spare -= 1
            if spare >= 0 or not _is_ready(pod):
                self._delete(pod)

    def _create(self, deployment: Json, template: Json, name: str) -> None:
        metadata = deployment["metadata"]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        given = template.get("metadata") or {}
        made = {
            "name": generated_name(f"{metadata['name']}-{name}-"),
            "labels": {**(given.get("labels") or {}), HASH_LABEL: name},
            "annotations": dict(given.get("annotations") or {}),
            "ownerReferences": [owner],
        }
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": made,
            "spec": copy.deepcopy(template["spec"]),
        }
        try:
            self._rest.create(self._pods, metadata["namespace"], document)
        except ApiError as error:
            # Without the generated name the text stays the same, and so does the status.
            self._fail(metadata, error.message.replace(str(made["name"]), metadata["name"]))

    def _fail(self, metadata: Json, message: str) -> None:
        condition = _condition("ReplicaFailure", "True", "FailedCreate", message, self._rest.now())

        def note(deployment: Json) -> None:
            _set_condition(deployment.setdefault("status", {}), condition)

        self._rest.change(self._deployments, metadata["namespace"], metadata["name"], note)

    def _delete(self, pod: Json) -> None:
        entry = self._rest.collection(self._pods).get(
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        )
        if entry is not None:
            self._rest.delete(self._pods, entry, Deletion())

    def _report(self, key: str, pods: _Pods) -> None:
        namespace, _, name = key.partition("/")

        def report(document: Json) -> None:
            document["status"] = _status(document, pods, self._rest.now())

        self._rest.change(self._deployments, namespace, name, report)


def _status(deployment: Json, pods: _Pods, now: str) -> Json:
    spec, replicas = deployment["spec"], deployment["spec"].get("replicas", 1)
    new, ready = _staying(pods.new), sum(map(_is_ready, _staying([*pods.new, *pods.old])))
    total = len(new) + len(_staying(pods.old))
    status: Json = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "replicas": total,
        "updatedReplicas": len(new),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": max(0, max(total, replicas) - ready),
        "conditions": copy.deepcopy(deployment.get("status", {}).get("conditions") or []),
    }
    status = {
        key: value for key, value in status.items() if value or key in ("conditions", "observedGeneration")
    }
    _, unavailable = _bounds(spec.get("strategy") or {}, replicas)
    enough = ready >= replicas - unavailable
    words = ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    lacks = ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    _set_condition(status, _condition("Available", str(enough), *(words if enough else lacks), now))
    name = deployment["metadata"]["name"]
    done = len(new) == total == replicas and sum(map(_is_ready, new)) == replicas
    progress = ("NewReplicaSetAvailable", f'Deployment "{name}" has successfully progressed.')
    going = ("ReplicaSetUpdated", f'Deployment "{name}" is progressing.')
    _set_condition(status, _condition("Progressing", "True", *(progress if done else going), now))
    return status


def _condition(kind: str, status: str, reason: str, message: str, now: str) -> Json:
    made = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**made, "lastUpdateTime": now, "lastTransitionTime": now}


def _set_condition(status: Json, condition: Json) -> None:
    conditions = status.setdefault("conditions", [])
    for index, one in enumerate(conditions):
        if one["type"] != condition["type"]:
            continue
        if all(one.get(field) == condition[field] for field in ("status", "reason", "message")):
            return
        if one["status"] == condition["status"]:
            condition = {**condition, "lastTransitionTime": one["lastTransitionTime"]}
        conditions[index] = condition
        return
    conditions.append(condition)


def _bounds(strategy: Json, replicas: int) -> tuple[int, int]:
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _share(value: int | str, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    exact = int(value.removesuffix("%")) * replicas / 100
    return math.ceil(exact) if up else math.floor(exact)


def _staying(pods: list[Json]) -> list[Json]:
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def _is_owned(pod: Json, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ())


def _is_ready(pod: Json) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
