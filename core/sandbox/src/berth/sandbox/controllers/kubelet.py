"""Fake kubelets: bound pods run at once, deleted ones stop within their short grace.

Pods of chosen images are left to `containers`, which starts real processes for them. Another pod with the
annotation `sandbox.berth.dev/run-seconds` has done its work after that time, and succeeds.

All nodes share one: it follows the pods' history, as a watch does, and writes what a node's kubelet would.
Source of the shapes: pkg/kubelet/status and pkg/kubelet/kubelet_pods.go (v1.36).
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from berth.sandbox import meta
from berth.sandbox.containers import PodRuns
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Compacted, EventType, Json, StoredObject, StoreEvent

_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_FINISHED: Final = ("Succeeded", "Failed")
RUN_SECONDS: Final = "sandbox.berth.dev/run-seconds"


class Kubelets:
    """Runs bound pods until it is closed."""

    def __init__(self, rest: RestStorage, *, grace_seconds: float, runs: PodRuns | None = None) -> None:
        pods = rest.catalogue.get("", "v1", "pods")
        assert pods is not None
        self._rest = rest
        self._pods: ServedResource = pods
        self._collection = rest.collection(pods)
        self._grace_seconds = grace_seconds
        self._runs = runs
        self._position = self._collection.end_position()
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._addresses = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._working: dict[str, asyncio.TimerHandle] = {}
        self._unsubscribe: Callable[[], None] = self._collection.subscribe(self._wake)
        for entry in self._collection.entries():
            self._look(entry)

    def close(self) -> None:
        """Stop."""
        self._unsubscribe()
        for timers in (self._timers, self._working):
            for timer in timers.values():
                timer.cancel()
            timers.clear()

    def _wake(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._follow)

    def _follow(self) -> None:
        self._scheduled = False
        try:
            events: list[StoreEvent] = self._collection.read(self._position)
        except Compacted:
            self._position = self._collection.end_position()
            for entry in self._collection.entries():
                self._look(entry)
            return
        self._position += len(events)
        for event in events:
            if event.type is not EventType.DELETED:
                self._look(event.entry)
            elif self._runs is not None:
                self._runs.forget(event.entry.key, event.entry.decode()["metadata"]["uid"])

    def _look(self, entry: StoredObject) -> None:
        # Most writes are none of a kubelet's business; the bytes tell without decoding.
        if b'"nodeName":"' not in entry.body:
            return
        if b'"deletionTimestamp":"' in entry.body:
            self._stop_later(entry)
        elif b'"phase":"Pending"' in entry.body:
            self._run(entry.key)

    def _run(self, key: str) -> None:
        entry = self._collection.get(key)
        if entry is None:
            return
        pod = entry.decode()
        status = pod.get("status", {})
        if not pod["spec"].get("nodeName") or status.get("phase") != "Pending":
            return
        node = self._rest.store.collection("nodes").get(pod["spec"]["nodeName"])
        host = internal_address(node.decode() if node else None)
        if self._runs is not None and self._runs.wants(pod):
            self._runs.start(key, pod, host)
            return
        self._addresses += 1
        started(pod, host, pod_ip(self._addresses), self._rest.now())
        self._collection.put(key, pod)
        seconds = run_seconds(pod)
        if seconds is not None:
            uid = pod["metadata"]["uid"]
            self._working[uid] = self._loop.call_later(seconds, self._complete, key, uid)

    def _complete(self, key: str, uid: str) -> None:
        del self._working[uid]
        entry = self._collection.get(key)
        if entry is None:
            return
        pod = entry.decode()
        if pod["metadata"]["uid"] == uid and pod.get("status", {}).get("phase") == "Running":
            terminate(pod, self._rest.now())
            pod["status"]["phase"] = "Succeeded"
            self._collection.put(key, pod)

    def _stop_later(self, entry: StoredObject) -> None:
        if entry.key in self._timers:
            return
        metadata = entry.decode()["metadata"]
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        if self._runs is not None and self._runs.has(entry.key, metadata["uid"]):
            self._runs.stop(entry.key, grace, lambda: self._stop(entry.key, metadata["uid"]))
            return
        delay = min(self._grace_seconds, grace)
        self._timers[entry.key] = self._loop.call_later(delay, self._stop, entry.key, metadata["uid"])

    def _stop(self, key: str, uid: str) -> None:
        self._timers.pop(key, None)
        entry = self._collection.get(key)
        if entry is None:
            return
        pod = entry.decode()
        if pod["metadata"]["uid"] != uid:
            return
        namespace, _, name = key.partition("/")

        def stopped(document: Json) -> None:
            document["metadata"]["deletionGracePeriodSeconds"] = 0
            terminate(document, self._rest.now())

        try:
            self._rest.change(self._pods, namespace, name, stopped)
        except ApiError:  # it went in between
            return


def run_seconds(pod: Json) -> float | None:
    """For how long the pod says that it works; None where it says nothing that can be read."""
    try:
        return float((pod["metadata"].get("annotations") or {})[RUN_SECONDS])
    except (KeyError, ValueError):
        return None


def internal_address(node: Json | None) -> str:
    """Give a node's internal address, or one that says that it has none."""
    addresses: list[Json] = node.get("status", {}).get("addresses") or [] if node else []
    return next((str(one["address"]) for one in addresses if one.get("type") == "InternalIP"), "127.0.0.1")


def pod_ip(number: int) -> str:
    """Give the address of the n-th pod, out of 10.128.0.0/9."""
    number %= 1 << 23
    return f"10.{128 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"


def started(pod: Json, host: str, address: str, now: str) -> None:
    """Write the status of a running pod."""
    spec, status = pod["spec"], pod.setdefault("status", {})
    mine = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        for kind in _CONDITIONS
    ]
    others = [one for one in status.get("conditions", ()) if one["type"] not in _CONDITIONS]
    address = host if spec.get("hostNetwork") else address
    status |= {
        "phase": "Running",
        "conditions": mine + others,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": [
            _container_status(one, {"running": {"startedAt": now}}) for one in spec["containers"]
        ],
    }
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [_init_status(one, now) for one in spec["initContainers"]]


def terminate(pod: Json, now: str) -> None:
    """Write the status of a pod whose containers have stopped."""
    status = pod.setdefault("status", {})
    if status.get("phase") in _FINISHED:
        return
    state = {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": status.get("startTime"),
            "finishedAt": now,
        }
    }
    status["containerStatuses"] = [
        _container_status(one, state, ready=False) for one in pod["spec"]["containers"]
    ]
    for condition in status.get("conditions", ()):
        if condition["type"] in ("Ready", "ContainersReady"):
            condition["status"] = "False"


def _init_status(container: Json, now: str) -> Json:
    if container.get("restartPolicy") == "Always":
        return _container_status(container, {"running": {"startedAt": now}})
    done = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    return _container_status(container, {"terminated": done})


def _container_status(container: Json, state: Json, *, ready: bool = True) -> Json:
    image = container.get("image", "")
    identity: dict[str, Any] = {
        "containerID": f"sandbox://{meta.new_uid()}",
        "image": image,
        "imageID": image,
    }
    return {
        "name": container["name"],
        "state": state,
        "lastState": {},
        "ready": ready,
        "restartCount": 0,
        **identity,
        "started": ready,
    }
