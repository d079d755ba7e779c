"""How explanations of this scheduler are reached: by whom they are made, and what its leases say of it.

status_pages.py mounts the pages; election.py has the leases carry what `published` gives.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from berth.aggregated_api.errors import UnavailableError
from berth.aggregated_api.leaders import ANNOTATION, Leader, Published, leaders
from berth.aggregated_api.replicas import authorization
from berth.aggregated_api.routing import Explanation, Here, Routing
from berth.client.api import Api
from berth.client.errors import ClientError
from berth.client.resources import PODS
from berth.client.transport import Query, Transport
from berth.client.wire import decode_page
from berth.config.shards import Shard
from berth.config.types import LeaderElection

PAGE_SECONDS = 5.0
"""So long a page is waited for that is asked for each second."""

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


class ExplainAccess(msgspec.Struct, frozen=True):
    """What routing takes beside the scheduler itself; everything here belongs to the control thread."""

    requests: Transport
    election: LeaderElection
    identity: str
    own_leases: frozenset[str]
    """Names of the leases for which this process campaigns."""
    token_file: str
    """What other replicas know this process by (berth.aggregated_api.replicas)."""
    pod_namespace: str = ""
    """The namespace of this process's pod and its replicas', not always the lease's; "" outside of pods."""

    def pages(
        self, here: Here, merged: Callable[[Sequence[Explanation], Sequence[str]], Explanation]
    ) -> "ExplainPages":
        """The pages that explain what is known here, and have the rest explained where that is known."""
        # Imported here: aiohttp takes 0.3 s of CPU, which the first lists need not wait for.
        from berth.aggregated_api.pages import ExplainPages  # noqa: PLC0415 (see above)
        from berth.aggregated_api.sending_on import SendingOn  # noqa: PLC0415 (see above)

        routing = Routing(
            pods=Api(self.requests),
            here=here,
            own_leases=self.own_leases,
            leaders=self._leaders,
            send_on=SendingOn(self.identity, self._authorization),
            merged=merged,
        )
        return ExplainPages(routing.explain)

    def page_of_leader(self, profiles: Collection[str]) -> Callable[[str], Awaitable[bytes]]:
        """Give what gets a page, by its path, of another replica that leads for one of these profiles."""
        from berth.aggregated_api.sending_on import SendingOn  # noqa: PLC0415 (see pages)

        sending_on = SendingOn(self.identity, self._authorization, PAGE_SECONDS)

        async def page(path: str) -> bytes:
            """Raises: UnavailableError."""
            try:
                found = await self._leaders()
            except (ClientError, msgspec.MsgspecError) as error:
                raise UnavailableError(f"who leads can't be read from the leases: {error}") from error
            leader = next((one for one in found if self._leads_beside(one, profiles)), None)
            if leader is None:
                raise UnavailableError("no other replica leads")
            status, body = await sending_on.get(leader, path)
            if status != HTTPStatus.OK:
                raise UnavailableError(f"{leader.published.identity} answers {status}")
            return body

        return page

    def _leads_beside(self, leader: Leader, profiles: Collection[str]) -> bool:
        """Whether that is another replica, which leads for one of these profiles now."""
        published = leader.published
        shared = not set(profiles).isdisjoint(published.profiles)
        ours = leader.lease in self.own_leases
        return leader.current and ours and shared and published.identity != self.identity

    async def _leaders(self) -> list[Leader]:
        """Those of the namespace. Raises: ClientError, MsgspecError."""
        if not self.election.leader_elect:
            return []
        return await leaders(Api(self.requests), self.election.resource_namespace)

    async def _authorization(self, leader: Leader) -> str:
        """The header by which the leader knows this process. Raises: ClientError, OSError."""
        header = authorization(self.token_file)
        if header:
            await self._prove(leader)
        return header

    async def _prove(self, leader: Leader) -> None:
        """Raise OSError unless a pod of the schedulers' namespaces has the address that the leader published.

        They are that of this process's pod, and that of the lease. Who may write a lease can write any
        address into it, but gives no pod an address.
        """
        host = leader.published.address.rpartition(":")[0].strip("[]")
        namespaces = sorted({self.pod_namespace, self.election.resource_namespace} - {""})
        query: Query = {"fieldSelector": f"status.podIP={host}", "limit": 1}
        for namespace in namespaces:
            body = await Api(self.requests).call("GET", PODS.collection(namespace), query=query)
            if decode_page(body).items:
                return
        raise OSError(f"no pod in namespace {' or '.join(namespaces)} has the address {host}")
