"""Who may see which path of the secure port: the question, its answer, and answers that need no asking.

gate.py asks it of every request, delegated_access.py has the API server answer it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from berth.aggregated_api.request_info import ResourceAttributes
from berth.aggregated_api.users import User

ALWAYS_ALLOWED = ("/healthz", "/readyz", "/livez")
ANONYMOUS = "system:anonymous"


class Access(NamedTuple):
    """The user behind a request, and whether they may see the path."""

    user: str
    allowed: bool


class AccessReview(NamedTuple):
    """What a review is about: the bearer token, empty if none came; the verb in lower case; the path.

    `user` is who a verified certificate says it is, and goes before the token; `resource` is the object that
    the path names, and goes before the path.
    """

    token: str
    verb: str
    path: str
    user: User | None = None
    resource: ResourceAttributes | None = None
    audience: str = ""
    """Whom the token has to be for; empty for the API server."""


Review = Callable[[AccessReview], Awaitable[Access | None]]
"""Answers None where the token is of no user. Raises: TooManyReviewsError."""


Clients = Callable[[bytes | None, Any], User | None]
"""The user behind a verified client certificate in DER and the headers that came with it."""


def by_no_certificate(certificate: bytes | None, headers: Any) -> None:
    """Name no user: certificates are not looked at."""
    del certificate, headers


async def forbid_all(asked: AccessReview) -> Access:
    """The review of a process without an API server to ask: forbid."""
    del asked
    return Access(ANONYMOUS, allowed=False)


async def allow_all(asked: AccessReview) -> Access:
    """The review for development on loopback: allow."""
    del asked
    return Access(ANONYMOUS, allowed=True)
