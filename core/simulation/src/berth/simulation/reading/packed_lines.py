"""Files of lines, compressed by zstd, gzip or not at all: the first bytes say which, whatever the name is.

Called by: snapshot_file, tape_file, recorded_events, inputs.
"""

import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec
import zstandard

LONGEST_LINE_BYTES: Final = 8 << 20
"""An API server's objects end at 1.5 MiB; a line beyond this is no object."""
UNREADABLE: Final = (zstandard.ZstdError, zlib.error, OSError, EOFError)
"""What reading a damaged file raises."""
NO_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding a line raises that is no JSON, no UTF-8, or nested deeper than any object."""

_BLOCK_BYTES: Final = 1 << 20
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
"""zlib's largest window, in gzip's form."""


def unpacked(stream: BinaryIO) -> BinaryIO:
    """The stream without its compression, if it has any."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    start = buffered.peek(len(_ZSTD_MAGIC))
    if start.startswith(_ZSTD_MAGIC):
        reader = zstandard.ZstdDecompressor().stream_reader(buffered, read_across_frames=True)
        return io.BufferedReader(reader)
    if start.startswith(_GZIP_MAGIC):
        return io.BufferedReader(_Gunzipped(buffered))
    return buffered


class _Gunzipped(io.RawIOBase):
    """A gzip stream that may be incomplete: one that is cut off, or still growing, ends without an error."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the next block does. Raises: zlib.error."""
        while True:
            if self._member.eof:
                block, self._member = self._member.unused_data, zlib.decompressobj(_GZIP_WINDOW)
            else:
                block = self._member.unconsumed_tail
            block = block or self._packed.read(_BLOCK_BYTES)
            data = self._member.decompress(block, len(buffer))
            if data or not block:
                buffer[: len(data)] = data
                return len(data)


def bounded_rest(stream: BinaryIO, max_bytes: int) -> bytes:
    """At most that many bytes of the stream's rest, and one more; takes no more memory than its contents.

    Raises: one of UNREADABLE.
    """
    # `read(n)` sets n bytes aside before it knows how many there are.
    rest = bytearray()
    while len(rest) <= max_bytes and (block := stream.read(min(_BLOCK_BYTES, max_bytes + 1 - len(rest)))):
        rest += block
    return bytes(rest)


def whole_lines(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield at most so many lines, up to the first that is too long, cut off or damaged."""
    for _ in range(most):
        try:
            line = stream.readline(LONGEST_LINE_BYTES + 1)
        except UNREADABLE:
            return
        if len(line) > LONGEST_LINE_BYTES or not line.endswith(b"\n"):
            return
        yield line
