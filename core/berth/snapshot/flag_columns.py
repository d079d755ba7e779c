"""Boolean columns, one for each distinct thing that nodes have: a taint, a host port, an image."""

from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from berth.snapshot.columns import Mask, grown

T = TypeVar("T")

FIRST_THINGS = 16


class FlagColumns(Generic[T]):
    """Which nodes have which of a set of distinct things.

    A thing that no row has any more gives its place to the next new one: taints that carry a time, or images
    that carry a build number, would fill memory otherwise. Until then it stays in `things`, on no node.

    Shapes: has bool (t, capacity), a row for each thing, in the order of `things`.
    """

    def __init__(self, capacity: int) -> None:
        self.things: list[T] = []
        self.index: dict[T, int] = {}
        self._room: Mask = np.zeros((FIRST_THINGS, capacity), dtype=bool)
        self._on_row: dict[int, list[int]] = {}
        self._holders: list[int] = []
        self._free: list[int] = []

    @property
    def has(self) -> Mask:
        """The columns as they are now."""
        return self._room[: len(self.things)]

    def set_row(self, row: int, things: Iterable[T]) -> None:
        """Say what one node has."""
        numbers = [self._number(thing) for thing in dict.fromkeys(things)]
        for number in numbers:
            self._holders[number] += 1
        self.drop_row(row)
        if numbers:
            self._on_row[row] = numbers
            self._room[numbers, row] = True

    def drop_row(self, row: int) -> None:
        """Forget what a node has."""
        numbers = self._on_row.pop(row, None)
        if numbers is None:
            return
        self._room[numbers, row] = False
        for number in numbers:
            self._holders[number] -= 1
            if not self._holders[number]:
                del self.index[self.things[number]]
                self._free.append(number)

    def column(self, thing: T, n: int) -> Mask | None:
        """Which of the first n nodes have it; None where none has."""
        number = self.index.get(thing)
        return None if number is None else self._room[number, :n]

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._room = grown(self._room, capacity)

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that was dropped."""
        numbers = self._on_row.pop(source, None)
        if numbers is not None:
            self._on_row[target] = numbers
            self._room[numbers, source] = False
            self._room[numbers, target] = True

    def _number(self, thing: T) -> int:
        known = self.index.get(thing)
        if known is None:
            known = self.index[thing] = self._place_for(thing)
        return known

    def _place_for(self, thing: T) -> int:
        if self._free:
            number = self._free.pop()
            self.things[number] = thing
            return number
        if len(self.things) == self._room.shape[0]:
            self._room = np.vstack((self._room, np.zeros_like(self._room)))
        self.things.append(thing)
        self._holders.append(0)
        return len(self.things) - 1
