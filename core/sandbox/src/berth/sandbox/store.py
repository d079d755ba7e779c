"""The versioned store: what etcd and the watch cache are to a real API server. No HTTP, no clock, no asyncio.

One counter numbers every write of every collection. An object is kept once, as its encoded JSON; a
list splices these bytes together, a watch sends them on, and nothing is decoded for either.

    create/update:  dict ──encode──▶ Entry ──▶ items[key]        (what a list reads)
                                       └────▶ history, bounded   (what a watch reads, by its own position)
    delete:         the last state, numbered anew, goes to the history only

A watcher reads by position, so a slow one costs no memory; when its position has fallen out of the history it
gets Compacted, which the server turns into 410 Gone.
"""

from bisect import bisect_left
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

Json = dict[str, Any]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Compacted(Exception):  # noqa: N818 (a state of the history, named as etcd names it)
    """The history no longer reaches back to the revision asked for; `oldest` is the first one that works."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history starts after revision {oldest}")
        self.oldest = oldest


class EventType(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class StoredObject:
    """One object at one revision: its encoded bytes. Never changed after it was made."""

    __slots__ = ("attributes", "body", "key", "revision")

    def __init__(self, key: str, revision: int, body: bytes) -> None:
        self.key = key
        self.revision = revision
        self.body = body
        # What selectors read of it, filled in by the first selector that looks.
        self.attributes: Any = None

    def decode(self) -> Json:
        """Give the object as a fresh dict that the caller may change."""
        document: Json = decode(self.body)
        return document


class StoreEvent:
    """One write: what it did, the object after it, and the object before it."""

    __slots__ = ("entry", "previous", "type")

    def __init__(self, kind: EventType, entry: StoredObject, previous: StoredObject | None) -> None:
        self.type = kind
        self.entry = entry
        self.previous = previous


class SandboxStore:
    """All collections, and the counter that numbers their writes.

    `history_limit` is how many writes of each collection a watch can be behind before it has to list again.
    """

    def __init__(self, history_limit: int = 20_000) -> None:
        self.history_limit = history_limit
        self.revision = 1
        self.followers: list[Callable[[str, StoreEvent], None]] = []
        """Each is called with every write and the collection's name, before any watcher is."""
        self._started_at = 0
        self._collections: dict[str, Collection] = {}

    def collection(self, name: str) -> "Collection":
        """Give the collection of that name, made when first asked for."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(self, name)
            found.forget_before(self._started_at)
        return found

    def collections(self) -> list["Collection"]:
        """Give all collections that were asked for."""
        return list(self._collections.values())

    def next_revision(self) -> int:
        """Number one more write."""
        self.revision += 1
        return self.revision

    def start_at(self, revision: int) -> None:
        """Number on from that revision; nothing is known of what came before."""
        self.revision = self._started_at = revision
        for collection in self._collections.values():
            collection.forget_before(revision)


class Collection:
    """The objects of one resource by key, and what lately happened to them."""

    def __init__(self, store: SandboxStore, name: str) -> None:
        self.name = name
        self._store = store
        self._items: dict[str, StoredObject] = {}
        self._sorted: list[str] | None = []
        self._history: list[StoreEvent] = []
        # Position of _history[0] among all writes of this collection, and the last revision trimmed away.
        self._first_position = 0
        self._compacted_revision = 0
        self._listeners: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> StoredObject | None:
        """Give the object stored under the key, or None."""
        return self._items.get(key)

    def entries(self, prefix: str = "") -> list[StoredObject]:
        """Give all objects whose key starts so, in the order of their keys.

        Cost: O(objects found); the first call after a key came or went sorts the keys.
        """
        if self._sorted is None:
            self._sorted = sorted(self._items)
        items = self._items
        if not prefix:
            return [items[key] for key in self._sorted]
        start = bisect_left(self._sorted, prefix)
        end = bisect_left(self._sorted, prefix + "\U0010ffff", start)
        return [items[key] for key in self._sorted[start:end]]

    def put(self, key: str, document: Json) -> StoredObject:
        """Store the object, created or replaced; its resourceVersion is set in place."""
        previous = self._items.get(key)
        entry = self._encoded(key, document)
        self._items[key] = entry
        if previous is None:
            self._sorted = None
        kind = EventType.MODIFIED if previous else EventType.ADDED
        self._record(StoreEvent(kind, entry, previous))
        return entry

    def delete(self, key: str, document: Json) -> StoredObject:
        """Remove the object; the document is its last state, which watchers get."""
        previous = self._items.pop(key)
        self._sorted = None
        entry = self._encoded(key, document)
        self._record(StoreEvent(EventType.DELETED, entry, previous))
        return entry

    def restore(self, entry: StoredObject) -> None:
        """Take back an object of an earlier run, of which no watcher is notified."""
        self._items[entry.key] = entry
        self._sorted = None

    def forget_before(self, revision: int) -> None:
        """Have watches from before that revision list again."""
        self._compacted_revision = max(self._compacted_revision, revision)

    def position_after(self, revision: int) -> int:
        """Give the position of the first write later than the revision.

        Raises: Compacted when writes after that revision are no longer kept.
        """
        if revision < self._compacted_revision:
            raise Compacted(self._compacted_revision)
        index = bisect_left(self._history, revision + 1, key=lambda event: event.entry.revision)
        return self._first_position + index

    def end_position(self) -> int:
        """Give the position of the write that comes next."""
        return self._first_position + len(self._history)

    def read(self, position: int, most: int = 1_000_000_000) -> list[StoreEvent]:
        """Give the writes from that position on, at most so many.

        Raises: Compacted when that position is no longer kept.
        """
        index = position - self._first_position
        if index < 0:
            raise Compacted(self._compacted_revision)
        return self._history[index : index + most]

    def compact(self, keep: int = 0) -> None:
        """Forget all but the latest `keep` writes."""
        drop = len(self._history) - keep
        if drop > 0:
            self._compacted_revision = self._history[drop - 1].entry.revision
            self._first_position += drop
            del self._history[:drop]

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have the listener called after each write; the answer undoes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _encoded(self, key: str, document: Json) -> StoredObject:
        revision = self._store.next_revision()
        document["metadata"]["resourceVersion"] = str(revision)
        return StoredObject(key, revision, encode(document))

    def _record(self, event: StoreEvent) -> None:
        for follower in self._store.followers:
            follower(self.name, event)
        self._history.append(event)
        limit = self._store.history_limit
        # Trimming a quarter at a time keeps the cost of a write constant.
        if len(self._history) > limit + limit // 4:
            self.compact(limit)
        for listener in tuple(self._listeners):
            listener()
