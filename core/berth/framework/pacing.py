"""Work of a plugin on what users wrote, in steps between which everything else may have its turn."""

from collections.abc import Awaitable, Generator
from typing import TypeVar

from berth.framework.cycle_budget import CycleMeter

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that yields after each bounded part of it, and returns its result."""


def paced(meter: CycleMeter, where: str, steps: Steps[T]) -> T | Awaitable[T]:
    """The result of the steps: at once, or as an awaitable if others are due their turn before the last step.

    `where` is the plugin at work. Raises, as does the awaitable: OverBudgetError, and whatever a step raises.
    """
    try:
        while True:
            next(steps)
            if meter.worked(where):
                return _in_turns(meter, where, steps)
    except StopIteration as end:
        result: T = end.value
        return result


async def _in_turns(meter: CycleMeter, where: str, steps: Steps[T]) -> T:
    try:
        while True:
            await meter.breathe()
            next(steps)
            while not meter.worked(where):
                next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def at_once(steps: Steps[T]) -> T:
    """The result of the steps, one right after the other. Raises whatever a step raises."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
