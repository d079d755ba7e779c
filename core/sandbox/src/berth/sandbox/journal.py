"""What a sandbox holds, kept in a file: each write a line, appended before anybody is answered.

    revision <tab> collection <tab> key <tab> body    an empty body is a deletion; the first line has all but
                                                      the revision empty, and says where the numbering stands

A process that is killed loses nothing that it answered; a line that it did not finish was not answered. On
start the file is read, and written anew without what is gone. As after the restart of a real API server,
the objects and the numbering go on, and a watch from before has to list again.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

from berth.sandbox.errors import SandboxError
from berth.sandbox.store import EventType, SandboxStore, StoredObject, StoreEvent

_FIELDS: Final = 4


class JournalLine(NamedTuple):
    """One write, as the file has it."""

    revision: int
    collection: str
    key: str
    body: bytes

    def encoded(self) -> bytes:
        """The line's bytes."""
        return b"%d\t%s\t%s\t%s\n" % (self.revision, self.collection.encode(), self.key.encode(), self.body)


class StoreJournal:
    """The file of a running sandbox, open for appending."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path, store: SandboxStore) -> Self:
        """Fill the store with what the file holds, if there is one, and follow the store from then on.

        Raises: SandboxError where the file cannot be read or written.
        """
        try:
            _restore(path, store)
            _write_anew(path, store)
            journal = cls(os.open(path, os.O_WRONLY | os.O_APPEND))
        except OSError as error:
            raise SandboxError(f"data file {path}: {error.strerror}") from None
        store.followers.append(journal.append)
        return journal

    def append(self, collection: str, event: StoreEvent) -> None:
        """Note a write."""
        entry = event.entry
        body = b"" if event.type is EventType.DELETED else entry.body
        os.write(self._descriptor, JournalLine(entry.revision, collection, entry.key, body).encoded())

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def _restore(path: Path, store: SandboxStore) -> None:
    held: dict[tuple[str, str], StoredObject] = {}
    revision = store.revision
    for line in _lines(path):
        revision = max(revision, line.revision)
        if line.body:
            held[line.collection, line.key] = StoredObject(line.key, line.revision, line.body)
        else:
            held.pop((line.collection, line.key), None)
    for (collection, _), entry in held.items():
        store.collection(collection).restore(entry)
    store.start_at(revision)


def _lines(path: Path) -> Iterator[JournalLine]:
    if not path.exists():
        return
    *complete, _unfinished = path.read_bytes().split(b"\n")
    for number, line in enumerate(complete, start=1):
        fields = line.split(b"\t", _FIELDS - 1)
        if len(fields) != _FIELDS or not fields[0].isdigit():
            raise SandboxError(f"data file {path}, line {number}: not a sandbox's data; name another file")
        yield JournalLine(int(fields[0]), fields[1].decode(), fields[2].decode(), fields[3])


def _write_anew(path: Path, store: SandboxStore) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    lines = [JournalLine(store.revision, "", "", b"")]
    for collection in store.collections():
        lines += [
            JournalLine(entry.revision, collection.name, entry.key, entry.body)
            for entry in collection.entries()
        ]
    fresh.write_bytes(b"".join(line.encoded() for line in lines))
    fresh.replace(path)
