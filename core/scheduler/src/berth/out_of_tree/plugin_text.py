"""Sanitizes plugins' texts for conditions, events, log lines, spans and files.

Source: docs/protocol.md "Limits".
"""

import unicodedata

from berth.out_of_tree.limits import REASON_BYTES

ELLIPSIS = "…"
# Control and format characters (such as bidirectional overrides), surrogates, line and paragraph separators.
_UNSHOWABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def bounded(text: str, max_bytes: int = REASON_BYTES) -> str:
    """Give the text on one line, without control characters, in at most that many bytes of UTF-8.

    Cost: O(max_bytes), however long the text is.
    """
    begin = text[:max_bytes]
    if begin.isascii() and begin.isprintable() and len(text) <= max_bytes:
        return text
    data = "".join(map(_shown, begin)).encode()
    if len(data) <= max_bytes and len(text) <= max_bytes:
        return data.decode()
    return data[: max_bytes - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSHOWABLE:
        return character
    return character.encode("unicode_escape").decode()
