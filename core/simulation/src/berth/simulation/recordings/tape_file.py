"""Reads a scheduler's recording, up to where it is complete."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from berth.recordings.core import calls, spans
from berth.recordings.core.header import FORMAT, KIND, TapeHeader
from berth.recordings.core.spans import END, MICROSECONDS, DeltaEncoding
from berth.recordings.formats import cut_off, ended_early, format_problem
from berth.simulation.errors import InputError
from berth.simulation.reading.packed_lines import (
    LONGEST_LINE_BYTES,
    NO_JSON,
    UNREADABLE,
    unpacked,
    whole_lines,
)
from berth.simulation.reading.simkube import is_trace

MAX_SPANS: Final = 100_000_000
"""No recording comes near; a small file that unpacks for ever ends here."""


class ReadLine(msgspec.Struct):
    """A span as it is read (berth.recordings.core.spans.SpanLine)."""

    i: str
    a: list[msgspec.Raw] = []
    n: list[int] = []
    m: list[int] = []
    c: list[int] = []
    o: list[list[Any]] = []


_read_header = msgspec.json.Decoder(TapeHeader).decode
_read_line = msgspec.json.Decoder(ReadLine).decode


LATEST: Final = 4_102_444_800 * MICROSECONDS
"""No clock reads more: it is the year 2100."""


@dataclass(slots=True)
class TapeReading:
    """One pass over a file; `warnings` say what is missing, after its last span."""

    path: Path
    header: TapeHeader
    stream: BinaryIO
    warnings: list[str] = field(default_factory=list)

    def spans(self) -> Iterator[ReadLine]:
        """Yield each span, its readings in microseconds. Raises: InputError."""
        differences = DeltaEncoding()
        for number, line in enumerate(whole_lines(self.stream, MAX_SPANS), 2):
            try:
                span = _read_line(line)
                _check_outputs(span.o)
                span.n, span.m = _readings(differences, "n", span.n), _readings(differences, "m", span.m)
                span.c = _readings(differences, "c", span.c)
                reason = _reason(span) if span.i == END else None
            except (ValueError, RecursionError) as error:
                raise InputError(f"{self.path}:{number}: {error}; record anew") from None
            if reason is not None:
                self.warnings += filter(None, [ended_early(reason)])
                return
            yield span
        self.warnings.append(cut_off(self.path))


def _reason(end: ReadLine) -> str:
    """Why the recording ended. Raises: ValueError."""
    (reason,) = end.a or (b"null",)
    return msgspec.json.decode(reason, type=str)


def _readings(differences: DeltaEncoding, clock: str, found: list[int]) -> list[int]:
    """Raises: ValueError where no clock reads that."""
    readings = differences.undone(clock, found)
    if readings and not (min(readings) >= 0 and max(readings) <= LATEST):
        raise ValueError(f"{clock}: found a time that no clock reads")
    return readings


def _check_outputs(outputs: list[list[Any]]) -> None:
    """Raises: ValueError where an output is none that a core has."""
    for output in outputs:
        match output:
            case [spans.CALL, int(), calls.BIND, str(), str(), dict()]:
                continue
            case [spans.CALL, int(), str(method), _, *_] if method != calls.BIND:
                continue
            case [spans.DECIDED, str(), str(), str(), list(plugins), str()] if _are_texts(plugins):
                continue
        raise ValueError(f"no output {str(output)[:60]!r}")


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(each, str) for each in values)


@contextmanager
def open_tape(path: Path) -> Iterator[TapeReading]:
    """A file that is read within the block.

    Raises: InputError where it is no recording, or of another format.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    with file:
        stream = unpacked(file)
        yield TapeReading(path, _header_of(path, stream), stream)


def _header_of(path: Path, stream: BinaryIO) -> TapeHeader:
    first, header = b"", None
    with suppress(*NO_JSON, *UNREADABLE):
        first = stream.readline(LONGEST_LINE_BYTES)
        header = _read_header(first)
    if is_trace(first):
        text = f"{path} is a trace of SimKube, which has no nodes and no bindings"
        raise InputError(f"{text}: give it to `berth simulate run` together with nodes")
    if header is None or header.kind != KIND:
        remedy = "make one with `berth scheduler --record-to DIR` or `berth record DIR`"
        raise InputError(f"{path} is no recording: {remedy}")
    if problem := format_problem(path, header.format, range(FORMAT, FORMAT + 1), header.version):
        raise InputError(problem)
    return header
