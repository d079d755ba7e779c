"""The API server's own bytes of nodes and pods, kept for plugins that decode them with their own types.

Kept only while there are sidecars. Bytes are taken where objects are decoded, and dropped when the watch
tells that the object is gone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from berth.event_handlers import ResourceHandler
from berth.objects.api_object import TypedObject

T = TypeVar("T", bound=TypedObject)


class RawObjects(Generic[T]):
    """Bytes by UID, for one kind."""

    def __init__(self) -> None:
        self._bytes: dict[str, bytes] = {}

    def get(self, uid: str) -> bytes:
        """The object as JSON, empty where it is not known."""
        return self._bytes.get(uid, b"")

    def decoding(self, decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
        """The same decoder, keeping the bytes of what it decodes."""

        def decode_and_keep(data: bytes) -> T:
            obj = decode(data)
            self._bytes[obj.uid] = bytes(data)
            return obj

        return decode_and_keep

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
        return Following(self._bytes, handler)


class Following(Generic[T]):
    """Passes everything on; forgets the bytes of what was deleted."""

    def __init__(self, kept: dict[str, bytes], handler: ResourceHandler) -> None:
        self._kept = kept
        self._handler = handler
        self.synced = False

    def on_add(self, obj: T) -> None:
        """Pass it on."""
        self._handler.on_add(obj)

    def on_update(self, old: T, new: T) -> None:
        """Pass it on."""
        if old.uid != new.uid:
            self._kept.pop(old.uid, None)
        self._handler.on_update(old, new)

    def on_delete(self, obj: T) -> None:
        """Pass it on, then forget."""
        self._handler.on_delete(obj)
        self._kept.pop(obj.uid, None)

    def on_synced(self) -> None:
        """Pass it on."""
        self.synced = True
        self._handler.on_synced()
