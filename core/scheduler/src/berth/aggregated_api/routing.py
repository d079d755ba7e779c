"""Who answers: this process, the replica that leads, or another scheduler.

    its profile ── is ours, and we lead its shard ──────────► here
                ── is ours, another replica leads ──────────► sent on to it
                ── another scheduler's, with a lease beside ours ► sent on to it
                ── such a one's, which nothing leads now ───► unavailable: try again
                ── served by none of these ─────────────────► here, which says so

A pod's profile is its schedulerName, a group's that of its pods; profiles and queues are named by it. A group
without pods is answered by the first scheduler that knows it. Of a node each leader knows which of its own
pods wait for one: all of them are asked, and their answers are put together.

A request is sent on once: what comes from another replica is answered here or not at all.

docs/decisions/0031-explanations-through-the-api-server.md
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import msgspec

from berth.aggregated_api.errors import NoSuchObjectError, UnavailableError
from berth.aggregated_api.kinds import DEFAULT_PROFILE, NODE, POD, POD_GROUP, PROFILE, QUEUE, ExplainKind
from berth.aggregated_api.leaders import Leader
from berth.client.errors import ClientError, NotFoundError
from berth.client.resources import PODS, Resource

MAX_ASKED = 20
"""This many other leaders are asked for one answer."""

MAX_NAMES = 100
"""This many profiles are named where one is asked about that is not there."""

Explanation = Any
"""A document, or what is encoded as one."""


class ExplainRequest(NamedTuple):
    """What is to be explained, and how, as the request's query says; of what has no namespace it is ""."""

    kind: ExplainKind
    namespace: str
    name: str
    query: Mapping[str, str] = {}
    user: str = ""
    """For whom, "" where that is not known."""


class ObjectReader(Protocol):
    """The part of the API client that is used here."""

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """One object. Raises: ClientError."""


