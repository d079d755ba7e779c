"""Objects of further kinds that sidecars watch: one watch a kind, shared by all sidecars that want it.

    handshake --StateInterest.resources--> WatchedObjects --start--> a reflector of the scheduler process
    its objects, as the API server's bytes --changes--> StateFeed of each plugin that wants the kind
    the last of these plugins goes --> the watch ends, and its objects go with it

Source: proto/berth/plugin/v1/identity.proto WatchedResource, state.proto ObjectUpsert.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import msgspec

from berth.framework.cluster_event import ActionType, ClusterEvent
from berth_plugin_proto import identity_pb2, state_pb2


class WatchedKind(NamedTuple):
    """A kind, perhaps narrowed by a label selector."""

    group: str
    version: str
    resource: str
    label_selector: str = ""

    @property
    def events(self) -> str:
        """The kind's name in EventInterest."""
        return ".".join(part for part in (self.resource, self.version, self.group) if part)


class WatchedObject(NamedTuple):
    """An object as the API server's JSON."""

    namespace: str
    name: str
    data: bytes
    uid: str = ""
    labels: Mapping[str, str] = MappingProxyType({})


Stop = Callable[[], None]
"""Ends a watch."""
OnEvent = Callable[[ClusterEvent, WatchedObject | None, WatchedObject | None], None]
"""Called with what an object was, and what it is now."""


class Follower(Protocol):
    """Receives the changes of watched objects."""

    def take(self, change: state_pb2.Change) -> None:
        """Receive one change."""

    def on_listing(self) -> None:
        """Receive that a kind was listed, or can't be."""


class ObjectsOfKind:
    """The objects of one kind, and their followers; a reflector's handler."""

    def __init__(self, kind: WatchedKind, on_event: OnEvent) -> None:
        self.kind = kind
        self._on_event = on_event
        self.followers: list[Follower] = []
        self.overdue = ""
        """Why the kind counts as one that can't be listed; empty while there is hope, and once it was."""
        self._objects: dict[tuple[str, str], WatchedObject] = {}

    def upserts(self) -> Iterator[state_pb2.Change]:
        """Upserts of all objects."""
        return (self._upsert(obj) for obj in self._objects.values())

    def on_add(self, obj: WatchedObject) -> None:
        """Store a new object and notify the followers."""
        self._put(obj)
        self._on_event(ClusterEvent(self.kind.events, ActionType.ADD), None, obj)

    def on_update(self, old: WatchedObject, new: WatchedObject) -> None:
        """Store the newer version and notify the followers."""
        self._put(new)
        self._on_event(ClusterEvent(self.kind.events, ActionType.UPDATE), old, new)

    def on_delete(self, obj: WatchedObject) -> None:
        """Remove the object and notify the followers."""
        del self._objects[obj.namespace, obj.name]
        self._tell(state_pb2.Change(object_remove=state_pb2.ObjectRemove(key=self._key(obj))))
        self._on_event(ClusterEvent(self.kind.events, ActionType.DELETE), obj, None)

    def _put(self, obj: WatchedObject) -> None:
        self._objects[obj.namespace, obj.name] = obj
        self._tell(self._upsert(obj))

    def on_synced(self) -> None:
        """All objects have been delivered; notify the followers that the kind is listed."""
        self._listed("")

    def on_overdue(self, why: str) -> None:
        """The kind can't be listed for now; nothing waits for it any longer."""
        self._listed(why)

    def _listed(self, overdue: str) -> None:
        self.overdue = overdue
        for follower in self.followers:
            follower.on_listing()

    def _tell(self, change: state_pb2.Change) -> None:
        for follower in self.followers:
            follower.take(change)

    def _upsert(self, obj: WatchedObject) -> state_pb2.Change:
        return state_pb2.Change(object_upsert=state_pb2.ObjectUpsert(key=self._key(obj), object=obj.data))

    def _key(self, obj: WatchedObject) -> state_pb2.ObjectKey:
        kind = self.kind
        return state_pb2.ObjectKey(
            group=kind.group,
            version=kind.version,
            resource=kind.resource,
            namespace=obj.namespace,
            name=obj.name,
        )


StartWatch = Callable[[WatchedKind, ObjectsOfKind], Stop]


class WatchedObjects:
    """All kinds that some sidecar watches; a watch starts with the first follower.

    `start` starts a watch and returns a function that ends it. `on_event` is called with every change.
    """

    def __init__(self, start: StartWatch, on_event: OnEvent) -> None:
        self._start = start
        self._on_event = on_event
        self._kinds: dict[WatchedKind, ObjectsOfKind] = {}
        self._stops: dict[WatchedKind, Stop] = {}

    def follow(self, follower: Follower, wanted: Iterable[identity_pb2.WatchedResource]) -> None:
        """Notify the follower of exactly these kinds from now on."""
        kinds = set(_kinds(wanted))
        for kind, objects in list(self._kinds.items()):
            if kind not in kinds and follower in objects.followers:
                objects.followers.remove(follower)
                if not objects.followers:
                    del self._kinds[kind]
                    self._stops.pop(kind)()
        for kind in kinds:
            objects = self._objects(kind)
            if follower not in objects.followers:
                objects.followers.append(follower)

    def forget(self, follower: Follower) -> None:
        """Remove the follower."""
        self.follow(follower, ())

    def upserts(self, wanted: Iterable[identity_pb2.WatchedResource]) -> Iterator[state_pb2.Change]:
        """Upserts of all objects of these kinds, as far as they are followed."""
        for kind in dict.fromkeys(_kinds(wanted)):
            if kind in self._kinds:
                yield from self._kinds[kind].upserts()

    def overdue(self, wanted: Iterable[identity_pb2.WatchedResource]) -> list[str]:
        """The kinds among these that can't be listed, and why."""
        known = (self._kinds.get(kind) for kind in dict.fromkeys(_kinds(wanted)))
        return [objects.overdue for objects in known if objects is not None and objects.overdue]

    def _objects(self, kind: WatchedKind) -> ObjectsOfKind:
        objects = self._kinds.get(kind)
        if objects is None:
            objects = self._kinds[kind] = ObjectsOfKind(kind, self._on_event)
            self._stops[kind] = self._start(kind, objects)
        return objects


class _Name(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}


class _Named(msgspec.Struct):
    metadata: _Name


_decoder = msgspec.json.Decoder(_Named)


def decode_object(data: bytes) -> WatchedObject:
    """Decode an object of any kind, and keep its JSON.

    Raises: msgspec.MsgspecError where it has no name; UnicodeDecodeError where it is not UTF-8.
    """
    metadata, kept = _decoder.decode(data).metadata, bytes(data)
    kept.decode()  # Skipped fields are checked, too: a plugin's decoder refuses invalid UTF-8 anywhere.
    return WatchedObject(metadata.namespace, metadata.name, kept, metadata.uid, metadata.labels)


def _kinds(wanted: Iterable[identity_pb2.WatchedResource]) -> Iterator[WatchedKind]:
    for each in wanted:
        yield WatchedKind(each.group, each.version, each.resource, each.label_selector)
