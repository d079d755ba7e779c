"""The moment as the replica shows it that leads: a standby has no queue and takes no decisions of its own.

    browser ──► standby ──its own credentials──► leader

The user was authorized by the standby. A request of another replica is answered with what is here (pages.py),
so that none is passed on twice.
"""

from collections.abc import Awaitable, Callable

import msgspec

from berth.aggregated_api.errors import UnavailableError
from berth.live_page.collecting import Collected, LiveState
from berth.live_page.node_map import version_of
from berth.live_page.paths import NODES, STATE

TRIES = 2

Fetch = Callable[[str], Awaitable[bytes]]
"""One of the leader's pages, by its path. Raises: UnavailableError."""


class OfTheLeader:
    """Asks the leader by `fetch`, for the nodes only once they are others than those it had last."""

    def __init__(self, fetch: Fetch, here: Callable[[], Awaitable[Collected]]) -> None:
        self._fetch = fetch
        self._here = here
        self._version = ""
        self._nodes = b""

    async def collect(self) -> Collected:
        """The leader's moment; this replica's, which says that it stands by, where no leader gives one."""
        try:
            for _ in range(TRIES):
                state = msgspec.json.decode(await self._fetch(STATE), type=LiveState)
                if state.nodes != self._version:
                    self._nodes = await self._fetch(NODES)
                    self._version = version_of(self._nodes)
                # Nodes may have come or gone between the two answers: then the state is asked for again.
                if state.nodes == self._version:
                    return Collected(state, self._nodes)
        except (UnavailableError, msgspec.MsgspecError):
            pass
        return await self._here()
