"""A rate-limited log for one plugin: one that fails all the time does not fill the disk.

Source: docs/protocol.md "Limits".
"""

import logging
from collections.abc import Callable

from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.pacing import TokenBucket
from berth.out_of_tree.limits import LINES_A_SECOND, LINES_AT_ONCE


class PluginLog:
    """Writes to a logger at a bounded rate; the next line after dropped ones says how many were dropped."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = SYSTEM_CLOCK.monotonic) -> None:
        self._log = log
        self._lines = TokenBucket(LINES_A_SECOND, LINES_AT_ONCE, now)
        self._left_out = 0

    def warning(self, text: str, *values: object) -> None:
        """Write a warning, within the rate."""
        self._write(logging.WARNING, text, values)

    def info(self, text: str, *values: object) -> None:
        """Write an info line, within the rate."""
        self._write(logging.INFO, text, values)

    def _write(self, level: int, text: str, values: tuple[object, ...]) -> None:
        if not self._lines.take():
            self._left_out += 1
            return
        if self._left_out:
            text, values = f"{text} left_out=%d", (*values, self._left_out)
            self._left_out = 0
        self._log.log(level, text, *values)
