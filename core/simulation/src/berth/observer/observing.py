"""Following a cluster, and writing what changes in it as far as decisions read it.

list, watch of each kind --> the object without what no decision reads --> other than before? --> files
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from berth.client.transport import Transport
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.objects.api_object import TypedObject
from berth.recordings.cluster.events import Verb
from berth.recordings.cluster.files import RotatingFiles
from berth.recordings.errors import RecordingEndedError
from berth.scheduler.watching.server_kinds import server_kinds
from berth.simulation.reading.anonymize import Anonymizer
from berth.simulation.reading.kinds import KINDS, SimulatedKind, document_of

FLUSH_SECONDS: Final = 1.0
LISTED_SECONDS: Final = 60.0

Write = Callable[[Verb, bytes], None]


class ObservedObject(NamedTuple):
    """An object as it is written, and where it is kept."""

    key: str
    document: bytes
    names: bytes
    """The same with its names alone."""


class Observer:
    """Follows every kind that decisions read, and never writes to the cluster. One event loop owns it."""

    def __init__(self, transport: Transport, anonymizer: Anonymizer | None = None) -> None:
        self._transport = transport
        self._anonymizer = anonymizer
        self._objects: dict[str, dict[str, ObservedObject]] = {kind.name: {} for kind in KINDS}
        self._reflectors: list[Reflector[ObservedObject]] = []

    def listing(self) -> list[bytes]:
        """The documents of everything that is there, what others refer to first."""
        return [each.document for objects in self._objects.values() for each in objects.values()]

    @property
    def set_aside(self) -> int:
        """How many versions of objects could not be read."""
        return sum(each.aside.total for each in self._reflectors)

    async def run(self, files: RotatingFiles, *, listed_seconds: float = LISTED_SECONDS) -> None:
        """List every kind that the server has, and write what changes from then on, until cancelled.

        Raises: RecordingError.
        """
        server, writing = await server_kinds(self._transport), _Writing(files)
        self._reflectors = [
            Reflector(
                self._transport,
                WatchSource(server.served(kind.resource), field_selector=kind.field_selector),
                _Reading(kind, self._anonymizer).observed,
                _Followed(self._objects[kind.name], writing.write),
                fatal=(RecordingEndedError,),
            )
            for kind in KINDS
            if kind.resource not in server.absent
        ]
        try:
            async with asyncio.TaskGroup() as tasks:
                for reflector in self._reflectors:
                    tasks.create_task(reflector.run())
                async with asyncio.timeout(listed_seconds):
                    await asyncio.gather(*(each.synced.wait() for each in self._reflectors))
                writing.begin()
                while True:
                    await asyncio.sleep(FLUSH_SECONDS)
                    files.flush()
        except ExceptionGroup as group:
            # One thing went wrong, and the rest was cancelled for it.
            error = group.exceptions[0]
            raise (self._not_listed(listed_seconds) if isinstance(error, TimeoutError) else error) from None

    def _not_listed(self, seconds: float) -> RecordingEndedError:
        lacking = [each.source.resource.plural for each in self._reflectors if not each.synced.is_set()]
        return RecordingEndedError(
            f"{', '.join(lacking)}: not listed within {seconds:g} s; recording needs the verbs list and "
            "watch on every kind that decisions read"
        )


class _Writing:
    """Writes events once everything is listed: a file begins with all of it."""

    def __init__(self, files: RotatingFiles) -> None:
        self._files = files
        self._begun = False

    def begin(self) -> None:
        self._files.begin()
        self._begun = True

    def write(self, verb: Verb, document: bytes) -> None:
        if self._begun:
            self._files.write(verb, document)


class _Reading:
    """Makes what is written of what the API server sends."""

    def __init__(self, kind: SimulatedKind, anonymizer: Anonymizer | None) -> None:
        self._kind = kind
        self._anonymizer = anonymizer

    def observed(self, written: bytes) -> ObservedObject:
        """The object with what decisions read, without its version, which moves with every other field."""
        obj: TypedObject = self._kind.decode(written)
        kept = msgspec.structs.replace(
            obj, metadata=msgspec.structs.replace(obj.metadata, resource_version="")
        )
        return ObservedObject(obj.key, self._document(document_of(kept, self._kind)), self._names(obj))

    def _document(self, document: bytes) -> bytes:
        if self._anonymizer is None:
            return document
        return msgspec.json.encode(self._anonymizer.document(msgspec.json.decode(document)))

    def _names(self, obj: TypedObject) -> bytes:
        metadata: dict[str, Any] = {"name": obj.name, "uid": obj.uid}
        if obj.namespace:
            metadata["namespace"] = obj.namespace
        head = {"apiVersion": self._kind.resource.api_version, "kind": self._kind.name}
        return self._document(msgspec.json.encode({**head, "metadata": metadata}))


class _Followed:
    """Keeps the objects of one kind. Implements berth.client.watching.reflector.Handler."""

    def __init__(self, objects: dict[str, ObservedObject], write: Write) -> None:
        self._objects = objects
        self._write = write

    def on_add(self, obj: ObservedObject) -> None:
        self._objects[obj.key] = obj
        self._write(Verb.ADD, obj.document)

    def on_update(self, old: ObservedObject, new: ObservedObject) -> None:
        self._objects[new.key] = new
        if new.document != old.document:
            self._write(Verb.UPDATE, new.document)

    def on_delete(self, obj: ObservedObject) -> None:
        if self._objects.pop(obj.key, None) is not None:
            self._write(Verb.DELETE, obj.names)

    def on_synced(self) -> None:
        """The reflector itself says so, too."""
