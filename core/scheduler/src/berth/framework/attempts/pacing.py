"""Work of a plugin in steps between which everything else may have its turn."""

from collections.abc import Awaitable
from typing import TypeVar

from berth.framework.attempts.cycle_budget import CycleMeter
from berth.objects.steps import Steps

T = TypeVar("T")


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
