"""Reading what happened in a cluster: an observer's file, or a recording of kube-scheduler-simulator.

Source: simulator/recorder/recorder.go of kubernetes-sigs/kube-scheduler-simulator.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from berth.demo.dataset import DatasetError
from berth.demo.dataset.documents import Place
from berth.demo.dataset.field_checks import check_object
from berth.objects.api_object import TypedObject
from berth.recordings.cluster.events import END, FORMAT, KIND, ObservedEvent, ObserverHeader, Verb
from berth.recordings.formats import cut_off, format_problem
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import LocatedDocument, typed
from berth.simulation.reading.kinds import BY_NAME, KINDS, SimulatedKind
from berth.simulation.reading.packed_lines import (
    LONGEST_LINE_BYTES,
    NO_JSON,
    UNREADABLE,
    unpacked,
    whole_lines,
)

MAX_EVENTS: Final = 50_000_000
"""No recording comes near; a small file that unpacks for ever ends here."""
YEARS: Final = range(1971, 2100)


class Happened(NamedTuple):
    """An event with its object; of one that is gone only the names count."""

    number: int
    at: datetime
    verb: Verb
    kind: SimulatedKind
    obj: TypedObject


@dataclass(slots=True)
class ClusterRecording:
    """One way through a file; `warnings` say what it lacks, once its last event was given.

    `header` is None for a recording of kube-scheduler-simulator.
    """

    path: Path
    header: ObserverHeader | None
    stream: BinaryIO
    first: bytes
    warnings: list[str] = field(default_factory=list)
    left_out: int = 0
    """Events of kinds that no decision reads."""

    def events(self) -> Iterator[Happened]:
        """Yield each event, numbered by its line. Raises: InputError."""
        seen: set[str] = set()
        for number, line in self._lines():
            if line.startswith(_END_START):
                return
            event = self._event(number, line)
            if event is None:
                self.left_out += 1
                continue
            seen.add(event.kind.name)
            yield event
        if self.header is not None:
            self.warnings.append(cut_off(self.path))
        else:
            lacking = ", ".join(kind.resource.plural for kind in KINDS if kind.name not in seen)
            self.warnings.append(f"{self.path} has no event of {lacking}: decisions were made without them")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Every whole line but the header."""
        if self.header is None:
            yield 1, self.first
        yield from enumerate(whole_lines(self.stream, MAX_EVENTS), 2)

    def _event(self, number: int, line: bytes) -> Happened | None:
        """The event of a line, None where no decision reads its kind."""
        where = f"{self.path}:{number}"
        try:
            event, place = _read_event(line), Place(str(self.path), number)
            document: dict[str, Any] = msgspec.json.decode(event.resource, type=dict[str, Any])
            check_object(document, place, "resource.")
        except (*NO_JSON, ValueError, DatasetError) as error:
            raise InputError(f"{where}: {error}; record anew") from None
        if event.time.tzinfo is None or event.time.year not in YEARS:
            raise InputError(f"{where}: time: found {event.time.isoformat()}, of no recording; record anew")
        group, _, version = document["apiVersion"].rpartition("/")
        kind = BY_NAME.get((group, document["kind"]))
        if kind is None or version != kind.resource.version:
            return None
        return Happened(number, event.time.astimezone(UTC), event.event, kind, _object(document, kind, where))


_read_header = msgspec.json.Decoder(ObserverHeader).decode
_read_event = msgspec.json.Decoder(ObservedEvent).decode
_END_START: Final = f'{{"kind":"{END}"'.encode()


def _object(document: dict[str, Any], kind: SimulatedKind, where: str) -> TypedObject:
    metadata = document["metadata"]
    # A name of its own serves as the UID of an object that came without one.
    metadata.setdefault("uid", f"{metadata.get('namespace', '')}/{metadata.get('name', '')}")
    named = "/".join(metadata[field] for field in ("namespace", "name") if metadata.get(field))
    return typed(LocatedDocument(document, f"{where}: {kind.name} {named}"), kind)


@contextmanager
def open_recording(path: Path) -> Iterator[ClusterRecording | None]:
    """A recording that is read within the block, None where the file is none of a cluster.

    Raises: InputError where it cannot be read, or is of a later format.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file that can be read") from None
    with file:
        stream = unpacked(file)
        try:
            first = stream.readline(LONGEST_LINE_BYTES)
        except UNREADABLE:
            first = b""
        yield _recording(path, stream, first)


def is_of_cluster(path: Path) -> bool:
    """Whether the file is a recording of a cluster. Raises: InputError, as `open_recording`."""
    with open_recording(path) as recording:
        return recording is not None


def _recording(path: Path, stream: BinaryIO, first: bytes) -> ClusterRecording | None:
    try:
        header = _read_header(first)
    except NO_JSON:
        return ClusterRecording(path, None, stream, first) if _is_event(first) else None
    if header.kind != KIND:
        return None
    if problem := format_problem(path, header.format, range(FORMAT + 1), header.version):
        raise InputError(problem)
    return ClusterRecording(path, header, stream, first)


def _is_event(line: bytes) -> bool:
    try:
        _read_event(line)
    except NO_JSON:
        return False
    return True
