"""Snapshot files: a JSON object a line, compressed by zstd, gzip or not at all, read and written as a stream.

{"apiVersion": "simulation.berth.dev/v1alpha1", "kind": "ClusterSnapshot", ...}   what it is
{"apiVersion": "v1", "kind": "Namespace", ...}                                    the objects
{"kind": "ClusterSnapshotEnd", "objects": 1}                                      whether it is whole
"""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

import msgspec
import zstandard

from berth.simulation.errors import InputError
from berth.simulation.reading.packed_lines import LONGEST_LINE_BYTES, NO_JSON, UNREADABLE

API_VERSION: Final = "simulation.berth.dev/v1alpha1"
KIND: Final = "ClusterSnapshot"
END: Final = "ClusterSnapshotEnd"

MAX_OBJECTS: Final = 5_000_000
"""No cluster comes near; a small file that unpacks for ever ends here."""


class SnapshotHeader(msgspec.Struct, rename="camel"):
    """The first line."""

    api_version: str
    kind: str
    anonymized: bool = False
    taken_at: str = ""


class _End(msgspec.Struct):
    kind: str
    objects: int


_read_header = msgspec.json.Decoder(SnapshotHeader).decode
_read_end = msgspec.json.Decoder(_End).decode
_END_START = f'{{"kind":"{END}"'.encode()


def header_of(line: bytes) -> SnapshotHeader | None:
    """The header; None where the line is not one, so that the file is something else."""
    try:
        header = _read_header(line)
    except NO_JSON:
        return None
    return header if header.kind == KIND else None


def read_lines(stream: BinaryIO, file: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each object's line; the header was read before.

    Raises: InputError where the file is cut off, damaged, or no snapshot.
    """
    number, objects = 1, 0
    try:
        while line := stream.readline(LONGEST_LINE_BYTES + 1):
            number += 1
            if len(line) > LONGEST_LINE_BYTES:
                raise _broken(file, number, f"more than {LONGEST_LINE_BYTES} bytes", "take the snapshot anew")
            if line.startswith(_END_START):
                _check_end(file, number, line, objects)
                return
            objects += 1
            if objects > MAX_OBJECTS:
                found = f"more than {MAX_OBJECTS} objects"
                raise _broken(file, number, found, "split the cluster by namespace or node pool")
            yield number, line
    except UNREADABLE as error:
        raise _broken(file, number, f"damaged data ({error})", "take the snapshot anew") from None
    raise _broken(file, number + 1, "the end of the file", "it was cut off: take the snapshot anew")


def _check_end(file: str, number: int, line: bytes, objects: int) -> None:
    try:
        end = _read_end(line)
    except NO_JSON as error:
        raise _broken(file, number, f"a broken last line ({error})", "take the snapshot anew") from None
    if end.objects != objects:
        found = f"{objects} objects where the last line says {end.objects}"
        raise _broken(file, number, found, "take the snapshot anew")


def _broken(file: str, line: int, found: str, remedy: str) -> InputError:
    return InputError(f"{file}:{line}: found {found}; {remedy}")


def write(stream: BinaryIO, objects: Iterable[bytes], header: SnapshotHeader) -> int:
    """Write a snapshot, compressed by zstd; how many objects it has."""
    count = 0
    with zstandard.ZstdCompressor(level=3).stream_writer(stream, closefd=False) as out:
        out.write(msgspec.json.encode(header) + b"\n")
        for each in objects:
            out.write(each + b"\n")
            count += 1
        out.write(msgspec.json.encode(_End(END, count)) + b"\n")
    return count
