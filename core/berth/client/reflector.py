"""A local mirror of one kind of object, told as add, update and delete.

    listing ──► synced, watching ──► (cut) watching from the last version seen
       ▲                │
       └── 410, ERROR event, refused version: the new list is told as its difference to the old

The mirror never restarts: whatever happens on the wire, the handler sees one consistent story.

Called by: the scheduler process, one reflector a kind; handlers are the event handlers of floor 4.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from berth.client.errors import (
    ClientError,
    DeadlineError,
    ExpiredError,
    ObjectError,
    RejectedError,
    RelistError,
    ThrottledError,
    VersionTooLargeError,
)
from berth.client.set_aside import SetAside
from berth.client.timing import Backoff, Clock, Sleep, SystemClock
from berth.client.transport import Transport
from berth.client.watch import PAGE_SIZE, Source, pages, watch_lines
from berth.client.wire import Key, Meta, decode_head, decode_watch_event, error_from_event
from berth.event_handlers.errors import FollowUpError

log = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

# How long the loop may be kept busy before others (the lease renewal) get their turn.
TURN_SECONDS = 0.005
WATCH_SECONDS = (300, 600)
HEALTHY_SECONDS = 1.0
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Handler(Protocol[T_contra]):
    """Is told, synchronously, what happens to the objects of one kind.

    A method that raises must have changed nothing: the mirror goes on as if it had not been called.
    """

    def on_add(self, obj: T_contra) -> None:
        """An object that was not known."""

    def on_update(self, old: T_contra, new: T_contra) -> None:
        """A known object at a new version."""

    def on_delete(self, obj: T_contra) -> None:
        """An object is gone; `obj` is the last that is known of it."""

    def on_synced(self) -> None:
        """The first list is complete. Called once."""


@dataclass
class Statistics:
    """What a reflector has done so far."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    errors: int = 0


class _Known(NamedTuple, Generic[T]):
    uid: str
    version: str
    obj: T


