"""How long ago claims were allocated: by a clock that is never set, of those that this process allocated."""

from datetime import datetime
from typing import NamedTuple

from berth.framework.clock import Clock
from berth.objects.devices.resource_claims import ResourceClaim

MAX_KEPT = 4096
"""So many allocations are remembered; the age of one before them is read from the wall clock."""


class _Written(NamedTuple):
    """The time that an allocation carries, and when that was. Units: monotonic seconds."""

    moment: datetime
    at: float


class AllocationAges:
    """The ages of allocations. Units: seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: dict[str, _Written] = {}

    def allocated(self, uid: str, moment: datetime) -> None:
        """Take note that the claim of that UID is allocated now, and carries that time."""
        self._written.pop(uid, None)
        self._written[uid] = _Written(moment, self._clock.monotonic())
        if len(self._written) > MAX_KEPT:
            del self._written[next(iter(self._written))]

    def of(self, claim: ResourceClaim) -> float | None:
        """How old the claim's allocation is; None where it carries no time.

        What another process wrote can only be compared with the wall clock, as upstream compares it.
        """
        moment = claim.allocation.allocation_timestamp if claim.allocation else None
        if moment is None:
            return None
        written = self._written.get(claim.uid)
        if written is not None and written.moment == moment:
            return self._clock.monotonic() - written.at
        return self._clock.wall() - moment.timestamp()
