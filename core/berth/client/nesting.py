"""JSON text cut at a depth, for decoders that recurse."""

import re
from typing import Final

DEEPEST: Final = 128
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')


def shallow(body: bytes) -> bytes:
    """Give valid JSON with its arrays and objects below DEEPEST levels emptied.

    Cost: one pass over the text, without recursion.
    """
    body = bytes(body)
    depth = start = 0
    kept = []
    for token in _TOKEN.finditer(body):
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(body[start : token.end()])
        elif mark in (b"}", b"]"):
            if depth == DEEPEST + 1:
                start = token.start()
            depth -= 1
    return b"".join((*kept, body[start:]))
