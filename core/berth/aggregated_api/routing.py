"""Who answers for a pod: this process, the replica that leads, or another scheduler.

    the pod's profile ── is ours, and we lead its shard ──────────► here
                      ── is ours, another replica leads ──────────► sent on to it
                      ── another scheduler's, with a lease beside ours ► sent on to it
                      ── such a one's, which nothing leads now ───► unavailable: try again
                      ── served by none of these ─────────────────► here, which says so

A request is sent on once: what comes from another replica is answered here or not at all.

docs/decisions/0031-explanations-through-the-api-server.md
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from berth.aggregated_api.errors import NoSuchPodError, UnavailableError
from berth.aggregated_api.leaders import Leader
from berth.client.errors import ClientError, NotFoundError
from berth.client.resources import PODS, Resource

Explanation = Any
"""A document, or what is encoded as one."""


class Asked(NamedTuple):
    """A pod that is to be explained, and how, as the request's query says."""

    namespace: str
    name: str
    query: Mapping[str, str] = {}


class Reader(Protocol):
    """The part of the API client that is used here."""

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """One object. Raises: ClientError."""


class Here(Protocol):
    """This scheduler."""

    def serves(self, profile: str) -> bool:
        """Whether one of its profiles has that name."""

    def leads(self, profile: str) -> bool:
        """Whether this process schedules the profile's pods."""

    async def explain(self, asked: Asked) -> Explanation:
        """What is known of a pod. Raises: LookupError."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str = "default-scheduler"


class _Pod(msgspec.Struct):
    spec: _Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Finds who answers, and has them answer."""

    pods: Reader
    here: Here
    leaders: Callable[[], Awaitable[list[Leader]]]
    send_on: Callable[[Leader, Asked], Awaitable[Explanation]]

    async def explain(self, asked: Asked, *, was_sent_on: bool) -> Explanation:
        """What the pod's scheduler knows of it.

        Raises: NoSuchPodError; UnavailableError where the scheduler that knows can't be asked.
        """
        profile = await self._profile(asked)
        if self.here.serves(profile) and self.here.leads(profile):
            return await self._here(asked, profile)
        found = await self._leaders(profile)
        if not found and not self.here.serves(profile):
            return await self._here(asked, profile)
        leader = next((one for one in found if one.current), None)
        if leader is None:
            raise UnavailableError(f'no scheduler leads that schedules pods of "{profile}": try again soon')
        if was_sent_on:
            raise UnavailableError(
                f'this scheduler stands by: lease {leader.lease}, pods of "{profile}": '
                f"{leader.published.identity} leads"
            )
        return await self.send_on(leader, asked)

    async def _profile(self, asked: Asked) -> str:
        try:
            body = await self.pods.get(PODS, asked.namespace, asked.name)
            return msgspec.json.decode(body, type=_Pod).spec.scheduler_name
        except NotFoundError as error:
            raise NoSuchPodError(f'pod "{asked.name}" not found in namespace "{asked.namespace}"') from error
        except (ClientError, msgspec.MsgspecError) as error:
            raise UnavailableError(f"the pod can't be read: {error}") from error

    async def _leaders(self, profile: str) -> list[Leader]:
        try:
            found = await self.leaders()
        except (ClientError, msgspec.MsgspecError) as error:
            raise UnavailableError(f"this scheduler stands by, and can't read who leads: {error}") from error
        return [leader for leader in found if profile in leader.published.profiles]

    async def _here(self, asked: Asked, profile: str) -> Explanation:
        try:
            return await self.here.explain(asked)
        except LookupError as error:
            if self.here.serves(profile):
                raise UnavailableError(f"the scheduler has not heard of the pod yet: {error}") from error
            raise NoSuchPodError(
                f'pod "{asked.name}" has the schedulerName "{profile}", which no scheduler of Berth serves'
            ) from error
