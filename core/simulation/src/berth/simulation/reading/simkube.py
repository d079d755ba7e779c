"""Pods of a SimKube trace: when each comes, how long it runs, and when it is deleted.

    trace --+--> Pod ----------------------------------> a pod from its event to its deletion
            +--> Deployment, ReplicaSet, StatefulSet,
            |    DaemonSet ----------------------------> a revision for each change (workloads.py)
            +--> other owners of tracked pods ---------> a pod for each that ran, when it started
            +--> owners without tracked pods ----------> left out, and counted

A trace has neither nodes nor what its pods refer to: these come from another input.

Source: sk-core/src/trace/mod.rs and docs/ref/trace-files.md of acrlabs/simkube, format 2.
"""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from berth.simulation.errors import InputError
from berth.simulation.reading.packed_lines import NO_JSON
from berth.simulation.reading.revisions import DAEMON_SET, MAX_PODS, Revision, read_rollout
from berth.simulation.reading.timeline import ARRIVAL, DEPARTURE, DURATION

Document = dict[str, Any]

FORMAT: Final = 2
REPLICATED: Final = frozenset({"apps/v1.Deployment", "apps/v1.ReplicaSet", "apps/v1.StatefulSet"})
"""Owners that say how many pods they have."""
DAEMON_SETS: Final = "apps/v1.DaemonSet"
POD: Final = "v1.Pod"
TEMPLATES: Final = {"batch/v1.CronJob": "/spec/jobTemplate/spec/template"}
TEMPLATE: Final = "/spec/template"


class _Tracked(msgspec.Struct, rename="camel"):
    pod_spec_template_paths: list[str] | None = None


class _Config(msgspec.Struct, rename="camel"):
    tracked_objects: dict[str, _Tracked] = {}


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[Document] = []
    deleted_objs: list[Document] = []


Lifecycle = str | dict[str, int | list[int]]
"""`Empty`, or when a pod began to run, and perhaps when it ended."""


class _Trace(msgspec.Struct):
    version: int
    config: _Config
    events: list[_Event]
    pod_lifecycles: dict[tuple[str, str], dict[int, list[Lifecycle]]] = {}


_decode = msgspec.msgpack.Decoder(_Trace).decode


def is_trace(start: bytes) -> bool:
    """Whether these are the first bytes of a msgpack map: no text begins so."""
    return start[:1] == b"\xde" or b"\x80" <= start[:1] <= b"\x8f"


class _Life(NamedTuple):
    """When a pod started and ended, as far as the trace has it. Units: seconds since the epoch."""

    start: int | None = None
    end: int | None = None


@dataclass(slots=True)
class _Owner:
    """An object, and its current pods."""

    template: Document
    pods: list[Document] = field(default_factory=list)


