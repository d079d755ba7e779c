"""The clock of a plugin: the machine's own, until a scheduler says the time; that scheduler's from then on.

    own --Time--> told --Begin of a stream without Time--> own

Timers keep what is left of them where the clock turns from one to the other.

Source: proto/berth/plugin/v1/state.proto, `Time`; docs/protocol.md "Time".
"""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

MICROS = 1_000_000

log = logging.getLogger(__name__)

# CLOCK_MONOTONIC stands still while a machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _steady() -> float:
    return time.clock_gettime(_STEADY)


@dataclass(order=True, slots=True)
class Timer:
    """A function that waits for its time."""

    due_micros: int
    number: int
    function: Callable[[], object] | None = field(compare=False)

    def cancel(self) -> None:
        """Do not call the function; nothing happens where it was called, or cancelled, before."""
        self.function = None


class Clock:
    """What time it is, and timers by that time; used on the plugin's event loop.

    The machine's time is read once, and counted on from there: the clock never jumps, whatever is done to
    the machine's. It goes back only where another run of a scheduler says an earlier time, which
    `state_reset` announces as a changed epoch.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady) -> None:
        self._steady = steady
        self._ahead = wall() - steady()
        self._told_micros: int | None = None
        """The scheduler's time, None while the clock is the plugin's own."""
        self._timers: list[Timer] = []
        self._numbers = count()
        self._alarm: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        return self._micros() / MICROS

    def after(self, seconds: float, function: Callable[[], object]) -> Timer:
        """Call the function once so many seconds have passed, between two calls of the scheduler.

        What it raises is logged.
        """
        due = self._micros() + max(1, round(seconds * MICROS))
        timer = Timer(due, next(self._numbers), function)
        heapq.heappush(self._timers, timer)
        if timer is self._timers[0]:
            self.arm()
        return timer

    # The SDK's side.

    def arm(self) -> None:
        """Wake up at the next timer's time, where the clock is the plugin's own and an event loop runs."""
        self.disarm()
        due = self.next_due_micros()
        if due is None or self._told_micros is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # before the plugin is served
        self._alarm = loop.call_later(max(0.0, (due - self._micros()) / MICROS), self._ring)

    def disarm(self) -> None:
        """Call nothing any more by itself."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def next_due_micros(self) -> int | None:
        """Return when the next timer is due, None if none is set."""
        while self._timers and self._timers[0].function is None:
            heapq.heappop(self._timers)
        return self._timers[0].due_micros if self._timers else None

    def reach(self, micros: int) -> None:
        """Stand at that time of the scheduler, after each timer that is due by then was called at its own."""
        if self._told_micros is None or micros < self._told_micros:
            self._turn(micros)
        while (due := self.next_due_micros()) is not None and due <= micros:
            self._told_micros = max(due, self._told_micros or due)
            self._call_next()
        self._told_micros = micros

    def own(self) -> None:
        """Go on by the machine's time."""
        if self._told_micros is not None:
            self._turn(None)
            self.arm()

    def _micros(self) -> int:
        if self._told_micros is not None:
            return self._told_micros
        return round((self._ahead + self._steady()) * MICROS)

    def _turn(self, told_micros: int | None) -> None:
        """Count by another time; timers keep what is left of them."""
        self.disarm()
        before = self._micros()
        self._told_micros = told_micros
        shift = self._micros() - before
        for timer in self._timers:  # the order stays
            timer.due_micros += shift

    def _ring(self) -> None:
        now = self._micros()
        while (due := self.next_due_micros()) is not None and due <= now:
            self._call_next()
        self.arm()

    def _call_next(self) -> None:
        function = heapq.heappop(self._timers).function
        assert function is not None, "next_due_micros dropped those that were cancelled"
        try:
            function()
        except Exception:
            log.exception("timer failed")
