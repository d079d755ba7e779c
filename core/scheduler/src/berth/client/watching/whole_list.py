"""A list in one answer, taken apart while it arrives: neither its bytes nor its items are ever here at once.

The API server answers such a list from its watch cache; pages of one it reads from etcd, at two or three
times the CPU.

Called by: watch.
"""

import re

import msgspec

from berth.client.legible import UNREADABLE, layout_of
from berth.client.wire import Page, decode_page

MAX_BYTES = 16 << 20
"""So much is waited for until an item is whole; the API server takes objects of 3 MiB at most."""
_TRIES = 8
_ITEMS = b'"items":['
# A quote that stands in a string is escaped, so this is never a part of one. It may be within an item.
_BETWEEN = re.compile(rb'\},(?=\{"(?:metadata":\{|kind":"|apiVersion":"))')
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class ListPieces:
    """The items of a list in order, from its bytes as they come."""

    def __init__(self) -> None:
        self._head = b""
        self._rest = bytearray()
        self._enough = 0

    def take(self, data: bytes) -> list[msgspec.Raw]:
        """The items that are whole with these bytes, and were not before.

        Raises: msgspec.DecodeError where that many bytes make no item.
        """
        self._rest += data
        if not self._head:
            self._begin()
        items = self._whole_items() if self._head and len(self._rest) >= self._enough else []
        if len(self._rest) > MAX_BYTES:
            raise msgspec.DecodeError(f"no end of an item in {MAX_BYTES} bytes")
        return items

    def last(self) -> Page:
        """The last items with the list's metadata, once all bytes are taken.

        Raises: msgspec.DecodeError where they were no list.
        """
        return decode_page(self._head + self._rest)

    def _begin(self) -> None:
        begun = self._rest.find(_ITEMS)
        if begun >= 0:
            at = begun + len(_ITEMS)
            self._head = bytes(self._rest[:at])
            del self._rest[:at]

    def _whole_items(self) -> list[msgspec.Raw]:
        ends = [found.end() for found in _BETWEEN.finditer(self._rest)]
        for end in reversed(ends[-_TRIES:]):
            try:
                items = _decode_items(b"[" + self._rest[: end - 1] + b"]")
            except UNREADABLE:
                continue  # Between two parts of an item, whose brackets are not closed yet; or illegible.
            del self._rest[:end]
            self._enough = 0
            return items
        if ends and (items := self._illegible_items()):
            return items
        # A large item is looked through a few times, not with all that arrives of it.
        self._enough = 2 * len(self._rest)
        return []

    def _illegible_items(self) -> list[msgspec.Raw]:
        """Whole items, of which some may be such that no decoder reads them."""
        text = b"[" + self._rest
        # The last one stays, with what is behind it: a comma, or the end of the list.
        *spans, _ = layout_of(text).nested(2) or [(0, 0)]
        if not spans:
            return []
        del self._rest[: spans[-1][1] - 1]
        self._rest = self._rest.lstrip(b", \n")
        return [msgspec.Raw(text[start:end]) for start, end in spans]
