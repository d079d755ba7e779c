"""Compiled expressions by their text, as many as fit a bound on the length of all texts."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

Program = TypeVar("Program")

# A program takes a few hundred bytes for each character of its text.
CACHED_CHARACTERS: Final = 2**18

Key = tuple[str, Hashable, Hashable]


class ProgramCache(Generic[Program]):
    """The programs that were asked for last."""

    def __init__(self, characters: int = CACHED_CHARACTERS) -> None:
        self._limit = characters
        self._held = 0
        self._programs: OrderedDict[Key, Program] = OrderedDict()

    def __len__(self) -> int:
        return len(self._programs)

    def get(self, key: Key) -> Program | None:
        """The program of that text and those options."""
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
        return found

    def put(self, key: Key, program: Program) -> None:
        """Keep a program; those asked for longest ago make room."""
        self._programs[key] = program
        self._held += _weight(key)
        while self._held > self._limit:
            dropped, _ = self._programs.popitem(last=False)
            self._held -= _weight(dropped)


def _weight(key: Key) -> int:
    # What a program takes beside its text counts as a short one.
    return len(key[0]) + 64