class Reflector(Generic[T]):
    """Mirrors the objects of a source into a handler until it is cancelled.

    `decode` makes an object of its JSON (any buffer). A version that it cannot decode, or at which the
    handler fails, is set aside (`aside`); errors of the `fatal` kinds end the mirror instead. `keep` says
    what to remember of an object until its next event: old objects are handed out as it left them.
    `from_cache` takes the first list from the server's watch cache (resourceVersion=0), which may
    be a little behind; where that is refused, an ordinary list follows.
    """

    def __init__(
        self,
        transport: Transport,
        source: Source,
        decode: Callable[[bytes], T],
        handler: Handler[T],
        *,
        keep: Callable[[T], T] = lambda obj: obj,
        page_size: int = PAGE_SIZE,
        from_cache: bool = False,
        fatal: tuple[type[Exception], ...] = (),
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: Random | None = None,
    ) -> None:
        self.source = source
        self.statistics = Statistics()
        self.aside = SetAside(source.resource)
        self.synced = asyncio.Event()
        self.resource_version = ""
        self._transport = transport
        self._decode = decode
        self._handler = handler
        self._keep = keep
        self._page_size = page_size
        self._from_cache = from_cache
        self._fatal = fatal
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._rng = rng or Random()
        self._backoff = Backoff(0.2, cap=30.0, rng=self._rng)
        self._known: dict[Key, _Known[T]] = {}
        self._relist = True
        self._turn_ends = 0.0

    def __len__(self) -> int:
        return len(self._known)

    def objects(self) -> list[T]:
        """The objects as last told, as `keep` left them."""
        return [known.obj for known in self._known.values()]

    async def run(self) -> None:
        """List, watch, resume and list again, until cancelled."""
        while True:
            started = self._clock.monotonic()
            failure: Exception | None = None
            try:
                if self._relist:
                    await self._list()
                await self._watch()
            except (ClientError, msgspec.DecodeError) as error:
                self._note(error)
                failure = error
                self._relist = self._relist or isinstance(error, RelistError | ObjectError)
            await self._pause(started, failure)

    async def wait_synced(self, timeout_seconds: float) -> None:
        """Wait for the first list to be complete.

        Raises: DeadlineError.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.synced.wait()
        except TimeoutError:
            plural = self.source.resource.plural
            raise DeadlineError(f"{plural}: not listed within {timeout_seconds} s") from None

    async def _pause(self, started: float, failure: Exception | None) -> None:
        """Wait a little longer after each quick end; not at all after a watch that went well."""
        if self._clock.monotonic() - started >= HEALTHY_SECONDS:
            self._backoff.reset()
            if failure is None:
                return
        asked = failure.retry_after_seconds if isinstance(failure, ThrottledError) else 0.0
        await self._sleep(max(self._backoff.next(), asked))

    def _note(self, error: Exception) -> None:
        self.statistics.errors += 1
        log.warning("watch interrupted: resource=%s error=%s", self.source.resource.plural, error)

    # The list.

    async def _list(self) -> None:
        cached = self._from_cache and not self.synced.is_set()
        try:
            await self._list_once(self._page_size, "0" if cached else "")
        except ExpiredError as error:
            # The continue token outlived the server's history: take the list in one piece.
            self._note(error)
            await self._list_once(0, "")
        except (VersionTooLargeError, RejectedError) as error:
            if not cached:
                raise
            self._note(error)
            await self._list_once(self._page_size, "")
        self._relist = False
        if not self.synced.is_set():
            self.synced.set()
            self._handler.on_synced()

    async def _list_once(self, page_size: int, resource_version: str) -> None:
        self.statistics.lists += 1
        seen: set[Key] = set()
        found = pages(self._transport, self.source, page_size=page_size, resource_version=resource_version)
        async with aclosing(found) as listed:
            async for page in listed:
                for raw in page.items or ():
                    self._take_listed(raw, seen)
                    if time.perf_counter() > self._turn_ends:
                        await self._breathe()
                version = page.metadata.resource_version
        for key in [key for key in self._known if key not in seen]:
            self._drop(key, self._known[key].obj)
        self.aside.forget_others(seen)
        self.resource_version = version

    def _take_listed(self, raw: msgspec.Raw, seen: set[Key]) -> None:
        meta = self._identify(raw)
        if meta is None:
            return
        key = Key(meta.namespace, meta.name)
        seen.add(key)
        if self.aside.holds(key, meta):
            return
        known = self._known.get(key)
        if known is None or known.version != meta.resource_version or known.uid != meta.uid:
            self._take(key, meta, raw)

    # The watch.

    async def _watch(self) -> None:
        self.statistics.watches += 1
        seconds = self._rng.randint(*WATCH_SECONDS)
        found = watch_lines(self._transport, self.source, self.resource_version, seconds)
        async with aclosing(found) as batches:
            async for lines in batches:
                for line in lines:
                    self._take_line(line)
                    if time.perf_counter() > self._turn_ends:
                        await self._breathe()

    def _take_line(self, line: bytes) -> None:
        try:
            event = decode_watch_event(line)
        except _UNREADABLE as error:
            self._skip(error)
            return
        if event.type == "ERROR":
            raise error_from_event(event.object)
        meta = self._identify(event.object)
        if meta is None:
            return
        if event.type == "BOOKMARK":
            self.statistics.bookmarks += 1
        else:
            self.statistics.events += 1
            self._take_event(event.type, Key(meta.namespace, meta.name), meta, event.object)
        if meta.resource_version:
            self.resource_version = meta.resource_version

    def _take_event(self, kind: str, key: Key, meta: Meta, raw: msgspec.Raw) -> None:
        if kind in {"ADDED", "MODIFIED"}:
            self._take(key, meta, raw)
        elif kind == "DELETED" and key in self._known:
            self._drop(key, self._last(key, raw))
        elif kind == "DELETED":
            self.aside.forget(key)

    # What both end in.

    def _take(self, key: Key, meta: Meta, raw: msgspec.Raw) -> None:
        known = self._known.get(key)
        if known is not None and known.uid != meta.uid:
            self._drop(key, known.obj)
            known = None
        if known is not None and known.version == meta.resource_version:
            return
        try:
            obj = self._decode(raw)
        except Exception as error:  # noqa: BLE001 - whatever the caller's decoder raises, others go on
            self.aside.put(key, meta, error, traced=False)
            return
        kept = _Known(meta.uid, meta.resource_version, self._keep(obj))
        try:
            if known is None:
                self._handler.on_add(obj)
            else:
                self._handler.on_update(known.obj, obj)
        except self._fatal:
            raise
        except FollowUpError as error:
            self.aside.note(key, error)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, others go on
            self.aside.put(key, meta, error)
            return
        self._known[key] = kept
        self.aside.forget(key)

    def _drop(self, key: Key, last: T) -> None:
        known = self._known.pop(key).obj
        self.aside.forget(key)
        # The last version may be one that could not be taken in: what counts then is the one before it.
        for obj in (last,) if last is known else (last, known):
            try:
                self._handler.on_delete(obj)
            except self._fatal:
                raise
            except FollowUpError as error:
                self.aside.note(key, error)
            except Exception as error:  # noqa: BLE001 - whatever a handler raises, others go on
                self.aside.note(key, error)
                continue
            return

    def _identify(self, raw: bytes) -> Meta | None:
        try:
            return decode_head(raw).metadata
        except _UNREADABLE as error:
            self._skip(error)
            return None

    def _last(self, key: Key, raw: bytes) -> T:
        """A deleted object as it was last, or as it is known where that cannot be decoded."""
        known = self._known[key].obj
        if key in self.aside:
            return known
        try:
            return self._decode(raw)
        except Exception as error:  # noqa: BLE001 - whatever the caller's decoder raises, the object is gone
            self._skip(error)
            return known

    def _skip(self, error: Exception) -> None:
        self.aside.note(Key("", "?"), error, traced=False)

    # Turns.

    async def _breathe(self) -> None:
        await asyncio.sleep(0)
        self._turn_ends = time.perf_counter() + TURN_SECONDS
