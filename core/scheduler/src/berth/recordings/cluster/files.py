"""Files of at most so many bytes, at most so many of them: each begins with what is there, and stands alone.

    begin --> events --> the file is full: the next begins with a listing --> ... --> the oldest goes

A disk that is slow slows the observer down, and with it its watches: nothing is lost by that, because a watch
that falls behind is begun anew with a list.
"""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from berth.framework.clock import Clock
from berth.recordings.cluster.events import END, SUFFIX, End, ObserverHeader, Verb, line_of
from berth.recordings.errors import RecordingEndedError
from berth.recordings.formats import EndReason
from berth.recordings.line_files import LineFile, remove_oldest

LISTINGS: Final = 2
"""A file takes no less than its listing so many times over: else it would be nothing but listings."""
PATTERNS: Final = (f"*{SUFFIX}", "*.cluster.zst")
"""Files of these names are recordings of a cluster, those of earlier versions included."""


class FileBounds(msgspec.Struct, frozen=True):
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
        self._file: LineFile | None = None
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
        listing = self._listing()
        header = ObserverHeader(
            version=self._version, began=began, objects=len(listing), anonymized=self._anonymized
        )
        file = self._file = LineFile.begun(self._folder, began, SUFFIX, header)
        self.files += 1
        for document in listing:
            file.write(line_of(now, Verb.ADD, document))
        file.flush()
        self._max_bytes = max(self._bounds.max_bytes, LISTINGS * file.size_bytes)
        remove_oldest(self._folder, PATTERNS, max_files=self._bounds.max_files)

    def write(self, verb: Verb, document: bytes) -> None:
        """Write an event, and begin the next file where this one is full. Raises: RecordingError."""
        file = self._file
        assert file is not None, "it was begun"
        try:
            file.write(line_of(self._clock.wall(), verb, document))
            self.events += 1
            if file.size_bytes >= self._max_bytes:
                file.close(End(END, EndReason.SIZE))
                self._begin()
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Have everything on the disk that was written. Raises: RecordingError."""
        if self._file is None:
            return
        try:
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """End the file, if there is one. Raises: RecordingError."""
        try:
            if self._file is not None:
                self._file.close(End(END, EndReason.STOPPED))
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> RecordingEndedError:
        where = error.filename or (self._folder if self._file is None else self._file.path)
        return RecordingEndedError(
            f"{where}: {error.strerror or error}; name a folder that has room and can be written to"
        )
