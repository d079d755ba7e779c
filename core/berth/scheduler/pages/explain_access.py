"""How explanations of this scheduler are reached: by whom they are made, and what its leases say of it.

status_pages.py mounts the pages; election.py has the leases carry what `published` gives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.aggregated_api.leaders import ANNOTATION, Leader, Published, leaders
from berth.aggregated_api.routing import Explanation, Here, Routing
from berth.client.api import Api
from berth.client.transport import Transport
from berth.config.shards import Shard
from berth.config.types import LeaderElection

if TYPE_CHECKING:
    from berth.aggregated_api.pages import ExplainPages


def published(
    identity: str, shard: Shard, address: str, fingerprint: Callable[[], str]
) -> Callable[[], dict[str, str]]:
    """Give what annotates a shard's lease while this process holds it, as it is now."""

    def annotations() -> dict[str, str]:
        said = Published(identity, address, fingerprint(), shard.profiles)
        return {ANNOTATION: said.text()}

    return annotations


@dataclass(frozen=True, slots=True)
class ExplainAccess:
    """What routing takes beside the scheduler itself; everything here belongs to the control thread."""

    requests: Transport
    election: LeaderElection
    identity: str

    def pages(
        self, here: Here, merged: Callable[[Sequence[Explanation], Sequence[str]], Explanation]
    ) -> "ExplainPages":
        """The pages that explain what is known here, and have the rest explained where that is known."""
        # Imported here: aiohttp takes 0.3 s of CPU, which the first lists need not wait for.
        from berth.aggregated_api.pages import ExplainPages  # noqa: PLC0415 (see above)
        from berth.aggregated_api.sending_on import SendingOn  # noqa: PLC0415 (see above)

        api = Api(self.requests)

        async def known() -> list[Leader]:
            elects = self.election.leader_elect
            return await leaders(api, self.election.resource_namespace) if elects else []

        routing = Routing(
            pods=api,
            here=here,
            leaders=known,
            send_on=SendingOn(self.identity, self._authorization),
            merged=merged,
        )
        return ExplainPages(routing.explain)

    async def _authorization(self) -> str:
        authorization = self.requests.authorization
        header = authorization.current()
        return await authorization.refresh() if header is None else header
