"""The timeline of a simulation: arrivals and ends of pods and nodes.

Pods have it in annotations, which are also made from a trace's times:

    simulation.berth.dev/arrival-seconds    when the pod is created, after the beginning
    simulation.berth.dev/duration-seconds   how long it runs once it is on its node
    simulation.berth.dev/departure-seconds  when it is deleted, after the beginning, on a node or not

and so do nodes: `arrival-seconds`, and `duration-seconds` until the node is gone.
"""

import heapq
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from berth.objects.api_object import TypedObject
from berth.simulation.errors import InputError

PREFIX: Final = "simulation.berth.dev/"
ARRIVAL: Final = f"{PREFIX}arrival-seconds"
DURATION: Final = f"{PREFIX}duration-seconds"
DEPARTURE: Final = f"{PREFIX}departure-seconds"
LONGEST_SECONDS: Final = 10.0 * 366 * 24 * 3600


class _Due(NamedTuple):
    at: float
    number: int
    act: Callable[[], None]


class Timeline:
    """Actions by time; actions of the same time run in the order in which they were added."""

    def __init__(self) -> None:
        self._due: list[_Due] = []
        self._count = 0

    def put(self, at: float, act: Callable[[], None]) -> None:
        """Add an action at that time."""
        self._count += 1
        heapq.heappush(self._due, _Due(at, self._count, act))

    def next_time(self) -> float:
        """The time of the next action; infinite where there is none."""
        return self._due[0].at if self._due else math.inf

    def run(self, now: float) -> None:
        """Run the actions that are due."""
        while self._due and self._due[0].at <= now:
            heapq.heappop(self._due).act()


def arrival_of(obj: TypedObject) -> float:
    """Seconds until the object is created, 0 for one that exists from the beginning. Raises: InputError."""
    return _seconds(obj, ARRIVAL) or 0.0


def duration_of(obj: TypedObject) -> float | None:
    """Seconds that the object stays, None for one that stays for good. Raises: InputError."""
    return _seconds(obj, DURATION)


def departure_of(obj: TypedObject) -> float | None:
    """Seconds until the object is deleted, None for one that never is. Raises: InputError."""
    return _seconds(obj, DEPARTURE)


def _seconds(obj: TypedObject, annotation: str) -> float | None:
    text = obj.metadata.annotations.get(annotation)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_SECONDS:
        named = f"{type(obj).__name__} {obj.key}: metadata.annotations[{annotation}]"
        raise InputError(
            f"{named}: found {text[:60]!r}; a number of seconds from 0 to {LONGEST_SECONDS:.0f} is expected"
        )
    return seconds
