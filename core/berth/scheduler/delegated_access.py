"""Who may see the process's endpoints, asked of the API server.

    bearer token -> TokenReview -> user and groups -> SubjectAccessReview on the path -> yes or no

Answers are kept for a few seconds. When the API server can't be asked, the answer is no.

Source: spec/config.md 15.1, 14.2 (authentication and authorization flags).
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from berth.client.errors import ClientError
from berth.client.resources import Resource
from berth.scheduler.serving import ANONYMOUS, Access, Asked

log = logging.getLogger(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False)

KEPT_SECONDS = 10.0
MAX_KEPT = 1000
UNAUTHENTICATED = "system:unauthenticated"
SUPERUSERS = "system:masters"

T = TypeVar("T")


class Creator(Protocol):
    """The part of the API client that is used here."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create an object; returns it as stored."""


class User(msgspec.Struct, frozen=True):
    """Somebody, as a TokenReview describes them."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


NOBODY = User(ANONYMOUS, groups=(UNAUTHENTICATED,))


@dataclass(slots=True)
class _Kept:
    """Answers that are still good."""

    monotonic: Callable[[], float]
    answers: dict[Hashable, tuple[float, Any]] = field(default_factory=dict)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The kept answer, or a new one."""
        until, answer = self.answers.get(key, (0.0, None))
        if until <= self.monotonic():
            answer = await ask()
            if len(self.answers) >= MAX_KEPT:
                self.answers.clear()
            self.answers[key] = self.monotonic() + KEPT_SECONDS, answer
        found: T = answer
        return found


class DelegatedAccess:
    """A `Review` that asks the API server."""

    def __init__(self, api: Creator, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._users, self._verdicts = _Kept(monotonic), _Kept(monotonic)

    async def __call__(self, asked: Asked) -> Access | None:
        """Whether the one behind the token may; None where the token is nobody's."""
        try:
            user = await self._user(asked.token)
            if user is None:
                return None
            return Access(user.username, await self._allowed(user, asked))
        except (ClientError, msgspec.MsgspecError) as error:
            log.warning("access not reviewed path=%s error=%s", asked.path, error)
            return Access(ANONYMOUS, allowed=False)

    async def _user(self, token: str) -> User | None:
        if not token:
            return NOBODY
        return await self._users.get(token, lambda: self._review_token(token))

    async def _allowed(self, user: User, asked: Asked) -> bool:
        if SUPERUSERS in user.groups:
            return True
        key = msgspec.json.encode(user), asked.verb, asked.path
        return await self._verdicts.get(key, lambda: self._review_access(user, asked))

    async def _review_token(self, token: str) -> User | None:
        answer = await self._create(TOKEN_REVIEWS, "TokenReview", {"token": token})
        status = msgspec.json.decode(answer, type=_TokenReview).status
        return status.user if status.authenticated else None

    async def _review_access(self, user: User, asked: Asked) -> bool:
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": asked.path, "verb": asked.verb},
        }
        answer = await self._create(ACCESS_REVIEWS, "SubjectAccessReview", spec)
        return msgspec.json.decode(answer, type=_AccessReview).status.allowed

    async def _create(self, resource: Resource, kind: str, spec: dict[str, Any]) -> bytes:
        body = {"apiVersion": resource.api_version, "kind": kind, "spec": spec}
        return await self._api.create(resource, "", msgspec.json.encode(body))
