"""Log lines about one plugin: a plugin that fails all the time does not fill the disk with it.

Source: docs/protocol.md "Limits".
"""

import logging
from collections.abc import Callable

from berth.framework.clock import SYSTEM_CLOCK
from berth.out_of_tree.allowance import Allowance
from berth.out_of_tree.limits import LINES_A_SECOND, LINES_AT_ONCE


class PluginLog:
    """Writes lines to a logger unless there are too many; the next one says how many were left out."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = SYSTEM_CLOCK.monotonic) -> None:
        self._log = log
        self._allowance = Allowance(LINES_AT_ONCE, LINES_A_SECOND, now)
        self._left_out = 0

    def warning(self, text: str, *values: object) -> None:
        """Write a warning, if there is room for it."""
        self._write(logging.WARNING, text, values)

    def info(self, text: str, *values: object) -> None:
        """Write a piece of news, if there is room for it."""
        self._write(logging.INFO, text, values)

    def _write(self, level: int, text: str, values: tuple[object, ...]) -> None:
        if not self._allowance.admits():
            self._left_out += 1
            return
        if self._left_out:
            text, values = f"{text} left_out=%d", (*values, self._left_out)
            self._left_out = 0
        self._log.log(level, text, *values)
