"""Has the leader answer: the same request, sent to its secure port as this scheduler's own.

The user was authorized here. The leader is asked with a token that only replicas take (replicas.py), once it
is proven that a scheduler's pod has the address that the lease names, and over TLS with the certificate that
it names.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from berth.aggregated_api.errors import NoSuchObjectError, TooManyQuestionsError, UnavailableError
from berth.aggregated_api.leaders import Leader
from berth.aggregated_api.replicas import ASKED_BY, SENT_ON_BY
from berth.aggregated_api.routing import ExplainRequest, Explanation
from berth.client.errors import ClientError

ANSWER_SECONDS = 25.0
"""Less than what a client and the API server in front wait: the error that comes of it says who is late."""
_OK = 200
_NOT_FOUND = 404
_TOO_MANY = 429


class SendingOn:
    """Asks leaders; `authorization` gives the header by which one knows this process, "" for none.

    It raises where the leader's address is not proven: ClientError, OSError.
    """

    def __init__(
        self,
        identity: str,
        authorization: Callable[[Leader], Awaitable[str]],
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._identity = identity
        self._answer_seconds = answer_seconds
        self._authorization = authorization

    async def __call__(self, leader: Leader, asked: ExplainRequest) -> Explanation:
        """The leader's answer. Raises: NoSuchObjectError, TooManyQuestionsError, UnavailableError."""
        path = asked.kind.path(asked.namespace, asked.name)
        return _explanation(*await self.get(leader, path, asked.query, asked.user), _named(leader))

    async def get(
        self, leader: Leader, path: str, query: Mapping[str, str] = {}, user: str = ""
    ) -> tuple[int, bytes]:
        """Status and body of one of the leader's pages. Raises: UnavailableError."""
        published, who = leader.published, _named(leader)
        if not published.address or not published.certificate:
            raise UnavailableError(f"{who}, and serves no secure port")
        try:
            # Quoted: a user's name may hold anything.
            headers = {SENT_ON_BY: self._identity, ASKED_BY: quote(user)}
            if authorization := await self._authorization(leader):
                headers["Authorization"] = authorization
            url = f"https://{published.address}{path}"
            trusted = aiohttp.Fingerprint(bytes.fromhex(published.certificate))
            async with asyncio.timeout(self._answer_seconds):
                return await _get(url, query, headers, trusted)
        except ClientError as error:
            raise UnavailableError(
                f"{who}, and this scheduler has no token to ask it with: {error}"
            ) from error
        except Exception as error:
            problem = str(error) or type(error).__name__
            raise UnavailableError(f"{who}, and does not answer: {problem}") from error


def _named(leader: Leader) -> str:
    return f"{leader.published.identity} leads (lease {leader.lease})"


async def _get(
    url: str, query: Mapping[str, str], headers: dict[str, str], trusted: aiohttp.Fingerprint
) -> tuple[int, bytes]:
    # A connection for each request: people ask, and the leader may be another one the next time.
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, params=query, headers=headers, ssl=trusted, allow_redirects=False) as response,
    ):
        return response.status, await response.read()


def _explanation(status: int, body: bytes, who: str) -> Explanation:
    try:
        document = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UnavailableError(f"{who}, and answers {status} without a document") from error
    if status == _OK:
        return document
    message = str(document.get("message", ""))
    if status == _NOT_FOUND:
        raise NoSuchObjectError(message)
    if status == _TOO_MANY:
        retry_seconds = (document.get("details") or {}).get("retryAfterSeconds")
        raise TooManyQuestionsError(message, retry_seconds if isinstance(retry_seconds, int) else 1)
    raise UnavailableError(f"{who}, and answers {status}: {message}")
