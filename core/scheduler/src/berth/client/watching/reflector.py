"""A local mirror of one kind of object, reported as add, update and delete.

    listing ──► synced, watching ──► (cut) watching from the last version seen
       ▲                │
       └── 410, ERROR event, refused version: the new list is reported as its difference to the old

The mirror never restarts: whatever happens on the wire, the handler sees one consistent story. `prove` shows
that it is as new as the API server itself was at the call.

Called by: the scheduler process, one reflector a kind; handlers are the event handlers of floor 4.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import aclosing
from random import Random
from typing import Generic, Protocol, TypeVar

import msgspec

from berth.client.errors import (
    AmbiguousError,
    ClientError,
    DeadlineError,
    ExpiredError,
    NotFoundError,
    ObjectError,
    RejectedError,
    RelistError,
    RetryError,
    ThrottledError,
    VersionTooLargeError,
)
from berth.client.legible import UNREADABLE
from berth.client.timing import Sleep
from berth.client.transport import Transport
from berth.client.watching.freshness import Absence, covers
from berth.client.watching.handling import Handling
from berth.client.watching.known_objects import KnownObjects
from berth.client.watching.quarantined_objects import QuarantinedObjects, Report, ignore
from berth.client.watching.watch import PAGE_SIZE, WatchSource, current_version, pages, watch_lines
from berth.client.wire import Meta, ObjectKey, bounded, decode_head, decode_watch_event, error_from_event
from berth.event_handlers.errors import FollowUpError
from berth.framework.clock import SYSTEM_CLOCK, Clock, SystemClock
from berth.framework.pacing import Backoff, Pauses

log = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

# How long the loop may be kept busy before others (the lease renewal) get their turn.
TURN_SECONDS = 0.005
WATCH_SECONDS = (300, 600)
HEALTHY_SECONDS = 1.0
NAMELESS = "an event of which it cannot be read what it is about"
# How long an event that proves a mirror is waited for: where there are many objects, one soon changes.
GRACE_SECONDS = 0.25
# The API server sends a bookmark two seconds before a watch's time is up, looking every 1 to 1.25 seconds, so
# three is the shortest time that brings one. Source: pkg/storage/cacher/cache_watcher.go nextBookmarkTime.
BOOKMARK_WATCH_SECONDS = 3
# So many objects are listed sooner than a bookmark comes.
LISTED_SOONER = 5_000
BOOKMARK_BY_SECONDS = 4.0


class EventHandler(Protocol[T_contra]):
    """Called, synchronously, with what happens to the objects of one kind.

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


