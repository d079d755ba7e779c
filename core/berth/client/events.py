"""Events about pods and leases, written beside the scheduler's work and never in its way.

    event() ──► seen before? ──► counted; the first repetition makes it a series
       │ new
       └──► queue (bounded, drops when full) ──► workers ──► events.k8s.io/v1
                                                  more of them, the more there waits

Every call is synchronous and cheap; what could not be written is counted, not waited for.

Called by: telemetry's and the scheduler process's event sinks.
"""

import asyncio
import logging
import socket
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from berth.client.api import MERGE_PATCH, Api, Retry, never_landed
from berth.client.errors import ClientError, ConflictError, NotFoundError, RetryError
from berth.client.resources import EVENTS
from berth.client.timing import Sleep, micro_time
from berth.client.wire import encode
from berth.framework.clock import Clock, SystemClock

log = logging.getLogger(__name__)

NOTE_LIMIT_BYTES = 1024
NAME_LIMIT = 253
CUT_MARK = " ..."
ATTEMPTS = 12
ATTEMPT_EVERY_SECONDS = 10.0
SWEEP_EVERY_SECONDS = 60.0
FINISHED_AFTER_SECONDS = 360.0
REFRESH_EVERY_SECONDS = 1800.0
ONCE = Retry(1, 0.0, 1.0, 0.0, never_landed)


