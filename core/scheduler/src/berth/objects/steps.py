"""Work on what users wrote, in bounded steps between which its caller may give others their turn."""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that yields after each bounded part of it, and returns its result."""


def at_once(steps: Steps[T]) -> T:
    """The result of the steps, one right after the other. Raises whatever a step raises."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
