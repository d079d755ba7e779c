"""The events of a cluster's recording: an observer's file, or one of kube-scheduler-simulator.

Called by: observer.reading, recorded_day.

Source: simulator/recorder/recorder.go of kubernetes-sigs/kube-scheduler-simulator.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from berth.demo.dataset import DatasetError
from berth.demo.dataset.documents import Place
from berth.demo.dataset.field_checks import check_object
from berth.recordings.cluster.events import END, FORMAT, KIND, ObservedEvent, ObserverHeader, Verb
from berth.recordings.formats import format_problem
from berth.simulation.errors import InputError
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


class RecordedEvent(NamedTuple):
    """An event with its object as it is written; of one that is gone only the names count."""

    number: int
    at: datetime
    verb: Verb
    document: dict[str, Any]


@dataclass(slots=True)
class RecordedEvents:
    """One way through a file; `header` is None for a recording of kube-scheduler-simulator."""

    path: Path
    header: ObserverHeader | None
    stream: BinaryIO
    first: bytes
    whole: bool = True
    """Whether the file ends as an observer ends one; known once the last event was given."""

    def __iter__(self) -> Iterator[RecordedEvent]:
        """Yield each event, numbered by its line. Raises: InputError."""
        for number, line in self._lines():
            if line.startswith(_END_START):
                return
            yield self._event(number, line)
        self.whole = self.header is None

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Every whole line but the header."""
        if self.header is None:
            yield 1, self.first
        yield from enumerate(whole_lines(self.stream, MAX_EVENTS), 2)

    def _event(self, number: int, line: bytes) -> RecordedEvent:
        where = f"{self.path}:{number}"
        try:
            event, place = _read_event(line), Place(str(self.path), number)
            document: dict[str, Any] = msgspec.json.decode(event.resource, type=dict[str, Any])
            check_object(document, place, "resource.")
        except (*NO_JSON, ValueError, DatasetError) as error:
            raise InputError(f"{where}: {error}; record anew") from None
        if event.time.tzinfo is None or event.time.year not in YEARS:
            raise InputError(f"{where}: time: found {event.time.isoformat()}, of no recording; record anew")
        return RecordedEvent(number, event.time.astimezone(UTC), event.event, document)


_read_header = msgspec.json.Decoder(ObserverHeader).decode
_read_event = msgspec.json.Decoder(ObservedEvent).decode
_END_START: Final = f'{{"kind":"{END}"'.encode()


@contextmanager
def open_events(path: Path) -> Iterator[RecordedEvents | None]:
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
        yield events_of(path, stream, first)


def is_of_cluster(path: Path) -> bool:
    """Whether the file is a recording of a cluster. Raises: InputError, as `open_events`."""
    with open_events(path) as recording:
        return recording is not None


def events_of(path: Path, stream: BinaryIO, first: bytes) -> RecordedEvents | None:
    """The recording whose first line was read, None where the line is of none. Raises: InputError."""
    try:
        header = _read_header(first)
    except NO_JSON:
        return RecordedEvents(path, None, stream, first) if _is_event(first) else None
    if header.kind != KIND:
        return None
    if problem := format_problem(path, header.format, range(FORMAT + 1), header.version):
        raise InputError(problem)
    return RecordedEvents(path, header, stream, first)


def _is_event(line: bytes) -> bool:
    try:
        _read_event(line)
    except NO_JSON:
        return False
    return True
