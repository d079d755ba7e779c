"""How new a mirror is: versions that can be compared, and for how long nothing was heard.

Called by: reflector, which keeps both up to date; the fence of a scheduler decides by them.
"""

import math

from berth.framework.clock import Clock


def covers(version: str, wanted: str) -> bool | None:
    """Whether a mirror at `version` has every write up to `wanted`; None if that cannot be said.

    Resource versions of one kind are decimal integers that grow. Source: KEP-5504.
    """
    if not (is_comparable(version) and is_comparable(wanted)):
        return None
    return int(version) >= int(wanted)


def is_comparable(version: str) -> bool:
    """Whether it is a decimal integer as the API server writes one."""
    return version.isascii() and version.isdecimal() and version[0] != "0"


class Absence:
    """For how long at most a watch was away since that was last forgiven, the present absence included.

    Units: seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = math.inf
        self._longest = 0.0

    def begin(self) -> None:
        """The watch ended."""
        self._since = min(self._since, self._clock.monotonic())

    def end(self) -> None:
        """The watch is back, or there is nothing to be seen of its kind."""
        self._longest = self.seconds()
        self._since = math.inf

    def forgive(self) -> None:
        """Count from now on: what was missed before is about to be made up for."""
        self._longest = 0.0
        self._since = math.inf if self._since == math.inf else self._clock.monotonic()

    def seconds(self) -> float:
        """The longest absence so far."""
        if self._since == math.inf:
            return self._longest
        return max(self._longest, self._clock.monotonic() - self._since)
