"""The API server's own bytes of objects, kept for plugins that decode them with their own types.

Kept only while there are sidecars. Bytes are taken where objects are decoded, and dropped when the watch
says that the object is gone. What an object was before is kept for a while, for hints that compare.
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
    """Bytes by UID, for one kind. `keeps_earlier` says whether what was replaced is kept for a while.

    Nothing is kept until `keeps` says so: what came before has to be brought by `fill`.
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
        """That very version of the object as JSON, empty where it is not kept any more."""
        version = obj.metadata.resource_version
        if self._versions.get(obj.uid) == version:
            return self._bytes.get(obj.uid, b"")
        return self._earlier.peek((obj.uid, version)) or b""

    def decoding(self, decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
        """The same decoder, keeping the bytes of what it decodes. Raises for what is no UTF-8."""

        def decode_and_keep(data: bytes) -> T:
            obj = decode(data)
            if self.keeps:
                metadata, kept = obj.metadata, bytes(data)
                kept.decode()  # Also in what was passed over: a plugin's decoder refuses what is no text.
                if self.keeps_earlier:
                    self._replace(metadata.uid)
                self._bytes[metadata.uid] = kept
                self._versions[metadata.uid] = metadata.resource_version
            return obj

        return decode_and_keep

    def fill(self, obj: T, data: bytes) -> None:
        """Keep what a list has brought, unless the watch was faster."""
        if obj.uid not in self._bytes:
            self._bytes[obj.uid] = bytes(data)
            self._versions[obj.uid] = obj.metadata.resource_version

    def drop(self, uid: str) -> None:
        """Forget an object that is gone."""
        if self.keeps_earlier:
            self._replace(uid)
        self._bytes.pop(uid, None)
        self._versions.pop(uid, None)

    def _replace(self, uid: str) -> None:
        if known := self._bytes.get(uid):
            self._earlier.put((uid, self._versions[uid]), known, len(known))

    def merge_metadata(self, uid: str, patch: Mapping[str, Any]) -> Callable[[], None]:
        """Apply a merge patch of labels and annotations to what is kept, ahead of the watch.

        What comes back undoes it, unless the watch has brought something newer.
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

    def following(self, handler: ResourceHandler) -> "Following[T]":
        """The same handler, dropping the bytes of objects that are gone."""
        return Following(self, handler)


class KeptObjects(Protocol):
    """Where the bytes of nodes and pods are kept."""

    nodes: RawObjects[Node]
    pods: RawObjects[Pod]


class Following(Generic[T]):
    """Passes everything on; forgets the bytes of what was deleted."""

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
