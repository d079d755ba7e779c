"""Files of lines of JSON, compressed by gzip: a header, what happened, and why it ended.

    {"apiVersion": ..., "kind": ..., "format": ..., "version": ...}
    ...
    {... "reason" ...}

Only the owner of a file reads it: annotations of pods are in it. Old files go in the order of their names,
which begin with the time.
"""

import gzip
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec

LEVEL: Final = 3
PRIVATE: Final = 0o600


class LineFile:
    """A file that is being written, begun with its header; each method raises OSError where it can't."""

    def __init__(self, path: Path, header: msgspec.Struct) -> None:
        self.path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb")
        self._out = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=LEVEL)
        self._open = True
        self.write(_encode(header))

    @classmethod
    def begun(cls, folder: Path, began: datetime, suffix: str, header: msgspec.Struct) -> Self:
        """A file in the folder, which is made, named by the time at which it began. Raises: OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder / f"{began:%Y%m%dT%H%M%S}.{began.microsecond:06}Z{suffix}", header)

    @property
    def size_bytes(self) -> int:
        """How many bytes were written to the disk so far."""
        return self._file.tell()

    def write(self, line: bytes) -> None:
        """Write a line."""
        self._out.write(line + b"\n")

    def flush(self) -> None:
        """Have everything that was written in the file."""
        self._out.flush()
        self._file.flush()

    def close(self, end: Any = None) -> None:
        """Write the last line, if there is one, and close the file; nothing where it is closed."""
        if not self._open:
            return
        self._open = False
        with self._file:
            if end is not None:
                self.write(_encode(end))
            self._out.close()


def remove_oldest(
    folder: Path, patterns: Sequence[str], *, max_bytes: int | None = None, max_files: int | None = None
) -> None:
    """Remove the oldest recordings until the rest keeps the bounds. Raises: OSError."""
    files = sorted(file for pattern in patterns for file in folder.glob(pattern))
    sizes = [file.stat().st_size for file in files]
    total, count = sum(sizes), len(files)
    for file, size in zip(files, sizes, strict=True):
        if (max_bytes is None or total <= max_bytes) and (max_files is None or count <= max_files):
            return
        file.unlink()
        total, count = total - size, count - 1


_encode = msgspec.json.Encoder().encode
