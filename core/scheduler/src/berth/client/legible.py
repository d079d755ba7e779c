"""JSON that the API server sends and that decoders of Python refuse, as a document that they read.

The API server keeps opaque values, such as the parameters of a claim's configuration, byte for byte. Go's
decoder takes there what others do not: surrogates without their other half, bytes that are no UTF-8, numbers
of any size, ten thousand levels.

Called by: wire, whenever a document could not be decoded as it is.
"""

import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

DEEPEST = 64
"""How deep documents are read that are nested deeper than the decoder goes."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that it does not take."""

Spans = list[tuple[int, int]]

_QUOTE, _OPENING, _CLOSING, _BRACES = ord('"'), ord("{"), ord("}"), 0x20
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_HALVES = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_REPLACEMENT = rb"\ufffd"
# Of fewer digits, and a smaller exponent, every number is within the range of a float.
_LARGE_NUMBER = re.compile(rb"(?<![\w.+-])-?(?:[\d.]{200,}+|[\d.]{1,199}+[eE]\+?\d{3,})[\d.eE+-]*")
# Made anew by each process, so that no object can hold such a text by itself.
_FOLDED = secrets.token_hex(16).encode()
_FOLDED_TEXT = re.compile(rb'"%s((?:[\w+/]{4})*(?:[\w+/]{2}==|[\w+/]{3}=)?)"' % _FOLDED, re.ASCII)


class JsonLayout:
    """Where the strings, lists and maps of a JSON document are. Cost: linear in its length, in numpy."""

    def __init__(self, document: bytes) -> None:
        # Two backslashes stand for one; after that, one that is left escapes what follows.
        text = document.replace(rb"\\", b"  ")
        self.escapes = text
        letters = np.frombuffer(text.replace(rb"\"", b"  "), dtype=np.uint8)
        self._quotes = np.flatnonzero(letters == _QUOTE)
        # Brackets and braces differ in one bit.
        either = letters | _BRACES
        places = np.flatnonzero((either == _OPENING) | (either == _CLOSING))
        self._places = places[~self.in_string(places)]
        self._opens = either[self._places] == _OPENING
        self._depth = np.cumsum(np.where(self._opens, 1, -1), dtype=np.int64)

    def in_string(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which places are within a string."""
        before = np.asarray(np.searchsorted(self._quotes, places), dtype=np.int64)
        inside: NDArray[np.bool_] = before % 2 == 1
        return inside

    def nested(self, depth: int) -> Spans:
        """Start and end of every list and map that is so deep, 1 for the document; only whole ones."""
        starts = self._places[self._opens & (self._depth == depth)]
        ends = self._places[~self._opens & (self._depth == depth - 1)] + 1
        return list(zip(starts.tolist(), ends.tolist(), strict=False))


def legible(document: bytes) -> bytes:
    """The JSON document as one that every decoder reads; the same bytes where it is one.

    Text is what Go makes of it: U+FFFD stands for what is no Unicode. For a list or map nested deeper than
    DEEPEST, and a number beyond a float, there is a text that holds it; `unfolded` gives it back.
    Cost: linear in the length, without recursion.
    """
    text = document
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode(errors="replace").encode()
    layout = JsonLayout(text)
    if _SURROGATE.search(layout.escapes):
        text = _without_halves(text, layout)
        layout = JsonLayout(text)
    deep = layout.nested(DEEPEST + 1)
    return _exchanged(text, sorted([*deep, *_numbers(text, layout, deep)]))


def unfolded(document: bytes) -> bytes:
    """The document with what `legible` left out of it."""
    return _FOLDED_TEXT.sub(_value, document) if _FOLDED in document else document


def split(document: bytes, depth: int) -> tuple[bytes, list[bytes]]:
    """The document with the number of each list and map that is so deep in its place, and these.

    A number stands in a text that no document holds by itself; `part` gives it back.
    """
    spans = JsonLayout(document).nested(depth)
    shell = _joined(document, spans, (b'"%s%d"' % (_FOLDED, number) for number in range(len(spans))))
    return shell, [document[start:end] for start, end in spans]


def part(value: msgspec.Raw, parts: list[bytes]) -> msgspec.Raw:
    """What a value stands for in a document that was split."""
    mark, text = b'"' + _FOLDED, bytes(value)
    return msgspec.Raw(parts[int(text[len(mark) : -1])]) if text.startswith(mark) else value


def _without_halves(document: bytes, layout: JsonLayout) -> bytes:
    """The document with U+FFFD for each surrogate that lacks its other half."""
    # In `escapes` every backslash begins an escape; both are of one length.
    halves = [found.span() for found in _HALVES.finditer(layout.escapes) if not found[1]]
    return _joined(document, halves, (_REPLACEMENT for _ in halves))


def _numbers(document: bytes, layout: JsonLayout, deep: Spans) -> Iterator[tuple[int, int]]:
    """The numbers that are no float and no integer here, but for those that are folded already."""
    found = [each.span() for each in _LARGE_NUMBER.finditer(document)]
    starts = np.array([start for start, _ in found], dtype=np.int64)
    inside = layout.in_string(starts)
    if deep:
        before = np.searchsorted(np.array([start for start, _ in deep]), starts, side="right") - 1
        ends = np.array([end for _, end in deep])
        inside |= (before >= 0) & (starts < ends[before])
    for (start, end), hidden in zip(found, inside.tolist(), strict=True):
        if not hidden and not _readable(document[start:end]):
            yield start, end


def _readable(value: bytes) -> bool:
    try:
        msgspec.json.decode(value)
    except UNREADABLE:
        return False
    return True


def _exchanged(document: bytes, spans: Spans) -> bytes:
    texts = (b'"%s%s"' % (_FOLDED, b64encode(document[start:end])) for start, end in spans)
    return _joined(document, spans, texts)


def _joined(document: bytes, spans: Spans, instead: Iterator[bytes]) -> bytes:
    """The document with something else in place of these parts of it."""
    kept, begun = [], 0
    for (start, end), other in zip(spans, instead, strict=True):
        kept += [document[begun:start], other]
        begun = end
    return b"".join((*kept, document[begun:]))


def _value(found: re.Match[bytes]) -> bytes:
    """What the text stands for, if that is one value: it cannot end what it stands in."""
    value = b64decode(found[1])
    return value if _readable(legible(value)) else found[0]
