"""What changed, in order, for any number of readers who each ask from where they left off."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT = 16384
MAX_BYTES = 16 << 20


class Journal(Generic[T]):
    """The last changes; a reader that lags behind what is kept has to start from the whole again.

    Changes that users can make large are weighed by `size_of`, and take at most `MAX_BYTES` together.
    """

    __slots__ = ("_bytes", "_kept", "_size_of", "end")

    def __init__(self, kept: int = KEPT, size_of: Callable[[T], int] | None = None) -> None:
        self._kept: deque[T] = deque(maxlen=kept)
        self._size_of = size_of
        self._bytes = 0
        self.end = 0

    def note(self, change: T) -> None:
        """Add a change."""
        self.end += 1
        if self._size_of is not None:
            self._weigh(change, self._size_of)
        self._kept.append(change)

    def _weigh(self, change: T, size_of: Callable[[T], int]) -> None:
        """Make room for a change."""
        self._bytes += size_of(change)
        while self._kept and (self._bytes > MAX_BYTES or len(self._kept) == self._kept.maxlen):
            self._bytes -= size_of(self._kept.popleft())

    def since(self, position: int) -> Sequence[T] | None:
        """The changes since the journal ended there; None where some of them are gone."""
        missed = self.end - position
        if missed > len(self._kept):
            return None
        return tuple(islice(reversed(self._kept), missed))[::-1]
