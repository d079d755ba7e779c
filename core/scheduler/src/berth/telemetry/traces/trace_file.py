"""Traces as a file of JSON lines, for runs without a collector.

A line is one span with OTLP's field names. Several processes may append to one file, as a batch of lines is
one write at its end: the plugin SDKs write the same lines, and a sidecar's spans can stand beside ours.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from berth.telemetry.errors import TraceFileError
from berth.telemetry.traces.spans import EndedCycle, Span, spans_of

BATCH_BYTES = 256 * 1024


class TraceFile:
    """Appends spans to a file.

    Raises: TraceFileError where the file can't be opened.
    """

    def __init__(self, path: str | Path, resource: Mapping[str, Any] = {}) -> None:
        self._encoder = msgspec.json.Encoder()
        self._resource = resource
        self._waiting = bytearray()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise TraceFileError(f"trace file {path}: {error.strerror}") from error

    def add(self, cycle: EndedCycle) -> bool:
        """Make lines of the cycle's spans; enough are BATCH_BYTES."""
        self._waiting += self._encoder.encode_lines(spans_of(cycle, self._resource))
        return len(self._waiting) >= BATCH_BYTES

    def send(self) -> bool:
        """Write the lines; whether all of them are in the file."""
        data, self._waiting = self._waiting, bytearray()
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the file; later spans are not written."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_trace_file(path: str | Path) -> Iterator[Span]:
    """The spans of a trace file, in the order in which they were written.

    Raises: TraceFileError where the file can't be read or a line is no span.
    """
    decoder = msgspec.json.Decoder(Span)
    try:
        with Path(path).open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decoder.decode(line)
                except msgspec.MsgspecError as error:
                    raise TraceFileError(f"{path}:{number}: {error}") from error
    except OSError as error:
        raise TraceFileError(f"trace file {path}: {error.strerror}") from error
