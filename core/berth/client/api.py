"""The verbs of the API on raw bytes, with errors from errors.py and retries where they are safe.

For the rare calls: what is done for every pod has a function of its own in pods.
"""

import asyncio
from collections.abc import Callable
from random import Random

from berth.client.connection import Response
from berth.client.errors import ClientError, HeldBackError, NotSentError, RetryError, ThrottledError
from berth.client.resources import Resource
from berth.client.timing import Sleep
from berth.client.transport import JSON, SAFE_METHODS, Query, Transport
from berth.client.wire import error_from
from berth.client.write_guard import WriteGuard

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

BAD = 400
TRIES = 5


class Retry:
    """How often to try, how long to pause, and which errors are worth it.

    Units: initial_seconds.
    """

    def __init__(
        self,
        tries: int,
        initial_seconds: float,
        factor: float,
        jitter: float,
        worth: Callable[[ClientError], bool],
    ) -> None:
        self.tries = tries
        self.initial_seconds = initial_seconds
        self.factor = factor
        self.jitter = jitter
        self.worth = worth

    def pause(self, failures: int, rng: Random) -> float:
        """Seconds to wait after this many failures."""
        growing = self.initial_seconds * self.factor ** (failures - 1)
        return growing * (1.0 + self.jitter * rng.random())


def never_landed(error: ClientError) -> bool:
    """Whether the request certainly had no effect, so that even a create may be repeated."""
    return isinstance(error, NotSentError | ThrottledError) and not isinstance(error, HeldBackError)


def may_pass(error: ClientError) -> bool:
    """Whether a read may succeed when tried again."""
    return isinstance(error, RetryError)


READ = Retry(TRIES, 0.05, 3.0, 0.5, may_pass)
WRITE = Retry(TRIES, 0.05, 3.0, 0.5, never_landed)


class Api:
    """The API server's generic verbs; every body and every answer is bytes.

    All methods raise ClientError's subclasses: see errors.py for what to do about each.
    """

    def __init__(
        self, transport: Transport, *, sleep: Sleep = asyncio.sleep, rng: Random | None = None
    ) -> None:
        self.transport = transport
        self._sleep = sleep
        self._rng = rng or Random()

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout_seconds: float | None = None,
        guard: WriteGuard | None = None,
        retry: Retry | None = None,
    ) -> bytes:
        """Send a request and return the body of a good answer.

        Without `retry`, reads are repeated on anything that may pass, writes only when they
        certainly did not land. All tries together have `timeout_seconds`, or the transport's own time.
        """
        loop = asyncio.get_running_loop()
        seconds = self.transport.request_seconds if timeout_seconds is None else timeout_seconds
        deadline = loop.time() + seconds
        retry = retry or (READ if method in SAFE_METHODS else WRITE)
        failures = 0
        while True:
            try:
                response = await self.transport.request(
                    method,
                    path,
                    body,
                    query=query,
                    content_type=content_type,
                    timeout_seconds=deadline - loop.time(),
                    guard=guard,
                )
                return _good(response)
            except ClientError as error:
                failures += 1
                asked = error.retry_after_seconds if isinstance(error, ThrottledError) else 0.0
                pause = max(retry.pause(failures, self._rng), asked)
                if failures == retry.tries or not retry.worth(error) or loop.time() + pause >= deadline:
                    raise
            await self._sleep(pause)

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """One object."""
        return await self.call("GET", resource.path(namespace, name))

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create an object; returns it as stored."""
        return await self.call("POST", resource.collection(namespace), body)

    async def update(
        self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = ""
    ) -> bytes:
        """Replace an object; with its resourceVersion in the body, only if nobody wrote since."""
        return await self.call("PUT", resource.path(namespace, name, subresource), body)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> bytes:
        """Change parts of an object."""
        path = resource.path(namespace, name, subresource)
        return await self.call("PATCH", path, body, content_type=content_type)

    async def apply(
        self, resource: Resource, namespace: str, name: str, body: bytes, *, owner: str, force: bool = False
    ) -> bytes:
        """Server-side apply in the name of a field owner; `force` takes fields from other owners."""
        query: Query = {"fieldManager": owner, "force": "true" if force else "false"}
        path = resource.path(namespace, name)
        return await self.call("PATCH", path, body, query=query, content_type=APPLY_PATCH)

    async def delete(self, resource: Resource, namespace: str, name: str, body: bytes = b"") -> bytes:
        """Delete an object; the body may hold DeleteOptions."""
        return await self.call("DELETE", resource.path(namespace, name), body)


def _good(response: Response) -> bytes:
    if response.status >= BAD:
        raise error_from(response)
    return response.body
