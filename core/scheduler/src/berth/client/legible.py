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
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from berth.client.json_layout import JsonLayout, Spans

DEEPEST = 64
"""How deep documents are read that are nested deeper than the decoder goes."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that it does not take."""

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
    layout = layout_of(text)
    if _SURROGATE.search(layout.escapes):
        text = _without_halves(text, layout)
        layout = layout_of(text)
    deep = layout.nested(DEEPEST + 1)
    return _exchanged(text, sorted([*deep, *_numbers(text, layout, deep)]))


def unfolded(document: bytes) -> bytes:
    """The document with what `legible` left out of it."""
    return _FOLDED_TEXT.sub(_value, document) if _FOLDED in document else document


def split(document: bytes, depth: int) -> tuple[bytes, list[bytes]]:
    """The document with the number of each list and map that is so deep in its place, and these.

    A number stands in a text that no document holds by itself; `part` gives it back.
    """
    spans = layout_of(document).nested(depth)
    shell = _joined(document, spans, (b'"%s%d"' % (_FOLDED, number) for number in range(len(spans))))
    return shell, [document[start:end] for start, end in spans]


def part(value: msgspec.Raw, parts: list[bytes]) -> msgspec.Raw:
    """What a value stands for in a document that was split."""
    mark, text = b'"' + _FOLDED, bytes(value)
    return msgspec.Raw(parts[int(text[len(mark) : -1])]) if text.startswith(mark) else value


def layout_of(document: bytes) -> "JsonLayout":
    """Where its strings, lists and maps are."""
    # Imports numpy, which no other document needs: a scheduler's first request need not wait for it.
    from berth.client.json_layout import JsonLayout  # noqa: PLC0415 (see above)

    return JsonLayout(document)


def _without_halves(document: bytes, layout: "JsonLayout") -> bytes:
    """The document with U+FFFD for each surrogate that lacks its other half."""
    # In `escapes` every backslash begins an escape; both are of one length.
    halves = [found.span() for found in _HALVES.finditer(layout.escapes) if not found[1]]
    return _joined(document, halves, (_REPLACEMENT for _ in halves))


def _numbers(document: bytes, layout: "JsonLayout", deep: "Spans") -> Iterator[tuple[int, int]]:
    """The numbers that are no float and no integer here, but for those that are folded already."""
    found = [each.span() for each in _LARGE_NUMBER.finditer(document)]
    inside = layout.enclosed([start for start, _ in found], deep)
    for (start, end), hidden in zip(found, inside, strict=True):
        if not hidden and not _readable(document[start:end]):
            yield start, end


def _readable(value: bytes) -> bool:
    try:
        msgspec.json.decode(value)
    except UNREADABLE:
        return False
    return True


def _exchanged(document: bytes, spans: "Spans") -> bytes:
    texts = (b'"%s%s"' % (_FOLDED, b64encode(document[start:end])) for start, end in spans)
    return _joined(document, spans, texts)


def _joined(document: bytes, spans: "Spans", instead: Iterator[bytes]) -> bytes:
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
