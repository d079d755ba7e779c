"""Messages one behind the other, each behind its length as a varint: the form of a recording's file.

Source: proto/berth/plugin/v1/recording.proto.
"""

from collections.abc import Iterator
from typing import Protocol

_MORE = 0x80
_SEVEN_BITS = 0x7F
_LONGEST_LENGTH = 10


class Message(Protocol):
    """Whatever can be written down."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """The bytes of it."""


class RecordingFrameError(ValueError):
    """What should be a length is none."""


def framed(message: Message) -> bytes:
    """The message behind its length."""
    data = message.SerializeToString()
    length, prefix = len(data), bytearray()
    while length > _SEVEN_BITS:
        prefix.append(length & _SEVEN_BITS | _MORE)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + data


class RecordingFrames:
    """Cuts what comes in pieces into messages; `offset` is where the first that is not whole begins."""

    def __init__(self) -> None:
        self.offset = 0
        self._rest = b""

    @property
    def incomplete(self) -> int:
        """How many bytes of a message that is not whole are there."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole now, without their lengths.

        Raises: FrameError.
        """
        self._rest += data
        at = 0
        try:
            while (found := _frame(self._rest, at)) is not None:
                start, end = found
                self.offset += end - at
                at = end
                yield self._rest[start:end]
        finally:
            self._rest = self._rest[at:]


def _frame(data: bytes, at: int) -> tuple[int, int] | None:
    """Where the message at that length begins and ends; None where it is not whole."""
    length = 0
    for i, byte in enumerate(data[at : at + _LONGEST_LENGTH]):
        length |= (byte & _SEVEN_BITS) << 7 * i
        if not byte & _MORE:
            start = at + i + 1
            return (start, start + length) if start + length <= len(data) else None
    if len(data) - at >= _LONGEST_LENGTH:
        raise RecordingFrameError(f"no length of a message: {data[at : at + _LONGEST_LENGTH].hex()}")
    return None
