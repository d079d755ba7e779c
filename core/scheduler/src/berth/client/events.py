"""Events about pods and leases, written beside the scheduler's work and never in its way.

    event() ──► seen before? ──► counted; the first repetition makes it a series
       │ new
       └──► queue (bounded, drops when full) ──► several in one write ──► events.k8s.io/v1
                                                  more writes at a time, the more there waits

Every call is synchronous and cheap; what could not be written is counted, not waited for. An event is named
before it is sent, so that one which is sent twice is refused the second time: events may be written together,
though a cut leaves all of a write in doubt.

Called by: telemetry's and the scheduler process's event sinks.
"""

import asyncio
import logging
import socket
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import msgspec

from berth.client.api import BAD, MERGE_PATCH, Api
from berth.client.connections.connection import Response
from berth.client.connections.exchange import Outcome
from berth.client.errors import ClientError, ConflictError, NotFoundError, RetryError, lacks_rights
from berth.client.resources import EVENTS
from berth.client.timing import After, after, micro_time
from berth.client.transport import JSON, Post
from berth.client.wire import encode, error_from
from berth.framework.clock import Clock, SystemClock

log = logging.getLogger(__name__)

NOTE_LIMIT_BYTES = 1024
NAME_LIMIT = 253
CUT_MARK = " ..."
ATTEMPTS = 12
ATTEMPT_EVERY_SECONDS = 10.0
GATHERING_SECONDS = 0.01
SWEEP_EVERY_SECONDS = 60.0
FINISHED_AFTER_SECONDS = 360.0
REFRESH_EVERY_SECONDS = 1800.0


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The object that an event is about, as the API writes it: empty fields are left out."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Meta(msgspec.Struct):
    name: str
    namespace: str


class _Series(msgspec.Struct, rename="camel"):
    count: int
    last_observed_time: str


class _Event(msgspec.Struct, omit_defaults=True, rename="camel"):
    api_version: str
    kind: str
    metadata: _Meta
    event_time: str
    reporting_controller: str
    reporting_instance: str
    type: str
    reason: str
    action: str
    regarding: Reference
    note: str
    related: Reference | None = None
    series: _Series | None = None


class _Key(NamedTuple):
    """What makes two events one: everything but the note, unless notes set events apart."""

    type: str
    action: str
    reason: str
    controller: str
    regarding: Reference
    related: Reference | None
    note: str


class _Tracked(msgspec.Struct):
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
    attempts: int = 0


