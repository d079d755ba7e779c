"""One client's watch: from a position in a collection's history to the bytes of watch events."""

from collections.abc import Callable
from typing import Final

from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.request import JSON, Wake
from berth.sandbox.store import (
    Collection,
    Compacted,
    EventType,
    SandboxStore,
    StoredObject,
    StoreEvent,
    encode,
)

Matches = Callable[[StoredObject], bool]
Render = Callable[[StoredObject], bytes]

_HEAD: Final = {kind: f'{{"type":"{kind.value}","object":'.encode() for kind in EventType}
_TAIL: Final = b"}\n"
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
# What one pull gives at most, so that a watch from far back does not hold the loop.
_BATCH: Final = 2_000


def _whole(entry: StoredObject) -> bytes:
    return entry.body


class Watch:
    """The stream of a watch request. Pulled; never pushed, so that a slow client holds nothing up."""

    content_type = JSON

    def __init__(
        self,
        store: SandboxStore,
        collection: Collection,
        resource: ServedResource,
        matches: Matches | None,
        *,
        render: Render = _whole,
        content_type: str = JSON,
        bookmarks: bool = False,
        timeout_seconds: float = 1800.0,
    ) -> None:
        self.content_type = content_type
        self.timeout_seconds = timeout_seconds
        self._store = store
        self._collection = collection
        self._resource = resource
        self._matches = matches
        self._render = render
        self._bookmarks = bookmarks
        self._initial: list[StoredObject] = []
        self._initial_bookmark = False
        self._initial_revision = 0
        self._position = collection.end_position()
        self._unsubscribe: Callable[[], None] | None = None
        self._finished = False

    def start_after(self, revision: int) -> None:
        """Begin with the first write after that revision.

        Raises: Compacted when that is no longer in the history.
        """
        self._position = self._collection.position_after(revision)

    def start_with(self, entries: list[StoredObject], *, bookmark: bool) -> None:
        """Begin with these objects as ADDED; with `bookmark`, mark where they end."""
        self._initial = list(reversed(entries))
        self._initial_bookmark = bookmark
        self._initial_revision = self._store.revision

    @property
    def finished(self) -> bool:
        """Say whether an error event has ended the stream."""
        return self._finished

    def subscribe(self, wake: Wake) -> None:
        """Have `wake` called after each write to the collection."""
        self._unsubscribe = self._collection.subscribe(wake)
        wake()

    def close(self) -> None:
        """Let go of the collection."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def pull(self) -> list[bytes]:
        """Give the encoded events since the last call, as parts to be joined."""
        if self._finished:
            return []
        if self._initial or self._initial_bookmark:
            return self._pull_initial()
        try:
            events = self._collection.read(self._position, _BATCH)
        except Compacted as gone:
            return self._fail(gone)
        self._position += len(events)
        parts: list[bytes] = []
        for event in events:
            self._append(parts, event)
        return parts

    def heartbeat(self) -> list[bytes]:
        """Give a bookmark at the current revision, if the client wants bookmarks and is up to date."""
        if not self._bookmarks or self._initial or self._position != self._collection.end_position():
            return []
        return [self._bookmark(self._store.revision, {})]

    def _pull_initial(self) -> list[bytes]:
        parts: list[bytes] = []
        for _ in range(min(_BATCH, len(self._initial))):
            parts += (_HEAD[EventType.ADDED], self._render(self._initial.pop()), _TAIL)
        if self._initial_bookmark and not self._initial:
            self._initial_bookmark = False
            # As of when the objects were read: what was written since has yet to be reported.
            parts.append(self._bookmark(self._initial_revision, {INITIAL_EVENTS_END: "true"}))
        return parts

    def _append(self, parts: list[bytes], event: StoreEvent) -> None:
        kind, entry = event.type, event.entry
        if self._matches is not None:
            now = kind is not EventType.DELETED and self._matches(entry)
            before = event.previous is not None and self._matches(event.previous)
            if not now and not before:
                return
            if not now:
                entry = _last_match(event)
                kind = EventType.DELETED
            else:
                kind = EventType.MODIFIED if before else EventType.ADDED
        parts += (_HEAD[kind], self._render(entry), _TAIL)

    def _bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, object] = {
            "resourceVersion": str(revision),
            "creationTimestamp": None,
        }
        if annotations:
            metadata["annotations"] = annotations
        document = {
            "kind": self._resource.kind,
            "apiVersion": self._resource.group_version,
            "metadata": metadata,
        }
        return b'{"type":"BOOKMARK","object":' + encode(document) + _TAIL

    def _fail(self, gone: Compacted) -> list[bytes]:
        self._finished = True
        return [error_event(gone.oldest, gone.oldest)]


def error_event(wanted: int, oldest: int) -> bytes:
    """Encode the event that shows a watcher to list again."""
    status = ApiError.expired(f"too old resource version: {wanted} ({oldest})").status()
    return b'{"type":"ERROR","object":' + encode(status) + _TAIL


def _last_match(event: StoreEvent) -> StoredObject:
    # A watcher that loses sight of an object is reported its last visible state, at the new revision.
    if event.type is EventType.DELETED or event.previous is None:
        return event.entry
    document = event.previous.decode()
    document["metadata"]["resourceVersion"] = str(event.entry.revision)
    return StoredObject(event.entry.key, event.entry.revision, encode(document))