class Statistics(msgspec.Struct):
    """What a reflector has done so far."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    errors: int = 0


class Reflector(Generic[T]):
    """Mirrors the objects of a source into a handler until it is cancelled.

    `decode` makes an object of its JSON (any buffer). A version that it cannot decode, or at which the
    handler fails, is set aside (`aside`) and reported; errors of the `fatal` kinds end the mirror instead.
    `whole` lists in one piece, half the work for the API server; where that is cut off, page by page.
    `from_cache` takes the first list from the server's watch cache (resourceVersion=0), which may be a
    little behind; where that is refused, an ordinary list follows.
    """

    def __init__(
        self,
        transport: Transport,
        source: WatchSource,
        decode: Callable[[bytes], T],
        handler: EventHandler[T],
        *,
        page_size: int = PAGE_SIZE,
        from_cache: bool = False,
        whole: bool = False,
        fatal: tuple[type[Exception], ...] = (),
        report: Report = ignore,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: Random | None = None,
    ) -> None:
        self.source = source
        self.statistics = Statistics()
        self.handling = Handling(SYSTEM_CLOCK.monotonic)
        self.last_error = ""
        """What the latest list or watch broke off for, that of one that went well included."""
        self.aside = QuarantinedObjects(source.resource, report)
        self.synced = asyncio.Event()
        self.resource_version = ""
        self._transport = transport
        self._decode = bounded(decode)
        self._handler = handler
        self._page_size = page_size
        self._from_cache = from_cache
        self._whole = whole
        self._fatal = fatal
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._rng = rng or Random()
        self._backoff = Pauses(Backoff(0.2, longest=30.0, jitter=1.0), self._rng)
        # A kind that is not served may be a CustomResourceDefinition away: asking is cheap, and it is wanted.
        self._absent = Pauses(Backoff(0.2, longest=0.8, jitter=1.0), self._rng)
        self._known: KnownObjects[T] = KnownObjects()
        self._relist = True
        self._turn_ends = 0.0
        self.absence = Absence(self._clock)
        self._round: asyncio.Timeout | None = None
        self._watch_seconds = 0
        self._interrupted = False
        self._listed = self._list_wanted = 0
        self._refused: ObjectError | None = None
        self._moved = asyncio.Event()

    def __len__(self) -> int:
        return len(self._known)

    def objects(self) -> list[T]:
        """The objects as last seen."""
        return self._known.objects()

    async def run(self) -> None:
        """List, watch, resume and list again, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(None) as anew:
                    self._round = anew
                    await self._mirror()
            except TimeoutError:
                if not anew.expired():
                    raise
            finally:
                self._round = None

    async def _mirror(self) -> None:
        """List if need be, and watch until the watch ends; pause after that."""
        started = self._clock.monotonic()
        failure: Exception | None = None
        resumed = not self._relist
        try:
            if self._relist:
                await self._list()
            await self._watch()
        except (ClientError, msgspec.DecodeError) as error:
            if isinstance(error, ExpiredError) and (resumed or self._is_healthy(started)):
                # Of a kind outside of the server's watch cache, such as events, no bookmark comes: a watch on
                # which nothing happened resumes from a version that etcd may have compacted meanwhile.
                log.debug("history compacted, listed anew resource=%s", self.source.resource.plural)
            else:
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
        if self._is_healthy(started):
            self._backoff.reset()
            if failure is None:
                return
        asked = failure.retry_after_seconds if isinstance(failure, ThrottledError) else 0.0
        backoff = self._absent if isinstance(failure, NotFoundError) else self._backoff
        await self._sleep(max(backoff.next(), asked))

    def _is_healthy(self, started: float) -> bool:
        return self._clock.monotonic() - started >= HEALTHY_SECONDS

    def _note(self, error: Exception) -> None:
        self.statistics.errors += 1
        again = self._interrupted and self.last_error == str(error)
        self.last_error = str(error)
        self._interrupted = True
        if not again:
            log.warning("watch interrupted resource=%s err=%s", self.source.resource.plural, error)
        if isinstance(error, ObjectError):
            # Not shown to us, or there is no such kind any more: nothing is missed, and it is listed anew.
            self._refused = error
            self.absence.end()
            self._moved.set()

    # The proof.

    async def prove(self) -> None:
        """Return once the mirror holds every write to its kind that was done before the call.

        What fits on a page is listed again. For more, one object is read for the version that the kind has,
        and the watch is to reach it: by an event or, where nothing changes, by the bookmark of a short watch.
        Where that takes longer than a list, or does not come, all are listed.
        Raises: ObjectError where the server refuses to show the kind.
        """
        self.absence.forgive()
        if len(self._known) > self._page_size and await self._caught_up():
            return
        await self._listed_anew()

    async def _caught_up(self) -> bool:
        backoff = Pauses(Backoff(0.2, longest=5.0, jitter=1.0), self._rng)
        while True:
            before = self.resource_version
            try:
                wanted = await current_version(self._transport, self.source)
                break
            except (RetryError, msgspec.DecodeError) as error:
                log.warning("version not read resource=%s err=%s", self.source.resource.plural, error)
                await self._sleep(backoff.next())
        # A history that went back, as after a restored backup, has no version that proves anything.
        if not covers(wanted, before):
            return False
        if await self._reached(wanted, GRACE_SECONDS):
            return True
        return len(self._known) > LISTED_SOONER and await self._reached_by_bookmark(wanted)

    async def _reached_by_bookmark(self, wanted: str) -> bool:
        self._watch_seconds = BOOKMARK_WATCH_SECONDS
        self._begin_anew()
        return await self._reached(wanted, BOOKMARK_BY_SECONDS)

    async def _reached(self, wanted: str, seconds: float) -> bool:
        return await self._until(lambda: bool(covers(self.resource_version, wanted)), seconds)

    async def _listed_anew(self) -> None:
        """Return once a list is complete that was begun after the call. Raises: ObjectError."""
        wanted = self._list_wanted = self.statistics.lists + 1
        self._refused, self._relist = None, True
        self._begin_anew()
        await self._until(lambda: self._listed >= wanted or self._refused is not None)
        if self._refused is not None:
            raise self._refused

    async def _until(self, claim: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Wait for the claim, which only a move of the mirror makes true; whether it holds."""
        try:
            async with asyncio.timeout(None if seconds == math.inf else seconds):
                while not claim():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    def _begin_anew(self) -> None:
        """Leave what is going on, watch or pause, and go on from the last version seen, or with a list."""
        self._backoff.reset()
        if self._round is not None:
            self._round.reschedule(asyncio.get_running_loop().time())
            self._round = None

    # The list.

    async def _list(self) -> None:
        cached = self._from_cache and not self.synced.is_set()
        try:
            await self._list_by_size("0" if cached else "")
        except ExpiredError as error:
            # The continue token outlived the server's history: take the list in one piece.
            self._note(error)
            await self._list_once(0, "")
        except (VersionTooLargeError, RejectedError) as error:
            if not cached:
                raise
            self._note(error)
            await self._list_by_size("")
        # A list that was on its way when another one was asked for may come to its end: it proves nothing.
        self._relist = self._listed < self._list_wanted
        self._moved.set()
        if not self.synced.is_set():
            self.synced.set()
            self._handler.on_synced()

    async def _list_by_size(self, resource_version: str) -> None:
        if self._whole:
            try:
                await self._list_once(0, resource_version)
            except (AmbiguousError, msgspec.DecodeError) as error:
                self._note(error)
            else:
                return
        await self._list_once(self._page_size, resource_version)

    async def _list_once(self, page_size: int, resource_version: str) -> None:
        self.statistics.lists += 1
        begun = self.statistics.lists
        unseen = dict.fromkeys((*self._known, *self.aside))
        found = pages(self._transport, self.source, page_size=page_size, resource_version=resource_version)
        async with aclosing(found) as listed:
            async for page in listed:
                items = page.items or ()
                self.handling.begin(len(items))
                for raw in items:
                    self._take_listed(raw, unseen)
                    if self.handling.done() > self._turn_ends:
                        await self._breathe()
                version = page.metadata.resource_version
        for key in unseen:
            if known := self._known.get(key):
                self._drop(key, known.obj)
            self.aside.forget(key)
        self.resource_version = version
        self._listed = begun

    def _take_listed(self, raw: msgspec.Raw, unseen: dict[ObjectKey, None]) -> None:
        meta = self._identify(raw)
        if meta is None:
            return
        key = ObjectKey(meta.namespace, meta.name)
        unseen.pop(key, None)
        if not self.aside.holds(key, meta):
            self._take(key, meta, raw)

    # The watch.

    async def _watch(self) -> None:
        self.statistics.watches += 1
        seconds, self._watch_seconds = self._watch_seconds or self._rng.randint(*WATCH_SECONDS), 0
        found = watch_lines(self._transport, self.source, self.resource_version, seconds, self._opened)
        try:
            async with aclosing(found) as batches:
                async for lines in batches:
                    self.handling.begin(len(lines))
                    for line in lines:
                        self._take_line(line)
                        if self.handling.done() > self._turn_ends:
                            await self._breathe()
        finally:
            self.handling.begin(0)
            self.absence.begin()

    def _opened(self) -> None:
        self.absence.end()
        if self._interrupted:
            self._interrupted = False
            log.info("watch goes on resource=%s", self.source.resource.plural)

    def _take_line(self, line: bytes) -> None:
        try:
            event = decode_watch_event(line)
        except UNREADABLE as error:
            self._skip(error)
            raise RelistError(0, "", NAMELESS) from error
        if event.type == "ERROR":
            raise error_from_event(event.object)
        meta = self._identify(event.object)
        if meta is None:
            raise RelistError(0, "", NAMELESS)
        if event.type == "BOOKMARK":
            self.statistics.bookmarks += 1
        else:
            self.statistics.events += 1
            self._take_event(event.type, ObjectKey(meta.namespace, meta.name), meta, event.object)
        if meta.resource_version:
            self.resource_version = meta.resource_version
            self._moved.set()

    def _take_event(self, kind: str, key: ObjectKey, meta: Meta, raw: msgspec.Raw) -> None:
        if kind in {"ADDED", "MODIFIED"}:
            self._take(key, meta, raw)
        elif kind == "DELETED" and key in self._known:
            self._drop(key, self._last(key, raw))
        elif kind == "DELETED":
            self.aside.forget(key)

    # What both end in.

    def _take(self, key: ObjectKey, meta: Meta, raw: msgspec.Raw) -> None:
        known = self._known.get(key)
        if known is not None and known.identity.uid != meta.uid:
            self._drop(key, known.obj)
            known = None
        if known is not None and known.is_version(meta):
            return
        try:
            obj = self._decode(raw)
        except Exception as error:  # noqa: BLE001 - whatever the caller's decoder raises, others go on
            self.aside.put(key, meta, error, traced=False)
            return
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
        self._known.put(meta, obj)
        self.aside.forget(key)

    def _drop(self, key: ObjectKey, last: T) -> None:
        known = self._known.pop(key)
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
        except UNREADABLE as error:
            self._skip(error)
            return None

    def _last(self, key: ObjectKey, raw: bytes) -> T:
        """A deleted object as it was last, or as it is known where that cannot be decoded."""
        if key in self.aside:
            return self._known[key].obj
        try:
            return self._decode(raw)
        except Exception as error:  # noqa: BLE001 - whatever the caller's decoder raises, the object is gone
            self._skip(error)
            return self._known[key].obj

    def _skip(self, error: Exception) -> None:
        self.aside.note(ObjectKey("", "?"), error, traced=False)

    # Turns.

    async def _breathe(self) -> None:
        await asyncio.sleep(0)
        self._turn_ends = SYSTEM_CLOCK.monotonic() + TURN_SECONDS
        self.handling.go_on()