class _Write:
    """Events on their way together: how many are not answered yet."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


DROPPED_A_LINE = 1000
"""Of so many events that are dropped one is logged."""


class EventStatistics(msgspec.Struct):
    """What became of the events so far."""

    folded: int = 0
    dropped: int = 0
    written: int = 0
    failed: int = 0


@dataclass
class EventRecorder:
    """Records events asynchronously; run() writes them, event() may be called before that.

    `capacity` bounds what waits to be written, `tracked` what is remembered to fold repetitions. Between
    `writes` and `max_writes` are made at a time, of up to `together` events each: a slow server should cost
    no events. A series keeps the note that it began with: `by_note` begins another for another note.
    """

    api: Api
    clock: Clock = field(default_factory=SystemClock)
    after: After = after
    capacity: int = 1000
    tracked: int = 4096
    writes: int = 4
    max_writes: int = 32
    together: int = 8
    by_note: bool = False
    hostname: str = field(default_factory=socket.gethostname)

    def __post_init__(self) -> None:
        self.statistics = EventStatistics()
        self._waiting: deque[_Tracked] = deque()
        self._known: OrderedDict[_Key, _Tracked] = OrderedDict()
        self._last_nanoseconds = 0
        self._running = self._hurries = self._ending = False
        self._timer: asyncio.TimerHandle | None = None
        self._written_now = self._paused = 0
        self._idle = asyncio.Event()
        self._idle.set()

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
        by_note: bool = False,
    ) -> None:
        """Record an event in the name of a profile; returns at once.

        `type` is Normal or Warning. A note longer than 1024 bytes is cut. `by_note` as the recorder's, for
        this event alone.
        """
        apart = note if by_note or self.by_note else ""
        key = _Key(type, action, reason, controller, regarding, related, apart)
        known = self._known.get(key)
        if known is not None:
            self._repeat(known)
            return
        now, at = self.clock.wall(), self.clock.monotonic()
        tracked = _Tracked(key, self._name(regarding.name, now), shortened(note), now, now, at, at)
        if self._enqueue(tracked):
            self._known[key] = tracked
            if len(self._known) > self.tracked:
                self._finish(next(iter(self._known.values())))
        else:
            self.statistics.dropped += 1
            if self.statistics.dropped % DROPPED_A_LINE == 1:
                log.warning("events dropped, too many wait to be written dropped=%s", self.statistics.dropped)

    def outcomes(self) -> dict[str, float]:
        """How many were written, refused by the API server, and dropped."""
        found = self.statistics
        return {"written": found.written, "failed": found.failed, "dropped": found.dropped}

    async def run(self) -> None:
        """Write events until cancelled."""
        self._running = True
        self._soon()
        try:
            while True:
                await asyncio.sleep(SWEEP_EVERY_SECONDS)
                self._sweep()
        finally:
            self._running = False

    async def drain(self, timeout_seconds: float) -> bool:
        """Wait at the end until everything is written, while run() runs; whether that came about."""
        self._ending = True
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._idle.wait()
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
        known.last, known.last_at = self.clock.wall(), self.clock.monotonic()
        self._known.move_to_end(known.key)
        if known.written == 1 and not known.pending:
            self._enqueue(known)

    def _enqueue(self, tracked: _Tracked) -> bool:
        if len(self._waiting) >= self.capacity:
            return False
        tracked.pending = True
        self._waiting.append(tracked)
        self._idle.clear()
        self._soon()
        return True

    # Series: written again every half hour, ended after six quiet minutes.

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

    def _soon(self) -> None:
        """Write once a write is full, or a moment later: no decision waits for an event."""
        if not self._running:
            return
        full = len(self._waiting) >= self.together
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(0.0 if full else GATHERING_SECONDS, self._write_on)
            self._hurries = full
        elif full and not self._hurries:
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(0.0, self._write_on)
            self._hurries = True

    def _write_on(self) -> None:
        """Let leave what may: in more writes at a time, the more there waits."""
        self._timer = None
        while self._waiting and self._running and self._written_now + self._paused < self._max_writes():
            count = min(len(self._waiting), self.together)
            self._send([self._waiting.popleft() for _ in range(count)])

    def _max_writes(self) -> int:
        wanted = -(-len(self._waiting) * self.max_writes // self.capacity)
        return max(self.writes, min(wanted, self.max_writes))

    def _send(self, events: list[_Tracked]) -> None:
        self._written_now += 1
        write = _Write(len(events))
        posts = [self._post(tracked, write) for tracked in events]
        self.api.transport.send_together(posts)

    def _post(self, tracked: _Tracked, write: _Write) -> Post:
        """The request that creates or extends the event."""
        count, key = tracked.count, tracked.key
        namespace = key.regarding.namespace or "default"
        answered = partial(self._answered, tracked, write, count)
        if tracked.written:
            body = encode({"series": _series(tracked, count)})
            return Post("PATCH", EVENTS.path(namespace, tracked.name), body, MERGE_PATCH, answered)
        body = encode(self._document(tracked, count, namespace))
        return Post("POST", EVENTS.collection(namespace), body, JSON, answered)

    def _answered(self, tracked: _Tracked, write: _Write, count: int, outcome: Outcome) -> None:
        write.left -= 1
        error = outcome if isinstance(outcome, ClientError) else _error_of(outcome)
        if tracked.written and isinstance(error, NotFoundError):
            tracked.written = 0  # It has expired on the server: begin a new one.
            self._waiting.appendleft(tracked)
        elif error is None or (isinstance(error, ConflictError) and not tracked.written):
            self._was_written(tracked, count)
        else:
            self._failed(tracked, error)
        if not write.left:
            self._written_now -= 1
            self._soon()
        if not (self._waiting or self._written_now or self._paused):
            self._idle.set()

    def _was_written(self, tracked: _Tracked, count: int) -> None:
        """Extend an event at once that was repeated for the first time meanwhile."""
        self.statistics.written += 1
        tracked.attempts = 0
        tracked.written, tracked.written_at = count, self.clock.monotonic()
        if count == 1 and tracked.count > 1:
            self._waiting.appendleft(tracked)
        else:
            tracked.pending = False

    def _failed(self, tracked: _Tracked, error: ClientError) -> None:
        tracked.attempts += 1
        if tracked.attempts < ATTEMPTS and isinstance(error, RetryError):
            self._paused += 1
            self.after(ATTEMPT_EVERY_SECONDS, partial(self._again, tracked))
            return
        # At the end of a process that is uninstalled its roles may be gone already.
        level = logging.INFO if self._ending and lacks_rights(error) else logging.WARNING
        log.log(level, "event not written event=%s err=%s", tracked.name, error)
        self.statistics.failed += 1
        tracked.pending = False
        self._known.pop(tracked.key, None)

    def _again(self, tracked: _Tracked) -> None:
        self._paused -= 1
        self._waiting.appendleft(tracked)
        self._soon()

    def _document(self, tracked: _Tracked, count: int, namespace: str) -> _Event:
        key = tracked.key
        return _Event(
            EVENTS.api_version,
            "Event",
            _Meta(tracked.name, namespace),
            micro_time(tracked.first),
            key.controller,
            f"{key.controller}-{self.hostname}",
            key.type,
            key.reason,
            key.action,
            key.regarding,
            tracked.note,
            key.related,
            _series(tracked, count) if count > 1 else None,
        )


def _series(tracked: _Tracked, count: int) -> _Series:
    return _Series(count, micro_time(tracked.last))


def _error_of(response: Response) -> ClientError | None:
    return error_from(response) if response.status >= BAD else None


def shortened(note: str) -> str:
    """A note of at most 1024 bytes; one that was cut ends in ` ...`."""
    data = note.encode()
    if len(data) <= NOTE_LIMIT_BYTES:
        return note
    return data[: NOTE_LIMIT_BYTES - len(CUT_MARK)].decode("utf-8", "ignore") + CUT_MARK