class Reference(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    def document(self) -> dict[str, str]:
        """It as the API writes it, empty fields left out."""
        full = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {name: value for name, value in full.items() if value}


class _Key(NamedTuple):
    """What makes two events one: everything but the note."""

    type: str
    action: str
    reason: str
    controller: str
    regarding: Reference
    related: Reference | None


@dataclass(slots=True)
class _Tracked:
    key: _Key
    name: str
    note: str
    first: float
    last: float
    last_at: float
    written_at: float
    count: int = 1
    written: int = 0
    pending: bool = True


@dataclass
class EventStatistics:
    """What became of the events so far."""

    folded: int = 0
    dropped: int = 0
    written: int = 0
    failed: int = 0


@dataclass
class EventRecorder:
    """Records events asynchronously; run() writes them, event() may be called before that.

    `capacity` bounds what waits to be written, `tracked` what is remembered to fold repetitions. Between
    `workers` and `most_workers` write at a time: a slow server should cost no events.
    """

    api: Api
    clock: Clock = field(default_factory=SystemClock)
    sleep: Sleep = asyncio.sleep
    capacity: int = 1000
    tracked: int = 4096
    workers: int = 4
    most_workers: int = 32
    hostname: str = field(default_factory=socket.gethostname)

    def __post_init__(self) -> None:
        self.statistics = EventStatistics()
        self._queue: asyncio.Queue[_Tracked] = asyncio.Queue(self.capacity)
        self._known: OrderedDict[_Key, _Tracked] = OrderedDict()
        self._last_nanoseconds = 0
        self._group: asyncio.TaskGroup | None = None
        self._helpers = 0

    def event(
        self,
        regarding: Reference,
        related: Reference | None = None,
        *,
        controller: str,
        type: str,  # noqa: A002 - the API's own name
        reason: str,
        action: str,
        note: str,
    ) -> None:
        """Record an event in the name of a profile; returns at once.

        `type` is Normal or Warning. A note longer than 1024 bytes is cut.
        """
        key = _Key(type, action, reason, controller, regarding, related)
        known = self._known.get(key)
        if known is not None:
            self._repeat(known)
            return
        now, at = self.clock.now(), self.clock.monotonic()
        tracked = _Tracked(key, self._name(regarding.name, now), shortened(note), now, now, at, at)
        if self._enqueue(tracked):
            self._known[key] = tracked
            if len(self._known) > self.tracked:
                self._finish(next(iter(self._known.values())))
        else:
            self.statistics.dropped += 1

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.workers):
                group.create_task(self._work())
            self._group = group
            try:
                await self._sweep_for_ever()
            finally:
                # A group that ends takes no more tasks, and events are recorded until the very end.
                self._group = None

    async def drain(self, timeout_seconds: float) -> bool:
        """Wait until all that was recorded is written, while run() runs; whether that came about."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._queue.join()
        except TimeoutError:
            return False
        return True

    def _name(self, about: str, now: float) -> str:
        nanoseconds = max(int(now * 1_000_000) * 1000, self._last_nanoseconds + 1)
        self._last_nanoseconds = nanoseconds
        suffix = f".{nanoseconds:x}"
        return about[: NAME_LIMIT - len(suffix)].rstrip("-.") + suffix

    def _repeat(self, known: _Tracked) -> None:
        self.statistics.folded += 1
        known.count += 1
        known.last, known.last_at = self.clock.now(), self.clock.monotonic()
        self._known.move_to_end(known.key)
        if known.written == 1 and not known.pending:
            self._enqueue(known)

    def _enqueue(self, tracked: _Tracked) -> bool:
        try:
            self._queue.put_nowait(tracked)
        except asyncio.QueueFull:
            return False
        tracked.pending = True
        self._call_for_help()
        return True

    def _call_for_help(self) -> None:
        """Let one more write when what waits is more than those at work should have before them."""
        at_work = self.workers + self._helpers
        too_many = self._queue.qsize() * self.most_workers > self.capacity * at_work
        if self._group is not None and too_many and at_work < self.most_workers:
            self._helpers += 1
            self._group.create_task(self._help())

    # Series: written again every half hour, ended after six quiet minutes.

    async def _sweep_for_ever(self) -> None:
        while True:
            await self.sleep(SWEEP_EVERY_SECONDS)
            self._sweep()

    def _sweep(self) -> None:
        now = self.clock.monotonic()
        for tracked in list(self._known.values()):
            if tracked.pending:
                continue
            if now - tracked.last_at >= FINISHED_AFTER_SECONDS:
                self._finish(tracked)
            elif tracked.count > tracked.written and now - tracked.written_at >= REFRESH_EVERY_SECONDS:
                self._enqueue(tracked)

    def _finish(self, tracked: _Tracked) -> None:
        del self._known[tracked.key]
        if tracked.count > tracked.written and not tracked.pending:
            self._enqueue(tracked)

    # Writing.

    async def _work(self) -> None:
        while True:
            await self._write_next()

    async def _help(self) -> None:
        try:
            while not self._queue.empty():
                await self._write_next()
        finally:
            self._helpers -= 1

    async def _write_next(self) -> None:
        tracked = await self._queue.get()
        try:
            await self._write(tracked)
        finally:
            tracked.pending = False
            self._queue.task_done()

    async def _write(self, tracked: _Tracked) -> None:
        """Create or extend the event, and extend it again if it was repeated for the first time meanwhile."""
        while True:
            count = tracked.count
            if not await self._write_patiently(tracked, count):
                self.statistics.failed += 1
                self._known.pop(tracked.key, None)
                return
            self.statistics.written += 1
            tracked.written, tracked.written_at = count, self.clock.monotonic()
            if count > 1 or tracked.count == 1:
                return

    async def _write_patiently(self, tracked: _Tracked, count: int) -> bool:
        attempt = 1
        while True:
            try:
                await self._create_or_extend(tracked, count)
            except ClientError as error:
                if attempt == ATTEMPTS or not isinstance(error, RetryError):
                    log.warning("event not written: event=%s error=%s", tracked.name, error)
                    return False
            else:
                return True
            attempt += 1
            await self.sleep(ATTEMPT_EVERY_SECONDS)

    async def _create_or_extend(self, tracked: _Tracked, count: int) -> None:
        namespace = tracked.key.regarding.namespace or "default"
        if tracked.written:
            path = EVENTS.path(namespace, tracked.name)
            body = encode({"series": _series(tracked, count)})
            try:
                await self.api.call("PATCH", path, body, content_type=MERGE_PATCH, retry=ONCE)
            except NotFoundError:
                tracked.written = 0  # It has expired on the server: begin a new one.
            else:
                return
        body = encode(self._document(tracked, count, namespace))
        try:
            await self.api.call("POST", EVENTS.collection(namespace), body, retry=ONCE)
        except ConflictError:
            log.debug("event exists already: event=%s", tracked.name)

    def _document(self, tracked: _Tracked, count: int, namespace: str) -> dict[str, Any]:
        key = tracked.key
        document: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": tracked.name, "namespace": namespace},
            "eventTime": micro_time(tracked.first),
            "reportingController": key.controller,
            "reportingInstance": f"{key.controller}-{self.hostname}",
            "type": key.type,
            "reason": key.reason,
            "action": key.action,
            "regarding": key.regarding.document(),
            "note": tracked.note,
        }
        if key.related is not None:
            document["related"] = key.related.document()
        if count > 1:
            document["series"] = _series(tracked, count)
        return document


def _series(tracked: _Tracked, count: int) -> dict[str, Any]:
    return {"count": count, "lastObservedTime": micro_time(tracked.last)}


def shortened(note: str) -> str:
    """A note of at most 1024 bytes; one that was cut ends in ` ...`."""
    data = note.encode()
    if len(data) <= NOTE_LIMIT_BYTES:
        return note
    return data[: NOTE_LIMIT_BYTES - len(CUT_MARK)].decode("utf-8", "ignore") + CUT_MARK
