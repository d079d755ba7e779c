"""Boolean columns, one for each distinct thing that nodes have: a taint, a host port, an image."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from berth.snapshot.columns import Mask, grown

T = TypeVar("T")


class FlagColumns(Generic[T]):
    """Which nodes have which of a set of distinct things.

    Shapes: has bool (t, capacity), a row for each thing, in the order of `things`.
    """

    def __init__(self, capacity: int) -> None:
        self.things: list[T] = []
        self.index: dict[T, int] = {}
        self.has: Mask = np.zeros((0, capacity), dtype=bool)

    def set_row(self, row: int, things: Iterable[T]) -> None:
        """Say what one node has."""
        numbers = [self._number(thing) for thing in things]
        if self.things:
            self.has[:, row] = False
            self.has[numbers, row] = True

    def column(self, thing: T, n: int) -> Mask | None:
        """Which of the first n nodes have it; None where no node ever had."""
        number = self.index.get(thing)
        return None if number is None else self.has[number, :n]

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.has = grown(self.has, capacity)

    def move_row(self, source: int, target: int) -> None:
        """Copy a row over another."""
        self.has[:, target] = self.has[:, source]

    def _number(self, thing: T) -> int:
        known = self.index.get(thing)
        if known is None:
            known = self.index[thing] = len(self.things)
            self.things.append(thing)
            self.has = np.vstack((self.has, np.zeros((1, self.has.shape[1]), dtype=bool)))
        return known
