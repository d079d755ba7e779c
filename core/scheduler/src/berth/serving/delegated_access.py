"""Who may see the process's endpoints, asked of the API server.

    bearer token -> TokenReview -> user and groups -> SubjectAccessReview on path or object -> yes or no
    client certificate (berth.aggregated_api.front_proxy) ─┘

Answers are kept for a few seconds, and each question is put once, however many wait for its answer. When the
API server can't be asked, the answer is no. Without a token it is no, too: anonymous
clients see the paths that are always allowed, and no others.

Any client can make tokens up. Questions that were answered yes within the last hour are always put; all
others share a rate: a flood of them becomes neither a flood of reviews nor a denial for those who are known.
Users whom a certificate vouches for are no strangers, but many: they share a rate of their own.

Source: apiserver pkg/server/options/authentication.go, authorization.go (Kubernetes v1.36).
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from berth.aggregated_api.users import User
from berth.client.errors import ClientError
from berth.client.resources import Resource
from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.pacing import TokenBucket
from berth.serving.access import ANONYMOUS, Access, AccessReview
from berth.serving.errors import TooManyReviewsError

log = logging.getLogger(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)

KEPT_SECONDS = 10.0
KNOWN_SECONDS = 3600.0
MAX_KEPT = 1000
STRANGERS_PER_SECOND = 5.0
STRANGERS_AT_ONCE = 20
USERS_PER_SECOND = 50.0
USERS_AT_ONCE = 100
SUPERUSERS = "system:masters"

T = TypeVar("T")


class Creator(Protocol):
    """The part of the API client that is used here."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create an object; returns it as stored."""


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    audiences: tuple[str, ...] = ()
    user: User = User()


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


class ReviewCache(msgspec.Struct, Generic[T]):
    """Answers by question; bounded, the oldest of strangers leave before any of those known to be good."""

    monotonic: Callable[[], float]
    strangers: TokenBucket
    good: Callable[[T], bool]
    _known: dict[bytes, tuple[float, T]] = msgspec.field(default_factory=dict)
    _refused: dict[bytes, tuple[float, T]] = msgspec.field(default_factory=dict)
    _open: dict[bytes, asyncio.Task[T]] = msgspec.field(default_factory=dict)

    async def get(self, question: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The kept answer, or a new one. Raises: TooManyReviewsError, and what `ask` raises."""
        # Tokens are long, and not to be kept.
        key, now = hashlib.sha256(question.encode()).digest(), self.monotonic()
        kept = self._known.get(key) or self._refused.get(key)
        if kept is not None and now < kept[0] + KEPT_SECONDS:
            return kept[1]
        if (task := self._open.get(key)) is None:
            is_stranger = key not in self._known or now >= self._known[key][0] + KNOWN_SECONDS
            if is_stranger and not self.strangers.take():
                raise TooManyReviewsError
            task = self._open[key] = asyncio.create_task(ask())
            task.add_done_callback(lambda done: self._keep(key, done))
        # Others wait for the same answer: it comes even if this client has gone.
        return await asyncio.shield(task)

    def _keep(self, key: bytes, done: asyncio.Task[T]) -> None:
        del self._open[key]
        if done.cancelled() or done.exception() is not None:
            return
        answer = done.result()
        good = self.good(answer)
        into, other = (self._known, self._refused) if good else (self._refused, self._known)
        other.pop(key, None)
        into.pop(key, None)
        into[key] = self.monotonic(), answer
        if len(into) > MAX_KEPT:
            del into[next(iter(into))]


class DelegatedAccess:
    """A `Review` that asks the API server."""

    def __init__(self, api: Creator, *, monotonic: Callable[[], float] = SYSTEM_CLOCK.monotonic) -> None:
        self._api = api
        strangers = TokenBucket(STRANGERS_PER_SECOND, STRANGERS_AT_ONCE, monotonic)
        self._users = ReviewCache[User | None](monotonic, strangers, lambda user: user is not None)
        self._verdicts = ReviewCache[bool](monotonic, strangers, bool)
        users = TokenBucket(USERS_PER_SECOND, USERS_AT_ONCE, monotonic)
        self._verdicts_on_certified = ReviewCache[bool](monotonic, users, bool)

    async def __call__(self, asked: AccessReview) -> Access | None:
        """Whether the user behind certificate or token may; None where the token is no user's.

        Raises: TooManyReviewsError.
        """
        if asked.user is None and not asked.token:
            return Access(ANONYMOUS, allowed=False)
        try:
            user = asked.user or await self._user(asked)
            if user is None:
                return None
            return Access(user.username, await self._allowed(user, asked))
        except (ClientError, msgspec.MsgspecError) as error:
            log.warning("access not reviewed path=%s err=%s", asked.path, error)
            return Access(ANONYMOUS, allowed=False)

    async def _allowed(self, user: User, asked: AccessReview) -> bool:
        if SUPERUSERS in user.groups:
            return True
        question = msgspec.json.encode((user, _attributes(asked))).decode()
        verdicts = self._verdicts if asked.user is None else self._verdicts_on_certified
        return await verdicts.get(question, lambda: self._review_access(user, asked))

    async def _user(self, asked: AccessReview) -> User | None:
        question = f"{asked.audience} {asked.token}"
        return await self._users.get(question, lambda: self._review_token(asked.token, asked.audience))

    async def _review_token(self, token: str, audience: str) -> User | None:
        spec: dict[str, Any] = {"token": token} | ({"audiences": [audience]} if audience else {})
        answer = await self._create(TOKEN_REVIEWS, "TokenReview", spec)
        status = msgspec.json.decode(answer, type=_TokenReview).status
        # An authenticator that knows no audiences names none: it vouches for the API server's own tokens.
        meant = not audience or audience in status.audiences
        return status.user if status.authenticated and meant else None

    async def _review_access(self, user: User, asked: AccessReview) -> bool:
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            **_attributes(asked),
        }
        answer = await self._create(ACCESS_REVIEWS, "SubjectAccessReview", spec)
        return msgspec.json.decode(answer, type=_AccessReview).status.allowed

    async def _create(self, resource: Resource, kind: str, spec: dict[str, Any]) -> bytes:
        body = {"apiVersion": resource.api_version, "kind": kind, "spec": spec}
        return await self._api.create(resource, "", msgspec.json.encode(body))


def _attributes(asked: AccessReview) -> dict[str, Any]:
    """What is asked for, as a SubjectAccessReview has it."""
    if asked.resource is None:
        return {"nonResourceAttributes": {"path": asked.path, "verb": asked.verb}}
    named = {key: value for key, value in asked.resource._asdict().items() if value}
    return {"resourceAttributes": named}
