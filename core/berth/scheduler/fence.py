"""The fence: no decision on a view that is not known to be as new as the right to decide.

    raised (the lease was acquired, or a watch was away too long)
       └── own writes settled ──► every mirror in doubt proven ──► lowered: the loop may pop

The queue takes in what the watches bring meanwhile; pods whose bindings are in doubt keep their rooms.

docs/decisions/0022-fence.md says why that is exact, and what it costs.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from berth.client.errors import ObjectError
from berth.client.freshness import Absence
from berth.client.watch import Source
from berth.client.write_guard import WriteGuard
from berth.framework.clock import Clock, SystemClock

log = logging.getLogger(__name__)


class Mirror(Protocol):
    """A watched kind: how long its watch was away, and the proof that it is up to date."""

    source: Source
    absence: Absence

    async def prove(self) -> None:
        """Return once every write is known that was done before the call. Raises: ObjectError."""


class Fence:
    """Stands between an acquired lease and the first decision, and before decisions after a long absence.

    `mirrors` are all of the moment: plugins come and go, and the kinds that only they watch with them.
    `bound_seconds` is how long a watch may be away. `observe` is told how long the fence was up.
    """

    def __init__(
        self,
        mirrors: Callable[[], Sequence[Mirror]],
        guard: WriteGuard,
        bound_seconds: float,
        *,
        observe: Callable[[float], None] = lambda _: None,
        clock: Clock | None = None,
    ) -> None:
        self._mirrors = mirrors
        self._guard = guard
        self._bound_seconds = bound_seconds
        self._observe = observe
        self._clock = clock or SystemClock()
        self._all_in_doubt = False

    def is_up(self) -> bool:
        """Whether no decision may be taken now."""
        return self._all_in_doubt or any(self._in_doubt())

    def begin_term(self, *, raised: bool) -> None:
        """Let only what is decided from now on be written; if `raised`, nothing is known any more."""
        self._guard.begin_term()
        self._all_in_doubt = raised

    async def lower(self) -> None:
        """Return once decisions may be taken: at once where nothing is in doubt."""
        if not self.is_up():
            return
        began = self._clock.monotonic()
        await self._guard.settled()
        while self.is_up():
            doubted = list(self._mirrors()) if self._all_in_doubt else list(self._in_doubt())
            await asyncio.gather(*map(_proven, doubted))
            self._all_in_doubt = False
        seconds = self._clock.monotonic() - began
        self._observe(seconds)
        log.info("view proven to be up to date, scheduling: kinds=%d seconds=%.3f", len(doubted), seconds)

    def _in_doubt(self) -> Iterator[Mirror]:
        bound = self._bound_seconds
        return (mirror for mirror in self._mirrors() if mirror.absence.seconds() > bound)


async def _proven(mirror: Mirror) -> None:
    try:
        await mirror.prove()
    except ObjectError as error:
        # As for kube-scheduler, what is shown no more is no reason to stand still.
        log.warning("kind not shown, its last state stands: resource=%s error=%s", _plural(mirror), error)


def _plural(mirror: Mirror) -> str:
    return mirror.source.resource.plural
