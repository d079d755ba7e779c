"""Where the parts of a JSON document are that no decoder has read.

Called by: legible, and watching/whole_list, for documents that the decoder refuses.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Spans = list[tuple[int, int]]

_QUOTE, _OPENING, _CLOSING, _BRACES = ord('"'), ord("{"), ord("}"), 0x20


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

    def enclosed(self, places: Sequence[int], spans: Spans) -> list[bool]:
        """Which places are within a string, or within one of these spans, which are in order and apart."""
        starts = np.array(places, dtype=np.int64)
        inside = self.in_string(starts)
        if spans:
            before = np.searchsorted(np.array([start for start, _ in spans]), starts, side="right") - 1
            ends = np.array([end for _, end in spans])
            inside |= (before >= 0) & (starts < ends[before])
        enclosed: list[bool] = inside.tolist()
        return enclosed
