"""What passes between the host and one plugin, written down while it happens.

    connection --messages--> Recording --frames--> the client that asked for it
    calls ----> recorded_stub --^

A recording begins with everything that a plugin has to know: handshake, arguments, the whole state. Recorded
stubs take the place of the connection's own only meanwhile, so that calls cost nothing more otherwise.

Source: docs/protocol.md "Shadow and recording"; proto/berth/plugin/v1/recording.proto.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from berth.framework.clock import SYSTEM_CLOCK
from berth.recordings.calls.frames import framed
from berth.version import version
from berth_plugin_proto import (
    group_pb2,
    identity_pb2,
    placement_pb2,
    queueing_pb2,
    recording_pb2,
    scheduling_pb2,
    state_pb2,
)

FORMAT = 1
MICROS = 1_000_000
MAX_BYTES = 256 << 20
MAX_BUFFERED = 64 << 20
"""What may wait to be written, beside the state that a recording begins with."""
BATCH_BYTES = 1 << 18
LAST_WORDS_SECONDS = 0.05
"""How long after the last attempt CycleDone may be sent."""
SETTLE_SECONDS = 1.0
"""How long calls that are open at the end are waited for."""
HEARTBEAT_SECONDS = 0.25
"""How soon it shows that the reader is gone."""

COMPLETE = recording_pb2.RECORDING_END_REASON_COMPLETE
STOPPED = recording_pb2.RECORDING_END_REASON_STOPPED
SIZE = recording_pb2.RECORDING_END_REASON_SIZE
END_BYTES = 64
"""What the last entry may take."""
_SYNC = {
    state_pb2.SyncRequest: "sync",
    state_pb2.SyncResponse: "synced",
    queueing_pb2.RequeueResponse: "requeue",
}
_OF_GROUPS = {
    placement_pb2.GeneratePlacementsRequest: ("generate", "generated"),
    placement_pb2.ScorePlacementsRequest: ("score", "scored"),
    group_pb2.PlacementFeasibleRequest: ("feasible", "judged"),
    group_pb2.PodGroupPostFilterRequest: ("post_filter", "post_filtered"),
}
"""The fields of RecordedPlacements that hold a call and its answer."""


class Extent(msgspec.Struct, frozen=True):
    """How much is recorded: until so many attempts ended or so many seconds passed, but never more bytes."""

    attempts: int | None = None
    seconds: float | None = None
    max_bytes: int = MAX_BYTES


class Opening(msgspec.Struct, frozen=True):
    """What a recording begins with: the plugin's words, each profile's arguments, the state."""

    handshake: identity_pb2.HandshakeResponse
    configured: tuple[identity_pb2.ConfigureRequest, ...]
    transfer: Iterable[state_pb2.SyncRequest]


class CallRecording:
    """One recording; `batches` gives its file piece by piece, and ends with it."""

    def __init__(
        self, opening: Opening, extent: Extent, clock: Callable[[], float] = SYSTEM_CLOCK.monotonic
    ) -> None:
        self.over = False
        self._opening = opening
        self._extent = extent
        self._clock = clock
        self._began, self._began_at = clock(), SYSTEM_CLOCK.wall()
        self._attempts = 0
        self._reason: Any = None
        self._frames: deque[bytes] = deque()
        self._buffered = 0
        self._news = asyncio.Event()
        self._calls = 0
        self._open: set[int] = set()
        self._last: set[int] | None = None
        if extent.seconds is not None:
            asyncio.get_running_loop().call_later(extent.seconds, self._close)

    # What happens.

    def exchanged(self, message: Any) -> None:
        """A message passed on one of the streams."""
        self._put(**{_SYNC[type(message)]: message})

    def attempt_over(self) -> None:
        """A scheduling attempt of one of the plugin's profiles ended."""
        self._attempts += 1
        if self._attempts == self._extent.attempts:
            asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, self._close)

    def asked(self, field: str, request: Any, seconds: float, traceparent: str | None) -> int:
        """A call was sent, by the field of a ConverseRequest; its number."""
        number = self.opened()
        call = scheduling_pb2.ConverseRequest(id=number, traceparent=traceparent)
        call.timeout.FromNanoseconds(int(seconds * 1e9))
        getattr(call, field).CopyFrom(request)
        self._put(call=call)
        return number

    def answered(self, number: int, **answer: Any) -> None:
        """The answer to that call, or what became of it, by the field of a ConverseResponse."""
        self._put(answer=scheduling_pb2.ConverseResponse(id=number, **answer))
        self.closed(number)

    def configured(self, request: Any, response: Any) -> None:
        """A profile was configured."""
        self._put(configure=request)
        self._put(configured=response)

    def greeted(self, response: Any) -> None:
        """The plugin introduced itself anew: the connection had been lost."""
        self._put(handshake=response)

    def hinted(self, number: int, request: Any, response: Any, seconds: float) -> None:
        """Hints were asked for; no response for a call that failed."""
        hints = recording_pb2.RecordedHints(request=request, response=response)
        hints.took.FromNanoseconds(int(seconds * 1e9))
        self._put(hints=hints)
        self.closed(number)

    def placed(self, number: int, request: Any, response: Any, seconds: float) -> None:
        """A call about a pod group was made; no response for one that failed."""
        asked, answered = _OF_GROUPS[type(request)]
        placements = recording_pb2.RecordedPlacements(**{asked: request, answered: response})
        placements.took.FromNanoseconds(int(seconds * 1e9))
        self._put(placements=placements)
        self.closed(number)

    def opened(self) -> int:
        """A call begins that is to be waited for; its number."""
        self._calls += 1
        self._open.add(self._calls)
        return self._calls

    def closed(self, number: int) -> None:
        """The call ended."""
        self._open.discard(number)
        if self._last is not None:
            self._last.discard(number)
            if not self._last:
                self.end(COMPLETE)

    # Its end.

    def _close(self) -> None:
        """Enough is recorded: wait for what is open, not for long."""
        self._last = set(self._open)
        if not self._last:
            self.end(COMPLETE)
        asyncio.get_running_loop().call_later(SETTLE_SECONDS, self.end, COMPLETE)

    def end(self, reason: Any) -> None:
        """Record nothing more; what is there is still given out."""
        if not self.over:
            self.over, self._reason = True, reason
            self._news.set()

    def _put(self, **message: Any) -> None:
        if self.over:
            return
        frame = framed(_entry(self._clock() - self._began, **message))
        self._buffered += len(frame)
        if self._buffered > MAX_BUFFERED:
            self.end(recording_pb2.RECORDING_END_REASON_BEHIND)
            return
        self._frames.append(frame)
        self._news.set()

    # The file.

    async def batches(self) -> AsyncIterator[bytes]:
        """The file; nothing, now and then, while there is nothing, so that the reader can be looked at."""
        room = self._extent.max_bytes - END_BYTES
        for frame in self._opened():
            if len(frame) > room:
                self._full()
                break
            room -= len(frame)
            yield frame
        while not (self.over and not self._frames):
            batch = self._batch(room)
            room -= len(batch)
            yield batch
            if not self._frames and not self.over:
                self._news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_SECONDS):
                        await self._news.wait()
        yield self._last_frame()

    def _batch(self, room: int) -> bytes:
        """The next frames that fit; the end of the recording where one does not."""
        batch = bytearray()
        while self._frames and len(batch) < BATCH_BYTES:
            if len(self._frames[0]) > room - len(batch):
                self._full()
                break
            batch += self._frames.popleft()
        self._buffered -= len(batch)
        return bytes(batch)

    def _full(self) -> None:
        self._frames.clear()
        self.end(SIZE)
        self._reason = SIZE

    def _opened(self) -> Iterator[bytes]:
        header = recording_pb2.RecordingHeader(
            format=FORMAT, plugin=self._opening.handshake.name, host_version=version()
        )
        header.began.FromMicroseconds(round(self._began_at * MICROS))
        yield framed(_entry(header=header))
        yield framed(_entry(handshake=self._opening.handshake))
        for request in self._opening.configured:
            yield framed(_entry(configure=request))
            yield framed(_entry(configured=identity_pb2.ConfigureResponse()))
        for message in self._opening.transfer:
            yield framed(_entry(sync=message))

    def _last_frame(self) -> bytes:
        end = recording_pb2.RecordingEnd(reason=self._reason, attempts=self._attempts)
        return framed(_entry(self._clock() - self._began, end=end))


def _entry(offset: float = 0.0, **message: Any) -> recording_pb2.RecordingEntry:
    entry = recording_pb2.RecordingEntry(**message)
    entry.offset.FromNanoseconds(int(offset * 1e9))
    return entry
