"""What the operator sees of the cluster: its own kinds, what it keeps, and the schedulers' pods, mirrored."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from berth.operator.kinds import Json, SchedulerKey, key_of, scheduler_of
from berth.operator.mounts import about_pod, mount_failure
from berth.operator.rendering.plan import PROFILES

_FINISHED = ("Succeeded", "Failed")


class ObjectName(NamedTuple):
    """An object of one kind, by name; no namespace for what is cluster-wide."""

    namespace: str
    name: str


class KindCache:
    """All objects of a kind; `on_change` is called with each that came, changed or went, and what it was.

    A handler of a reflector, or of one for each namespace.
    """

    def __init__(self, on_change: Callable[[Json, Json | None], None]) -> None:
        self.objects: dict[ObjectName, Json] = {}
        self._on_change = on_change

    def on_add(self, obj: Json) -> None:
        """Take it in."""
        self.objects[_name(obj)] = obj
        self._on_change(obj, None)

    def on_update(self, old: Json, new: Json) -> None:
        """Take the new state in."""
        self.objects[_name(new)] = new
        self._on_change(new, old)

    def on_delete(self, obj: Json) -> None:
        """Forget it."""
        self.objects.pop(_name(obj), None)
        self._on_change(obj, None)

    def note(self, obj: Json) -> None:
        """Take in what a write gave back, before the watch says so."""
        self.objects[_name(obj)] = obj

    def on_synced(self) -> None:
        """Nothing waits for this."""


class ClusterView:
    """Everything that is watched; `wanted` is called with the Scheduler that a change concerns."""

    def __init__(self, wanted: Callable[[SchedulerKey], None], kept: tuple[str, ...]) -> None:
        self._wanted = wanted
        self.schedulers = KindCache(self._scheduler_changed)
        self.plugins = KindCache(self._others_changed)
        self.pods = KindCache(self._pod_changed)
        self.api_services = KindCache(self._explaining_changed)
        self.explain_api_due = asyncio.Event()
        """Set when what the APIService of explanations rests on has changed."""
        self.authority = KindCache(self._authority_changed)
        self.published = KindCache(self._authority_changed)
        self.certificates = KindCache(self._others_changed)
        self.mounts = KindCache(self._mount_failed)
        """Events of volumes that could not be mounted."""
        changed = {"Deployment": self._deployment_changed}
        self.kept = {kind: KindCache(changed.get(kind, self._kept_changed)) for kind in kept}

    def scheduler(self, key: SchedulerKey) -> Json | None:
        """Give a Scheduler, unless it is gone or going."""
        found = self.schedulers.objects.get(ObjectName(*key))
        return None if found is None or found["metadata"].get("deletionTimestamp") else found

    def plugins_in(self, namespace: str) -> dict[str, Json]:
        """Give the SchedulerPlugins of a namespace by name."""
        return {name: found for (where, name), found in self.plugins.objects.items() if where == namespace}

    def users_of(self, plugin: SchedulerKey) -> list[Json]:
        """Give the Schedulers that name a plugin, in order."""
        found = [one for one in self.schedulers.objects.values() if _uses(one, plugin)]
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    def kept_for(self, key: SchedulerKey) -> Iterator[tuple[str, Json]]:
        """Give kind and state of what is kept for a Scheduler."""
        for kind, mirror in self.kept.items():
            for found in mirror.objects.values():
                if scheduler_of(found) == key:
                    yield kind, found

    def pods_of(self, key: SchedulerKey) -> list[Json]:
        """Give a Scheduler's pods, without those that are going or have ended."""
        return [
            pod
            for pod in self.all_pods_of(key)
            if not pod["metadata"].get("deletionTimestamp")
            and (pod.get("status") or {}).get("phase") not in _FINISHED
        ]

    def all_pods_of(self, key: SchedulerKey) -> list[Json]:
        """Give a Scheduler's pods, those that are going and those that have ended included."""
        return [one for one in self.pods.objects.values() if scheduler_of(one) == key]

    def mount_failures(self, pods: Iterable[Json]) -> dict[str, str]:
        """Give what keeps volumes of pods from being mounted, by the pod's name."""
        events = tuple(self.mounts.objects.values())
        found = {pod["metadata"]["name"]: mount_failure(pod, events) for pod in pods} if events else {}
        return {name: text for name, text in found.items() if text}

    def everything(self) -> set[SchedulerKey]:
        """Give every Scheduler that there is, or was while something is still kept for it."""
        keys = {key_of(one) for one in self.schedulers.objects.values()}
        left = (scheduler_of(one) for mirror in self.kept.values() for one in mirror.objects.values())
        return keys | {key for key in left if key is not None}

    def _scheduler_changed(self, scheduler: Json, before: Json | None) -> None:
        self._wanted(key_of(scheduler))
        if before is None or before["metadata"].get("generation") != scheduler["metadata"].get("generation"):
            # Others may serve the same profiles, or no longer.
            self._want_all()

    def _others_changed(self, found: Json, _before: Json | None) -> None:
        # Of its namespace all: one that stopped using a plugin has no other way of telling.
        for where, name in tuple(self.schedulers.objects):
            if where == found["metadata"]["namespace"]:
                self._wanted(SchedulerKey(where, name))

    def _authority_changed(self, _found: Json, _before: Json | None) -> None:
        self.explain_api_due.set()
        self._want_all()

    def _deployment_changed(self, deployment: Json, before: Json | None) -> None:
        self._kept_changed(deployment, before)
        if before is None or _serves(before) != _serves(deployment):
            # Another Scheduler may wait for a profile that its pods give up.
            self._want_all()

    def _want_all(self) -> None:
        for where, name in tuple(self.schedulers.objects):
            self._wanted(SchedulerKey(where, name))

    def _mount_failed(self, event: Json, _before: Json | None) -> None:
        pod = self.pods.objects.get(ObjectName(*about_pod(event)))
        if pod is not None:
            self._kept_changed(pod, None)

    def _pod_changed(self, pod: Json, before: Json | None) -> None:
        self.explain_api_due.set()
        self._kept_changed(pod, before)

    def _explaining_changed(self, _found: Json, _before: Json | None) -> None:
        self.explain_api_due.set()

    def _kept_changed(self, obj: Json, _before: Json | None) -> None:
        key = scheduler_of(obj)
        if key is not None:
            self._wanted(key)


def _uses(scheduler: Json, plugin: SchedulerKey) -> bool:
    names = [one["name"] for one in scheduler["spec"].get("plugins") or ()]
    return scheduler["metadata"]["namespace"] == plugin.namespace and plugin.name in names


def _serves(deployment: Json) -> tuple[object, bool]:
    """Give what decides which profiles its pods serve."""
    written = (deployment["metadata"].get("annotations") or {}).get(PROFILES)
    return written, bool(deployment["spec"].get("replicas", 1))


def _name(obj: Json) -> ObjectName:
    metadata = obj["metadata"]
    return ObjectName(metadata.get("namespace", ""), metadata["name"])
