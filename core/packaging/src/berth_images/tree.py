"""A file system in memory, and the archive of it that is the same wherever it is written.

Names are relative to the root and have no leading slash. All is owned by root; times are one constant.
"""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

EPOCH = 1767225600
"""The time of all files, 2026-01-01. Units: seconds."""


class File(msgspec.Struct, frozen=True):
    """A regular file; its content is in memory, or in a file that stays until the tree is written."""

    content: bytes | Path
    mode: int = 0o644

    def read(self) -> bytes:
        """Return the content."""
        return self.content.read_bytes() if isinstance(self.content, Path) else self.content


class Folder(msgspec.Struct, frozen=True):
    """A folder."""

    mode: int = 0o755


class Symlink(msgspec.Struct, frozen=True):
    """A symbolic link."""

    target: str


Entry = File | Folder | Symlink


class Tree:
    """Entries by name; a folder that only its contents imply is made with mode 755."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, name: str, entry: Entry) -> None:
        """Add an entry in place of one of the same name.

        Raises: ValueError where the name leads out of the tree.
        """
        path = PurePosixPath(name.lstrip("/"))
        if ".." in path.parts or not path.parts:
            raise ValueError(f"{name!r} is not a name below the root")
        for parent in reversed(path.parents[:-1]):
            self._entries.setdefault(str(parent), Folder())
        self._entries[str(path)] = entry

    def update(self, other: "Tree") -> None:
        """Add all entries of another tree."""
        for name in other:
            self.add(name, other[name])

    def write_archive(self, target: IO[bytes]) -> None:
        """Write a tar archive: sorted by name, of one time and owner, with nothing of this machine."""
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name in sorted(self._entries):
                _append(archive, name, self._entries[name])

    def write_folder(self, target: Path) -> None:
        """Write the entries below a folder."""
        for name in sorted(self._entries):
            entry, path = self._entries[name], target / name
            if isinstance(entry, Folder):
                path.mkdir(parents=True, exist_ok=True)
            elif isinstance(entry, Symlink):
                path.symlink_to(entry.target)
            else:
                path.write_bytes(entry.read())
                path.chmod(entry.mode)


def _append(archive: tarfile.TarFile, name: str, entry: Entry) -> None:
    header = tarfile.TarInfo(name)
    header.mtime = EPOCH
    if isinstance(entry, Folder):
        header.type, header.mode = tarfile.DIRTYPE, entry.mode
        archive.addfile(header)
    elif isinstance(entry, Symlink):
        header.type, header.mode, header.linkname = tarfile.SYMTYPE, 0o777, entry.target
        archive.addfile(header)
    else:
        content = entry.read()
        header.mode, header.size = entry.mode, len(content)
        archive.addfile(header, io.BytesIO(content))
