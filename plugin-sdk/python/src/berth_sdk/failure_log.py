"""Log lines about the author's functions that fail: one that fails at every pod does not fill the disk."""

import logging
import time
from collections.abc import Callable

LINES_AT_ONCE = 20
LINES_A_SECOND = 0.5


class FailureLog:
    """Writes a line for each failure unless there are too many; the next one says how many were left out."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._left = float(LINES_AT_ONCE)
        self._looked = now()
        self._left_out = 0

    def failed(self, function: str, error: Exception) -> None:
        """Write that the function failed: with its traceback, or what is wrong with its answer."""
        now = self._now()
        self._left = min(LINES_AT_ONCE, self._left + (now - self._looked) * LINES_A_SECOND)
        self._looked = now
        if self._left < 1:
            self._left_out += 1
            return
        self._left -= 1
        left_out, self._left_out = self._left_out, 0
        # What an answer lacks is said in full; of an exception the author wants to see the way.
        self._log.error(
            "plugin function failed function=%s err=%s left_out=%s",
            function,
            error,
            left_out,
            exc_info=error.__cause__,
        )