class Trace:
    """The pods of one trace, and the owners whose pods a simulation makes."""

    def __init__(self, data: bytes, file: str) -> None:
        """Read the trace. Raises: InputError."""
        self._file = file
        try:
            self._trace = _decode(data)
        except NO_JSON as error:
            text = f"{file}: no trace of SimKube's format {FORMAT} ({error})"
            raise InputError(f"{text}; export it anew with SimKube 2 or newer") from None
        if self._trace.version != FORMAT:
            text = f"{file}: version: found {self._trace.version}"
            raise InputError(f"{text}; traces of SimKube's format {FORMAT} can be read")
        self._began = self._trace.events[0].ts if self._trace.events else 0
        self._owners: dict[tuple[str, str], _Owner] = {}
        self._found: list[Document] = []
        self._names: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._newest: dict[tuple[str, str], Revision] = {}
        self._planned = 0
        self.revisions: list[Revision] = []
        """In the order of time; complete once `documents` were read."""

    def documents(self) -> list[Document]:
        """The pods with their times in annotations, and the owners whose pods are not in the trace.

        Raises: InputError.
        """
        for event in self._trace.events:
            for document in event.applied_objs:
                self._apply(event.ts, document)
            for document in event.deleted_objs:
                self._remove(event.ts, self._identified(document))
        return self._found

    def _identified(self, document: Document) -> tuple[str, str]:
        """The object's kind and name as the trace spells them."""
        try:
            metadata = document["metadata"]
            namespace = metadata.get("namespace") or "default"
            return f"{document['apiVersion']}.{document['kind']}", f"{namespace}/{metadata['name']}"
        except (LookupError, TypeError, AttributeError):
            raise InputError(
                f"{self._file}: events: found an object without apiVersion, kind and metadata.name; "
                "export the trace anew"
            ) from None

    def _apply(self, ts: int, document: Document) -> None:
        key = self._identified(document)
        template, owner = self._template(key[0], document), self._owners.get(key)
        if template is not None and (key[0] in REPLICATED or key[0] == DAEMON_SETS):
            self._revise(self._revision(ts, key, template, document), key)
            return
        starts = self._starts(ts, key)
        if template is None or starts is None:
            self._found.append(document)
            return
        if owner is not None and owner.template != template:
            self._remove(ts, key)
            owner = None
        if owner is None:
            owner = self._owners[key] = _Owner(template)
        while len(owner.pods) > len(starts):
            self._end(ts, owner.pods.pop())
        for start in starts[len(owner.pods) :]:
            owner.pods.append(self._pod(key[1], template, *start))

    def _revision(self, ts: int, key: tuple[str, str], template: Document, document: Document) -> Revision:
        spec, kind = document["spec"], key[0].rpartition(".")[2]
        where = f"{self._file}: {kind} {key[1]}: spec"
        lives = self._lives(key)
        ended = [life.end - life.start if life.start and life.end else None for life in lives]
        return Revision(
            kind,
            key[1],
            float(max(0, ts - self._began)),
            template,
            replicas=self._replicas(key, document) if key[0] in REPLICATED else 0,
            # SimKube, too, gives a pod the life of the one that was created at its place.
            durations=tuple(None if seconds is None else float(max(0, seconds)) for seconds in ended),
            rollout=read_rollout(kind, spec, where),
        )

    def _revise(self, revision: Revision, key: tuple[str, str]) -> None:
        """Record an owner that was created, changed or deleted."""
        before = self._newest.get(key)
        if before is not None and msgspec.structs.replace(before, at=revision.at) == revision:
            return
        same = before is not None and before.template == revision.template
        self._planned += max(0, revision.replicas - (before.replicas if before and same else 0))
        if self._planned > MAX_PODS:
            raise InputError(f"{self._file}: more than {MAX_PODS} pods; export a shorter time")
        self._newest[key] = revision
        self.revisions.append(revision)

    def _remove(self, ts: int, key: tuple[str, str]) -> None:
        newest = self._newest.get(key)
        if newest is not None and newest.template is not None:
            at = float(max(0, ts - self._began))
            self._revise(Revision(newest.kind, newest.key, at), key)
        owner = self._owners.pop(key, None)
        for pod in owner.pods if owner is not None else ():
            self._end(ts, pod)

    def _starts(self, ts: int, key: tuple[str, str]) -> list[tuple[int, _Life]] | None:
        """When each pod of the object is created; None where the trace does not have it."""
        lives = self._lives(key)
        if key[0] == POD:
            return [(ts, lives[0] if lives else _Life())]
        return [(life.start, life) for life in lives if life.start is not None] or None

    def _replicas(self, key: tuple[str, str], document: Document) -> int:
        spec = document.get("spec")
        count = spec.get("replicas") if isinstance(spec, dict) else None
        count = 1 if count is None else count
        if not isinstance(count, int) or not 0 <= count <= MAX_PODS:
            text = f"{self._file}: {key[0]} {key[1]}: spec.replicas: found {str(count)[:60]}"
            raise InputError(f"{text}; a number up to {MAX_PODS} is expected")
        return count

    def _lives(self, key: tuple[str, str]) -> list[_Life]:
        """The lives of the owner's pods in the order of their starts."""
        found = []
        for lives in self._trace.pod_lifecycles.get(key, {}).values():
            for life in lives:
                match life:
                    case {"Finished": [int(start), int(end)]}:
                        found.append(_Life(start, end))
                    case {"Running": int(start)}:
                        found.append(_Life(start))
        return sorted(found, key=lambda life: life.start or 0)

    def _template(self, kind: str, document: Document) -> Document | None:
        """The object's pod template; None where it has none, or more than one."""
        tracked = self._trace.config.tracked_objects.get(kind)
        paths = (tracked.pod_spec_template_paths if tracked else None) or [TEMPLATES.get(kind, TEMPLATE)]
        found: Any = document
        if kind == DAEMON_SETS or kind in REPLICATED:
            found = (document.get("spec") or {}).get("template")
        elif kind != POD:
            for part in paths[0].strip("/").split("/"):
                found = found.get(part) if isinstance(found, dict) else None
        return found if len(paths) == 1 and isinstance(found, dict) else None

    def _pod(self, owner: str, template: Document, ts: int, life: _Life) -> Document:
        """A pod that is created at that time."""
        if len(self._found) >= MAX_PODS:
            raise InputError(f"{self._file}: more than {MAX_PODS} pods; export a shorter time")
        metadata = template.get("metadata")
        kept = metadata if isinstance(metadata, dict) else {}
        namespace, _, name = owner.partition("/")
        made: Document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self._name(owner, name, is_pod=template.get("kind") == "Pod"),
                "namespace": namespace,
                "labels": dict(kept.get("labels") or {}),
                "annotations": {**(kept.get("annotations") or {}), ARRIVAL: str(max(0, ts - self._began))},
            },
            "spec": deepcopy(template.get("spec")),
        }
        if life.start is not None and life.end is not None:
            made["metadata"]["annotations"][DURATION] = str(max(0, life.end - life.start))
        self._found.append(made)
        return made

    def _name(self, owner: str, name: str, *, is_pod: bool) -> str:
        """A unique name: a pod's own, or the owner's with a number."""
        namespace = owner.partition("/")[0]
        if is_pod and owner not in self._names:
            self._names.add(owner)
            return name
        number = self._numbers[owner]
        while f"{namespace}/{name}-{number}" in self._names:
            number += 1
        self._numbers[owner] = number + 1
        self._names.add(f"{namespace}/{name}-{number}")
        return f"{name}-{number}"

    def _end(self, ts: int, pod: Document) -> None:
        """Set the pod's deletion at that time, unless it is created later."""
        annotations = pod["metadata"]["annotations"]
        annotations[DEPARTURE] = str(max(int(annotations[ARRIVAL]), ts - self._began))


def template_pod(revision: Revision) -> Document | None:
    """A pod of the owner's template; None where it has none any more."""
    if revision.template is None:
        return None
    metadata = revision.template.get("metadata")
    kept = metadata if isinstance(metadata, dict) else {}
    namespace, _, name = revision.key.partition("/")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(kept.get("labels") or {}),
            "annotations": dict(kept.get("annotations") or {}),
            # A drain recognizes them by this. The owner of a Deployment's pods would be a ReplicaSet.
            "ownerReferences": [_controller(revision, name)] if revision.kind == DAEMON_SET else [],
        },
        "spec": deepcopy(revision.template.get("spec")),
    }


def _controller(revision: Revision, name: str) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": revision.kind, "name": name, "uid": revision.owner}
    return {**owner, "controller": True}
