"""What changed, in order, for any number of readers who each ask from where they left off."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT = 16384


class Journal(Generic[T]):
    """The last changes; a reader that lags behind what is kept has to start from the whole again."""

    __slots__ = ("_kept", "end")

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: deque[T] = deque(maxlen=kept)
        self.end = 0

    def note(self, change: T) -> None:
        """Add a change."""
        self._kept.append(change)
        self.end += 1

    def since(self, position: int) -> Sequence[T] | None:
        """The changes since the journal ended there; None where some of them are gone."""
        missed = self.end - position
        if missed > len(self._kept):
            return None
        return tuple(islice(reversed(self._kept), missed))[::-1]
