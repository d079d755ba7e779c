"""Turns between threads: who asks first has the next one, and a turn lasts one step of an answer.

Answers are made in threads of their own, one for each client. A client with a long answer waits after each
step for all others that want one, so it can't keep them from theirs.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class RequestTurns:
    """One turn at a time, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._waiting)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and have it until the end of the block. Not to be nested."""
        self._take()
        try:
            yield
        finally:
            self._give()

    def _take(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        mine.wait()

    def _give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
