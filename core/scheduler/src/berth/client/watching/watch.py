"""Lists page by page and watches line by line: bytes in, envelopes out.

Called by: reflector, which knows what the objects are and what became of them.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus

import msgspec

from berth.client.connections.connection import BodyStream, Response
from berth.client.errors import DeadlineError, ServerError
from berth.client.resources import Resource
from berth.client.transport import Query, Transport
from berth.client.watching.whole_list import ListPieces
from berth.client.wire import Page, decode_page, error_from

BAD = 400
PAGE_SIZE = 500
# A page of a list may take this many times as long as another request.
LIST_TIMES = 2
SLOWEST_BYTES_A_SECOND = 65_536
# A watch is ended by the server after its timeout; the connection is given up this much later.
GRACE_SECONDS = 30.0
# Bookmarks come about every minute; of a stream that is silent for this long nothing more is expected.
SILENT_SECONDS = 180.0


class WatchSource(msgspec.Struct, frozen=True):
    """Which objects are wanted: a kind, perhaps of one namespace, perhaps selected."""

    resource: Resource
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""

    def query(self) -> Query:
        """The selectors as query parameters."""
        query: Query = {}
        if self.field_selector:
            query["fieldSelector"] = self.field_selector
        if self.label_selector:
            query["labelSelector"] = self.label_selector
        return query


async def pages(
    transport: Transport, source: WatchSource, *, page_size: int = PAGE_SIZE, resource_version: str = ""
) -> AsyncGenerator[Page, None]:
    """The pages of a list, each asked for while the one before is worked on.

    Page size 0 asks for everything at once, and gives it in pieces as it arrives, of which the last one has
    the metadata. When the continue token expires under a long list, the rest is no longer to be had:
    ExpiredError, list again.
    Raises: RetryError, RelistError, ObjectError; msgspec.DecodeError when the answer is not a list.
    """
    query = source.query()
    if resource_version:
        query["resourceVersion"] = resource_version
    if page_size:
        found = _paged(transport, source, query | {"limit": page_size})
    else:
        found = _pieces(transport, source, query)
    async with aclosing(found) as listed:
        async for page in listed:
            yield page


MAX_PAGES = 100_000
MAX_EMPTY_PAGES = 100
"""This many pages in a row may have nothing: a token that is another one each time is no progress."""


async def _paged(transport: Transport, source: WatchSource, query: Query) -> AsyncGenerator[Page, None]:
    upcoming = asyncio.create_task(_page(transport, source, dict(query)))
    pages = empty = 0
    try:
        while True:
            page = await upcoming
            token = page.metadata.continue_
            pages, empty = pages + 1, 0 if page.items else empty + 1
            if token:
                if pages >= MAX_PAGES or empty >= MAX_EMPTY_PAGES:
                    raise ServerError(HTTPStatus.OK, "", f"a list goes on after {pages} pages, {empty} empty")
                _check_progress(token, query)
                query.pop("resourceVersion", None)
                query["continue"] = token
                upcoming = asyncio.create_task(_page(transport, source, dict(query)))
            yield page
            if not token:
                return
    finally:
        upcoming.cancel()
        await asyncio.wait((upcoming,))
        if not upcoming.cancelled():
            upcoming.exception()  # Seen by the loop above, or of no interest any more.


def _check_progress(token: str, query: Query) -> None:
    if token == query.get("continue"):
        raise ServerError(HTTPStatus.OK, "", "a page of a list names itself as the one that follows")


async def _pieces(transport: Transport, source: WatchSource, query: Query) -> AsyncGenerator[Page, None]:
    path = source.resource.collection(source.namespace)
    seconds = LIST_TIMES * transport.request_seconds
    stream = await transport.stream(path, query=query, timeout_seconds=seconds)
    try:
        if stream.status >= BAD:
            raise error_from(await _whole(stream))
        pieces, pace = ListPieces(), _Pace(seconds)
        while data := await pace.read(stream):
            if items := pieces.take(data):
                yield Page(items=items)
        last = pieces.last()
    finally:
        stream.close()
    yield last
    if token := last.metadata.continue_:  # The server has a limit of its own.
        async with aclosing(_paged(transport, source, query | {"continue": token})) as others:
            async for page in others:
                yield page


class _Pace:
    """How long a list of unknown length may still take: what comes at SLOWEST_BYTES_A_SECOND comes in time.

    Only waiting counts, not what is done with the list meanwhile.
    """

    def __init__(self, seconds: float) -> None:
        self._most = self._left = seconds

    async def read(self, stream: BodyStream) -> bytes:
        """The next piece, nothing at the end. Raises: DeadlineError."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._left):
                data = await stream.read()
        except TimeoutError:
            raise DeadlineError("the rest of a list did not come in time") from None
        left = self._left - (loop.time() - began) + len(data) / SLOWEST_BYTES_A_SECOND
        self._left = min(left, self._most)
        return data


