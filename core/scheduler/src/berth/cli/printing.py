r"""What the program prints passes here: users write parts of it, and terminals obey what is in these.

Escape sequences, carriage returns and what turns the direction of writing are shown as JSON writes them,
`\u001b`, so that data stays the data that it is.

Called by: main, around every command.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

_KEPT = frozenset("\n\t")


def shown(text: str) -> str:
    """The text without control characters but for line ends and tabs, and without hidden ones."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each in _KEPT else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class _Shown(TextIOWrapper):
    """A text stream beside another one, over the same bytes."""

    def write(self, text: str, /) -> int:
        super().write(shown(text))
        return len(text)


@contextmanager
def printed() -> Iterator[None]:
    """What is printed within the block is shown, to standard output and standard error."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_over, before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _Shown):
                stream.detach()  # Else it would close what is below it.
        sys.stdout, sys.stderr = before


def _over(stream: TextIO) -> TextIO:
    # A stream that is closed is None, and one that stands in for another may have no bytes below it.
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        return stream
    stream.flush()
    return _Shown(buffer, encoding=stream.encoding, errors=stream.errors, write_through=True)
