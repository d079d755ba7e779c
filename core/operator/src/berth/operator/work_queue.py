"""Which Schedulers are to be looked at: each at most once at a time, failures later and later.

    add ─▶ waiting ─▶ at work ─▶ done            added meanwhile: waiting again
                        └──▶ failed ─(pause)─▶ waiting

Source: k8s.io/client-go/util/workqueue (v1.36).
"""

import asyncio
from collections.abc import Callable

from berth.framework.pacing import Backoff
from berth.operator.kinds import SchedulerKey

LONGEST_PAUSE_SECONDS = 60.0
RETRIES = Backoff(0.2, LONGEST_PAUSE_SECONDS)


class WorkQueue:
    """A queue of keys for several workers, no two of which have the same key at a time.

    `later` runs something after so many seconds.
    """

    def __init__(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._later = later
        self._waiting: dict[SchedulerKey, None] = {}
        self._failures: dict[SchedulerKey, int] = {}
        self._at_work: set[SchedulerKey] = set()
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: SchedulerKey) -> None:
        """Have the key looked at, soon."""
        self._waiting[key] = None
        self._ready.set()

    def add_later(self, key: SchedulerKey, seconds: float) -> None:
        """Have the key looked at after a while."""
        self._later(seconds, lambda: self.add(key))

    async def get(self) -> SchedulerKey:
        """Wait for the next key; `succeeded` or `failed` has to follow."""
        while (key := self._next()) is None:
            self._ready.clear()
            await self._ready.wait()
        del self._waiting[key]
        self._at_work.add(key)
        return key

    def _next(self) -> SchedulerKey | None:
        return next((key for key in self._waiting if key not in self._at_work), None)

    def _done(self, key: SchedulerKey) -> None:
        self._at_work.discard(key)
        if key in self._waiting:
            self._ready.set()

    def succeeded(self, key: SchedulerKey) -> None:
        """Forget earlier failures."""
        self._done(key)
        self._failures.pop(key, None)

    def failed(self, key: SchedulerKey) -> float:
        """Have the key looked at again; gives after how many seconds at the latest, for it may be added."""
        self._done(key)
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = RETRIES.pause(count)
        self.add_later(key, pause)
        return pause