class Here(Protocol):
    """This scheduler."""

    @property
    def identity(self) -> str:
        """By which leases name this process."""

    def serves(self, profile: str) -> bool:
        """Whether one of its profiles has that name."""

    def profiles(self) -> tuple[str, ...]:
        """Names of its profiles."""

    def leads(self, profile: str) -> bool:
        """Whether this process schedules the profile's pods."""

    def leads_any(self) -> bool:
        """Whether this process schedules anything."""

    async def profile_of_group(self, namespace: str, name: str) -> str:
        """The profile of the group's pods; "" where no pod of it is known."""

    async def explain(self, asked: ExplainRequest) -> Explanation:
        """What is known here. Raises: LookupError, TooManyQuestionsError."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: str = DEFAULT_PROFILE


class _Pod(msgspec.Struct):
    spec: _Spec


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """Finds who answers, and has them answer."""

    pods: ObjectReader
    here: Here
    own_leases: Container[str]
    """Names of the leases for which this process campaigns: no other one speaks for its profiles."""
    leaders: Callable[[], Awaitable[list[Leader]]]
    send_on: Callable[[Leader, ExplainRequest], Awaitable[Explanation]]
    merged: Callable[[Sequence[Explanation], Sequence[str]], Explanation]
    """Answers about one node, and what kept others from answering, in one document."""

    async def explain(self, asked: ExplainRequest, *, was_sent_on: bool) -> Explanation:
        """What the schedulers that it concerns know of the object.

        Raises: NoSuchObjectError; TooManyQuestionsError; UnavailableError where the scheduler that knows
        can't be asked.
        """
        if asked.kind is NODE:
            return await self._of_all(asked, was_sent_on=was_sent_on)
        profile = await self._profile(asked)
        if asked.kind is POD_GROUP and not profile:
            return await self._first_that_knows(asked, was_sent_on=was_sent_on)
        if self.here.serves(profile) and self.here.leads(profile):
            return await self._here(asked, profile)
        known = await self._leaders()
        found = self._of(profile, known)
        if not found and not self.here.serves(profile):
            if asked.kind in (PROFILE, QUEUE):
                raise self._no_profile(profile, known)
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

    def _no_profile(self, profile: str, found: Sequence[Leader]) -> NoSuchObjectError:
        published = (name for one in found for name in one.published.profiles)
        names = list(dict.fromkeys((*self.here.profiles(), *published)))[:MAX_NAMES]
        return NoSuchObjectError(f"no profile {profile}; there are: {', '.join(names)}", names)

    def _of(self, profile: str, found: Sequence[Leader]) -> list[Leader]:
        """The profile's leaders by one lease: one of ours for a profile of ours, else the oldest that has it.

        A writer of leases may write one for any profile, but none that was there before.
        """
        saying = [one for one in found if profile in one.published.profiles]
        if self.here.serves(profile):
            return [one for one in saying if one.lease in self.own_leases]
        return saying[:1]

    async def _profile(self, asked: ExplainRequest) -> str:
        if asked.kind is POD_GROUP:
            return await self.here.profile_of_group(asked.namespace, asked.name)
        if asked.kind is not POD:
            return asked.name
        try:
            body = await self.pods.get(PODS, asked.namespace, asked.name)
            return msgspec.json.decode(body, type=_Pod).spec.scheduler_name
        except NotFoundError as error:
            message = f'pod "{asked.name}" not found in namespace "{asked.namespace}"'
            raise NoSuchObjectError(message) from error
        except (ClientError, msgspec.MsgspecError) as error:
            raise UnavailableError(f"the pod can't be read: {error}") from error

    async def _leaders(self) -> list[Leader]:
        try:
            return await self.leaders()
        except (ClientError, msgspec.MsgspecError) as error:
            raise UnavailableError(f"who leads can't be read from the leases: {error}") from error

    async def _others(self) -> list[Leader]:
        """The leaders besides this process, each once however many leases it holds."""
        found = {one.published.identity: one for one in await self._leaders() if one.current}
        found.pop(self.here.identity, None)
        return list(found.values())[:MAX_ASKED]

    async def _here(self, asked: ExplainRequest, profile: str) -> Explanation:
        try:
            return await self.here.explain(asked)
        except LookupError as error:
            if asked.kind is not POD:
                raise NoSuchObjectError(str(error)) from error
            if self.here.serves(profile):
                raise UnavailableError(f"the scheduler has not heard of the pod yet: {error}") from error
            raise NoSuchObjectError(
                f'pod "{asked.name}" has the schedulerName "{profile}", which no scheduler of Berth serves'
            ) from error

    async def _first_that_knows(self, asked: ExplainRequest, *, was_sent_on: bool) -> Explanation:
        """The answer of this scheduler or, where it knows nothing of the object, of another one."""
        try:
            return await self.here.explain(asked)
        except LookupError as error:
            for leader in [] if was_sent_on else await self._others():
                with suppress(NoSuchObjectError):
                    return await self.send_on(leader, asked)
            raise NoSuchObjectError(str(error)) from error

    async def _of_all(self, asked: ExplainRequest, *, was_sent_on: bool) -> Explanation:
        """The answers of all leaders, put together; what kept one from answering is part of it."""
        asking: list[Awaitable[Explanation]] = []
        if self.here.leads_any():
            asking.append(self._here(asked, ""))
        if not was_sent_on:
            asking.extend(self.send_on(leader, asked) for leader in await self._others())
        if not asking:
            raise UnavailableError("this scheduler stands by, and no scheduler leads: try again soon")
        came = await asyncio.gather(*map(_outcome, asking))
        answers = [one for one in came if not isinstance(one, (NoSuchObjectError, UnavailableError))]
        unavailable = [one for one in came if isinstance(one, UnavailableError)]
        if not answers:
            raise next(iter(unavailable), came[0])
        return self.merged(answers, [str(one) for one in unavailable])


async def _outcome(asking: Awaitable[Explanation]) -> Explanation | NoSuchObjectError | UnavailableError:
    """The answer, or what kept it from coming."""
    try:
        return await asking
    except (NoSuchObjectError, UnavailableError) as error:
        return error
