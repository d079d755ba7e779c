"""Files of at most so many bytes, at most so many of them: each begins with what is there, and stands alone.

    begin --> events --> the file is full: the next begins with a listing --> ... --> the oldest goes

A disk that is slow slows the observer down, and with it its watches: nothing is lost by that, because a watch
that falls behind is begun anew with a list.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import zstandard

from berth.framework.clock import Clock
from berth.observer.errors import RecordingEndedError
from berth.observer.events import END, SUFFIX, End, EndOfFile, ObserverHeader, Verb, line_of

LEVEL: Final = 3
LISTINGS: Final = 2
"""A file takes no less than its listing so many times over: else it would be nothing but listings."""
PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class FileBounds:
    """How large a file becomes, and how many there are."""

    max_bytes: int
    max_files: int


class RotatingFiles:
    """Writes events; `listing` gives the documents of everything that is there."""

    def __init__(
        self,
        folder: Path,
        bounds: FileBounds,
        clock: Clock,
        listing: Callable[[], Collection[bytes]],
        *,
        version: str,
        anonymized: bool,
    ) -> None:
        self.events = self.files = 0
        self._folder = folder
        self._bounds = bounds
        self._clock = clock
        self._listing = listing
        self._version = version
        self._anonymized = anonymized
        self._path = folder
        self._file: BinaryIO | None = None
        self._out: zstandard.ZstdCompressionWriter | None = None
        self._max_bytes = 0

    def begin(self) -> None:
        """Begin a file with a listing, and remove the oldest ones. Raises: RecordingError."""
        try:
            self._begin()
        except OSError as error:
            raise self._failed(error) from None

    def _begin(self) -> None:
        now = self._clock.wall()
        began = datetime.fromtimestamp(now, UTC)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._folder / f"{began:%Y%m%dT%H%M%S}.{began.microsecond:06}Z{SUFFIX}"
        self._file = self._path.open("xb")
        self._path.chmod(PRIVATE)
        self._out = zstandard.ZstdCompressor(level=LEVEL).stream_writer(self._file)
        self.files += 1
        listing = self._listing()
        header = ObserverHeader(
            version=self._version, began=began, objects=len(listing), anonymized=self._anonymized
        )
        self._out.write(msgspec.json.encode(header) + b"\n")
        for document in listing:
            self._out.write(line_of(now, Verb.ADD, document))
        self._out.flush(zstandard.FLUSH_BLOCK)
        self._max_bytes = max(self._bounds.max_bytes, LISTINGS * self._file.tell())
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        files = sorted(self._folder.glob(f"*{SUFFIX}"))
        for file in files[: -self._bounds.max_files]:
            file.unlink()

    def write(self, verb: Verb, document: bytes) -> None:
        """Write an event, and begin the next file where this one is full. Raises: RecordingError."""
        assert self._out is not None, "it was begun"
        assert self._file is not None, "it was begun"
        try:
            self._out.write(line_of(self._clock.wall(), verb, document))
            self.events += 1
            if self._file.tell() >= self._max_bytes:
                self._end(EndOfFile.SIZE)
                self._file.close()
                self._begin()
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Have everything on the disk that was written. Raises: RecordingError."""
        if self._out is None:
            return
        try:
            self._out.flush(zstandard.FLUSH_BLOCK)
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """End the file, if there is one. Raises: RecordingError."""
        try:
            self._end(EndOfFile.STOPPED)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            if self._file is not None:
                self._file.close()

    def _end(self, reason: EndOfFile) -> None:
        out, self._out = self._out, None
        if out is not None:
            out.write(msgspec.json.encode(End(END, reason)) + b"\n")
            out.flush(zstandard.FLUSH_FRAME)

    def _failed(self, error: OSError) -> RecordingEndedError:
        return RecordingEndedError(
            f"{self._path}: {error.strerror or error}; name a folder that has room and can be written to"
        )
