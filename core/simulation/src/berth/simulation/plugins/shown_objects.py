"""The objects in memory as sidecars receive them: JSON, as an API server would send it.

    state --> handler of the kind --> the core
                    +--> JSON of nodes and pods, kept for calls      +--> watches of kinds that plugins want

Objects have only the fields that decisions read, as in a snapshot.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from berth.event_handlers.handler import ResourceHandler
from berth.objects.api_object import TypedObject
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.selector_text import LabelTest, parse_label_selector
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.cluster_state.watched_objects import (
    ObjectsOfKind,
    WatchedKind,
    WatchedObject,
    decode_object,
)
from berth.simulation.cluster.state import ClusterState
from berth.simulation.reading.inputs import ClusterInput, Document
from berth.simulation.reading.kinds import KINDS, SimulatedKind, document_of

PLURALS: Final[Mapping[str, str]] = {"nodemetrics": "nodes", "podmetrics": "pods"}
"""Resources that are called after other kinds."""


class _Watch(msgspec.Struct, frozen=True):
    handler: ObjectsOfKind
    tests: list[LabelTest]

    def wants(self, obj: WatchedObject | None) -> bool:
        return obj is not None and all(test(obj.labels) for test in self.tests)

    def tell(self, old: WatchedObject | None, new: WatchedObject | None) -> None:
        """Forward a change as a server's watch with that selector does."""
        before, after = self.wants(old), self.wants(new)
        if before and after:
            self.handler.on_update(old, new)  # type: ignore[arg-type] # None is not wanted
        elif after:
            self.handler.on_add(new)  # type: ignore[arg-type] # as above
        elif before:
            self.handler.on_delete(old)  # type: ignore[arg-type] # as above


class ShownObjects:
    """The JSON of nodes and pods, and the watches of plugins. Implements raw_objects.KeptObjects."""

    def __init__(self, cluster: ClusterInput) -> None:
        self.nodes: RawObjects[Node] = RawObjects()
        self.pods: RawObjects[Pod] = RawObjects()
        self.state: ClusterState | None = None
        self._others = cluster.others
        self._shown: set[int] = set()
        """Which of those a plugin was shown."""
        self._watches: dict[SimulatedKind, list[_Watch]] = {kind: [] for kind in KINDS}
        self._pods_kind = next(kind for kind in KINDS if kind.type is Pod)

    def shown(self, kind: SimulatedKind, handler: ResourceHandler) -> ResourceHandler:
        """Wrap the handler so that plugins receive every change, too."""
        if kind.type is Node:
            handler = _KeepingHandler(self.nodes, kind, self.nodes.following(handler))
        elif kind.type is Pod:
            handler = _KeepingHandler(self.pods, kind, self.pods.following(handler))
        return _ForwardingHandler(kind, handler, self._watches[kind])

    def show(self, pod: Pod) -> None:
        """Keep the JSON of a hypothetical pod."""
        _keep(self.pods, pod, document_of(pod, self._pods_kind))

    def hide(self, pod: Pod) -> None:
        """Drop a hypothetical pod."""
        self.pods.drop(pod.uid)

    def watch(self, wanted: WatchedKind, handler: ObjectsOfKind) -> Callable[[], None]:
        """Send the handler all objects of that kind, and their changes; returns a function that ends it."""
        watch = _Watch(handler, parse_label_selector(wanted.label_selector))
        for obj in self._there(wanted):
            watch.tell(None, obj)
        for at, other in self._others_there(wanted):
            if watch.wants(other):
                self._shown.add(at)
                watch.tell(None, other)
        handler.on_synced()
        for kind, watches in self._watches.items():
            if _is_of(kind, wanted):
                watches.append(watch)
                return lambda: watches.remove(watch)
        return lambda: None

    def shown_kinds(self) -> Counter[str]:
        """How many of the input's further objects a plugin received, by kind."""
        return Counter(self._others[at]["kind"] for at in self._shown)

    def _there(self, wanted: WatchedKind) -> Iterator[WatchedObject]:
        assert self.state is not None, "a scheduler was made"
        for kind in KINDS:
            if _is_of(kind, wanted):
                yield from (_watched(obj, kind) for obj in self.state.all(kind.type))

    def _others_there(self, wanted: WatchedKind) -> Iterator[tuple[int, WatchedObject]]:
        """The input's further objects of that kind, by index."""
        for at, document in enumerate(self._others):
            group, _, version = document["apiVersion"].rpartition("/")
            if (group, version) == (wanted.group, wanted.version) and _is_called(document, wanted.resource):
                yield at, decode_object(msgspec.json.encode(document))


class _KeepingHandler:
    """Keeps the JSON of each object, then forwards the event. Implements ResourceHandler."""

    def __init__(self, kept: RawObjects[Any], kind: SimulatedKind, handler: ResourceHandler) -> None:
        self._kept, self._kind, self._handler = kept, kind, handler
        self.synced = False

    def on_add(self, obj: Any, /) -> None:
        """Keep and pass on."""
        _keep(self._kept, obj, document_of(obj, self._kind))
        self._handler.on_add(obj)

    def on_update(self, old: Any, new: Any, /) -> None:
        """Keep and pass on."""
        _keep(self._kept, new, document_of(new, self._kind))
        self._handler.on_update(old, new)

    def on_delete(self, obj: Any, /) -> None:
        """Pass on: what is gone is forgotten there."""
        self._handler.on_delete(obj)

    def on_synced(self) -> None:
        """Pass on."""
        self._handler.on_synced()


class _ForwardingHandler:
    """Forwards every event, then to the plugins' watches. Implements ResourceHandler."""

    def __init__(self, kind: SimulatedKind, handler: ResourceHandler, watches: list[_Watch]) -> None:
        self._kind, self._handler, self._watches = kind, handler, watches
        self.synced = False

    def on_add(self, obj: Any, /) -> None:
        """Pass on."""
        self._handler.on_add(obj)
        self._tell(None, obj)

    def on_update(self, old: Any, new: Any, /) -> None:
        """Pass on."""
        self._handler.on_update(old, new)
        self._tell(old, new)

    def on_delete(self, obj: Any, /) -> None:
        """Pass on."""
        self._handler.on_delete(obj)
        self._tell(obj, None)

    def on_synced(self) -> None:
        """Pass on."""
        self._handler.on_synced()

    def _tell(self, old: TypedObject | None, new: TypedObject | None) -> None:
        if not self._watches:
            return
        before = None if old is None else _watched(old, self._kind)
        after = None if new is None else _watched(new, self._kind)
        for watch in self._watches:
            watch.tell(before, after)


def _keep(kept: RawObjects[Any], obj: TypedObject, data: bytes) -> None:
    kept.decoding(lambda _: obj)(data)


def _watched(obj: TypedObject, kind: SimulatedKind) -> WatchedObject:
    return decode_object(document_of(obj, kind))


def _is_of(kind: SimulatedKind, wanted: WatchedKind) -> bool:
    resource = kind.resource
    return (resource.group, resource.version, resource.plural) == wanted[:3]


def _is_called(document: Document, resource: str) -> bool:
    """Whether that is the English plural of the document's kind."""
    kind = document["kind"].lower()
    return resource in (PLURALS.get(kind, f"{kind}s"), f"{kind}es", f"{kind[:-1]}ies", kind)
