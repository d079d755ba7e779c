"""Base64 as Go reads it: standard alphabet, padding required, line breaks skipped, errors by position.

Source: encoding/base64 (Go 1.26).
"""

import base64
import string

_ALPHABET = frozenset((string.ascii_letters + string.digits + "+/").encode())
_PAD = ord("=")
_BREAKS = frozenset(b"\r\n")
_QUANTUM = 4


def decode_base64(text: str) -> bytes:
    """Give the data.

    Raises:
        ValueError: naming the byte at which the text stops to be base64.
    """
    source = text.encode("utf-8", "replace")
    position = _first_corrupt(source)
    if position is not None:
        raise ValueError(f"illegal base64 data at input byte {position}")
    return base64.b64decode(bytes(byte for byte in source if byte not in _BREAKS))


def _first_corrupt(source: bytes) -> int | None:
    filled = 0
    for position, byte in enumerate(source):
        if byte in _ALPHABET:
            filled = (filled + 1) % _QUANTUM
        elif byte == _PAD:
            return _bad_padding(source, position, filled)
        elif byte not in _BREAKS:
            return position
    return len(source) - filled if filled else None


def _bad_padding(source: bytes, position: int, filled: int) -> int | None:
    """Check what follows the first "=", met when so many characters of its quantum were there."""
    if filled < _QUANTUM // 2:
        return position
    rest = [index for index in range(position + 1, len(source)) if source[index] not in _BREAKS]
    if filled == _QUANTUM // 2:
        if not rest:
            return len(source)
        if source[rest[0]] != _PAD:
            return rest[0] - 1
        rest = rest[1:]
    return rest[0] if rest else None
