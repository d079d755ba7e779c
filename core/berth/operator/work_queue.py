"""Which Schedulers are to be looked at: each at most once at a time, failures later and later.

    add ─▶ waiting ─▶ at work ─▶ done            added meanwhile: waiting again
                        └──▶ failed ─(pause)─▶ waiting

Source: k8s.io/client-go/util/workqueue (v1.36).
"""

import asyncio
from collections.abc import Callable

from berth.operator.kinds import Key

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 60.0


class WorkQueue:
    """A queue of keys for one worker; `later` runs something after so many seconds."""

    def __init__(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._later = later
        self._waiting: dict[Key, None] = {}
        self._failures: dict[Key, int] = {}
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: Key) -> None:
        """Have the key looked at, soon."""
        self._waiting[key] = None
        self._ready.set()

    def add_later(self, key: Key, seconds: float) -> None:
        """Have the key looked at after a while."""
        self._later(seconds, lambda: self.add(key))

    async def get(self) -> Key:
        """Wait for the next key."""
        while not self._waiting:
            self._ready.clear()
            await self._ready.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        return key

    def succeeded(self, key: Key) -> None:
        """Forget earlier failures."""
        self._failures.pop(key, None)

    def failed(self, key: Key) -> float:
        """Have the key looked at again; gives after how many seconds."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        pause: float = min(FIRST_PAUSE_SECONDS * 2.0**count, LONGEST_PAUSE_SECONDS)
        self.add_later(key, pause)
        return pause