async def _page(transport: Transport, source: WatchSource, query: Query) -> Page:
    path = source.resource.collection(source.namespace)
    seconds = LIST_TIMES * transport.request_seconds
    response = await transport.request("GET", path, query=query, timeout_seconds=seconds)
    if response.status >= BAD:
        raise error_from(response)
    return decode_page(response.body)


async def current_version(transport: Transport, source: WatchSource) -> str:
    """A version of the kind that covers every write which was done before the call.

    A list without a resource version is consistent: the API server asks etcd how far the history is.
    Selectors are left out, because the one object that comes back is of no interest.
    Raises: RetryError, ObjectError; msgspec.DecodeError when the answer is not a list.
    """
    page = await _page(transport, WatchSource(source.resource, source.namespace), {"limit": 1})
    return page.metadata.resource_version


async def watch_lines(
    transport: Transport,
    source: WatchSource,
    resource_version: str,
    timeout_seconds: int,
    on_open: Callable[[], None] = lambda: None,
) -> AsyncGenerator[list[bytes], None]:
    """The lines of a watch, in the batches in which they arrive, until the server ends it.

    `on_open` is called once the server has taken the watch on.
    Units: timeout_seconds, how long the server is asked to keep it up.
    Raises: RetryError (cut), RelistError, ObjectError.
    """
    query = source.query() | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": timeout_seconds,
    }
    path = source.resource.collection(source.namespace)
    stream = await transport.stream(path, query=query)
    watchdog = _Watchdog(stream, timeout_seconds + GRACE_SECONDS)
    try:
        if stream.status >= BAD:
            raise error_from(await _whole(stream))
        on_open()
        async with aclosing(split_lines(stream)) as batches:
            async for lines in batches:
                watchdog.heard()
                yield lines
    finally:
        watchdog.cancel()
        stream.close()


class _Watchdog:
    """Ends a stream that outlives its time, and one of which nothing is heard any more.

    The second end is a good one: a server may have nothing to say. But it sends bookmarks about every
    minute, and something in between may have lost the connection without a word: watching anew costs little.
    """

    def __init__(self, stream: BodyStream, longest_seconds: float) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        outlived = DeadlineError("the server kept a stream up beyond its time")
        self._longest = self._loop.call_later(longest_seconds, stream.finish, outlived)
        self._heard_at = self._loop.time()
        self._silence = self._loop.call_later(SILENT_SECONDS, self._listen)

    def heard(self) -> None:
        """Note that the server lives."""
        self._heard_at = self._loop.time()

    def cancel(self) -> None:
        """Watch no more."""
        self._longest.cancel()
        self._silence.cancel()

    def _listen(self) -> None:
        left = self._heard_at + SILENT_SECONDS - self._loop.time()
        if left <= 0:
            self._stream.finish(None)
        else:
            self._silence = self._loop.call_later(left, self._listen)


async def split_lines(stream: BodyStream) -> AsyncGenerator[list[bytes], None]:
    """Whole lines, batch by batch, without their ends; splitting bytes keeps UTF-8 whole."""
    partial: list[bytes] = []
    while data := await stream.read():
        lines = data.split(b"\n")
        if len(lines) > 1:
            partial.append(lines[0])
            lines[0] = b"".join(partial)
            partial.clear()
            tail = lines.pop()
            yield [line for line in lines if line.strip()]
        else:
            tail = data
        if tail:
            partial.append(tail)
    last = b"".join(partial)
    if last.strip():
        yield [last]


async def _whole(stream: BodyStream) -> Response:
    pieces = []
    while data := await stream.read():
        pieces.append(data)
    return Response(stream.status, b"".join(pieces), stream.retry_after_seconds)
