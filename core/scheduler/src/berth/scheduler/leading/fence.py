"""The fence: no decision on a view that is not known to be as new as the right to decide.

    raised (the lease was acquired, or a watch was away too long)
       └── own writes settled ──► every mirror in doubt proven ──► lowered: the loop may pop

The queue takes in what the watches bring meanwhile; pods whose bindings are in doubt keep their rooms.

docs/decisions/0022-fence.md says why that is exact, and what it costs.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol
from weakref import WeakSet

from berth.client.errors import ObjectError
from berth.client.watching.freshness import Absence
from berth.client.watching.watch import WatchSource
from berth.client.write_guard import Terms, WriteGuard
from berth.framework.clock import Clock, SystemClock

log = logging.getLogger(__name__)


class WatchedMirror(Protocol):
    """A watched kind: how long its watch was away, and the proof that it is up to date."""

    source: WatchSource
    absence: Absence

    async def prove(self) -> None:
        """Return once every write is known that was done before the call. Raises: ObjectError."""


class MirrorView:
    """All watched kinds, and which of them are in doubt; one for all fences of a process.

    `mirrors` are all of the moment: plugins come and go, and the kinds that only they watch with them.
    `bound_seconds` is how long a watch may be away.
    """

    def __init__(
        self,
        mirrors: Callable[[], Sequence[WatchedMirror]],
        bound_seconds: float,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.mirrors = mirrors
        self._bound_seconds = bound_seconds
        self._clock = clock or SystemClock()
        self._sure_until = -math.inf
        """Up to when no mirror can have been away for too long: an absence grows as time passes."""
        # A proof forgives the absence when it begins: until it ends the mirror is in doubt for all fences.
        self._unproven: WeakSet[WatchedMirror] = WeakSet()

    def any_in_doubt(self) -> bool:
        """Whether there is one now; asked before every pod."""
        now = self._clock.monotonic()
        if now < self._sure_until:
            return False
        if any(self.in_doubt()):
            return True
        longest = max((mirror.absence.seconds() for mirror in self.mirrors()), default=0.0)
        self._sure_until = now + self._bound_seconds - longest
        return False

    def in_doubt(self) -> Iterable[WatchedMirror]:
        """The mirrors that nothing is to be decided on."""
        return (mirror for mirror in self.mirrors() if mirror in self._unproven or self._was_away(mirror))

    async def prove(self, mirror: WatchedMirror) -> None:
        """Return once the mirror is up to date, or its kind is shown no more."""
        if self._was_away(mirror):
            self._unproven.add(mirror)
        try:
            await mirror.prove()
        except ObjectError as error:
            # As for kube-scheduler, what is shown no more is no reason to stand still.
            log.warning("kind not shown, its last state stands resource=%s err=%s", _plural(mirror), error)
        self._unproven.discard(mirror)

    def _was_away(self, mirror: WatchedMirror) -> bool:
        return mirror.absence.seconds() > self._bound_seconds


class Fence:
    """Stands between an acquired lease and the first decision, and before decisions after a long absence.

    `terms` are those of its lease. `observe` is called with how long the fence was up.
    """

    def __init__(
        self,
        view: MirrorView,
        guard: WriteGuard,
        terms: Terms,
        *,
        observe: Callable[[float], None] = lambda _: None,
        clock: Clock | None = None,
    ) -> None:
        self._view = view
        self._guard = guard
        self._terms = terms
        self._observe = observe
        self._clock = clock or SystemClock()
        self._all_in_doubt = False

    def is_up(self) -> bool:
        """Whether no decision may be taken now."""
        return self._all_in_doubt or self._view.any_in_doubt()

    def begin_term(self, *, raised: bool) -> None:
        """Let only what is decided from now on be written; if `raised`, nothing is known any more."""
        self._terms.begin()
        self._all_in_doubt = raised

    async def lower(self) -> None:
        """Return once decisions may be taken: at once where nothing is in doubt."""
        if not self.is_up():
            return
        began = self._clock.monotonic()
        await self._guard.settled()
        while self.is_up():
            doubted = list(self._view.mirrors() if self._all_in_doubt else self._view.in_doubt())
            await asyncio.gather(*map(self._view.prove, doubted))
            self._all_in_doubt = False
        seconds = self._clock.monotonic() - began
        self._observe(seconds)
        log.info("view proven to be up to date, scheduling kinds=%s seconds=%.3f", len(doubted), seconds)


def _plural(mirror: WatchedMirror) -> str:
    return mirror.source.resource.plural
