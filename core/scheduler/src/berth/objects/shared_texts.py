"""One object for a text that comes again and again in what the API server sends: a node's name, a label."""

MOST = 16_384
LONGEST = 253
"""Longer ones are no names, nor labels; users may write any text."""


class SharedTexts:
    """The texts that were met last, each with the object that stands for it.

    Bounded: where there are more of them, all are forgotten, and from then on others stand for them. Not by
    sys.intern, which keeps a text for ever in Python 3.12.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """The object for that text."""
        known = self._known.get(text)
        if known is not None:
            return known
        if len(text) > LONGEST:
            return text
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[text] = text
        return text
