"""Objects as the API server's JSON, kept for sidecars, which decode them with their own types.

Kept only while there are sidecars. Bytes are taken where objects are decoded, and dropped when the watch
deletes the object. The replaced version is kept for a while, for queueing hints that compare the two.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from berth.event_handlers.handler import ResourceHandler
from berth.objects.api_object import TypedObject
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.snapshot.bounded_cache import BoundedCache

T = TypeVar("T", bound=TypedObject)

EARLIER_VERSIONS = 2048
MAX_EARLIER_BYTES = 16 << 20


class RawObjects(Generic[T]):
    """JSON by UID, for one kind. `keeps_earlier` says whether a replaced version is kept for a while.

    Nothing is kept until `keeps` is true: objects that were decoded before are added by `fill`.
    """

    def __init__(self) -> None:
        self.keeps = True
        self.followers: list[Callable[[], None]] = []
        """What is called when an object came, changed or went."""
        self.keeps_earlier = False
        self._bytes: dict[str, bytes] = {}
        self._versions: dict[str, str] = {}
        self._earlier: BoundedCache[tuple[str, str], bytes] = BoundedCache(
            MAX_EARLIER_BYTES, EARLIER_VERSIONS
        )

    def get(self, uid: str) -> bytes:
        """The object as JSON, empty where it is not known."""
        return self._bytes.get(uid, b"")

    def of(self, obj: T) -> bytes:
        """This version of the object as JSON; empty where it is no longer kept."""
        version = obj.metadata.resource_version
        if self._versions.get(obj.uid) == version:
            return self._bytes.get(obj.uid, b"")
        return self._earlier.peek((obj.uid, version)) or b""

    def decoding(self, decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
        """Wrap the decoder to keep the JSON of what it decodes. It then raises for invalid UTF-8."""

        def decode_and_keep(data: bytes) -> T:
            obj = decode(data)
            if self.keeps:
                metadata, kept = obj.metadata, bytes(data)
                kept.decode()  # Skipped fields, too: a plugin's decoder refuses invalid UTF-8 anywhere.
                if self.keeps_earlier:
                    self._replace(metadata.uid)
                self._bytes[metadata.uid] = kept
                self._versions[metadata.uid] = metadata.resource_version
            return obj

        return decode_and_keep

    def fill(self, obj: T, data: bytes) -> None:
        """Keep listed objects, unless the watch delivered a newer version."""
        if obj.uid not in self._bytes:
            self._bytes[obj.uid] = bytes(data)
            self._versions[obj.uid] = obj.metadata.resource_version

    def drop(self, uid: str) -> None:
        """Drop a deleted object."""
        if self.keeps_earlier:
            self._replace(uid)
        self._bytes.pop(uid, None)
        self._versions.pop(uid, None)

    def _replace(self, uid: str) -> None:
        if known := self._bytes.get(uid):
            self._earlier.put((uid, self._versions[uid]), known, len(known))

    def merge_metadata(self, uid: str, patch: Mapping[str, Any]) -> Callable[[], None]:
        """Apply a merge patch of labels and annotations to the kept JSON before the watch delivers it.

        Call the result to undo it; that does nothing once the watch delivered a newer version.
        """
        known = self._bytes.get(uid)
        if known is None:
            return lambda: None
        document = msgspec.json.decode(known)
        for field, changes in patch.items():
            merged = {**(document["metadata"].get(field) or {}), **changes}
            document["metadata"][field] = {k: v for k, v in merged.items() if v is not None}
        patched = self._bytes[uid] = msgspec.json.encode(document)

        def undo() -> None:
            if self._bytes.get(uid) is patched:
                self._bytes[uid] = known

        return undo

    def following(self, handler: ResourceHandler) -> "DroppingHandler[T]":
        """Wrap the handler so that the JSON of deleted objects is dropped."""
        return DroppingHandler(self, handler)


class KeptObjects(Protocol):
    """The JSON of nodes and pods."""

    nodes: RawObjects[Node]
    pods: RawObjects[Pod]


class DroppingHandler(Generic[T]):
    """Forwards every event; drops the JSON of deleted objects."""

    def __init__(self, kept: RawObjects[T], handler: ResourceHandler) -> None:
        self._kept = kept
        self._handler = handler
        self.synced = False

    def on_add(self, obj: T) -> None:
        """Pass it on."""
        self._handler.on_add(obj)
        self._tell()

    def on_update(self, old: T, new: T) -> None:
        """Pass it on."""
        if old.uid != new.uid:
            self._kept.drop(old.uid)
        self._handler.on_update(old, new)
        self._tell()

    def on_delete(self, obj: T) -> None:
        """Pass it on, then forget."""
        try:
            self._handler.on_delete(obj)
        finally:
            self._kept.drop(obj.uid)
        self._tell()

    def _tell(self) -> None:
        for follower in self._kept.followers:
            follower()

    def on_synced(self) -> None:
        """Pass it on."""
        self.synced = True
        self._handler.on_synced()
