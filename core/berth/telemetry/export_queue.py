"""Between the loop, which hands records over, and an exporter, which may be slow or away.

    offer (the loop) -> bounded queue -> thread: records to spans, spans to the sink

What does not fit is dropped and counted. The thread works in slices with a pause after each: it shares the
interpreter with the loop, which would otherwise wait for it in steps of the interpreter's switch interval.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from berth.telemetry.spans import EndedCycle, Span, spans_of

log = logging.getLogger(__name__)

MAX_CYCLES = 4096
SLICE_CYCLES = 8
PAUSE_SECONDS = 0.0005
INTERVAL_SECONDS = 0.5
CLOSE_SECONDS = 10.0


class Sink(Protocol):
    """Where spans go."""

    def export(self, spans: Sequence[Span]) -> bool:
        """Take the spans; False where they are lost."""

    def close(self) -> None:
        """Write out what is left."""


class ExportQueue:
    """One sink's queue and thread. Counts cycles: `exported`, `dropped` (no room), `failed` (not taken)."""

    def __init__(
        self,
        sink: Sink,
        resource: Mapping[str, Any],
        *,
        max_cycles: int = MAX_CYCLES,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self.exported = self.dropped = self.failed = 0
        self._sink = sink
        self._resource = resource
        self._queue: deque[EndedCycle] = deque()
        self._max_cycles = max_cycles
        self._interval_seconds = interval_seconds
        self._wake = threading.Event()
        self._closing = False
        self._taking = True
        self._thread = threading.Thread(target=self._run, name="trace export", daemon=True)
        self._thread.start()

    def offer(self, cycle: EndedCycle) -> None:
        """Hand a finished cycle over; never waits."""
        waiting = len(self._queue)
        if waiting >= self._max_cycles:
            self.dropped += 1
            return
        self._queue.append(cycle)
        if waiting == self._max_cycles // 2:
            self._wake.set()

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Export what is waiting and close the sink; whether that was done in time."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._closing:
            self._wake.wait(self._interval_seconds)
            self._wake.clear()
            self._drain()
        self._drain()
        self._sink.close()

    def _drain(self) -> None:
        while self._queue:
            count = min(len(self._queue), SLICE_CYCLES)
            self._export([self._queue.popleft() for _ in range(count)])
            if not self._closing:
                time.sleep(PAUSE_SECONDS)

    def _export(self, cycles: Sequence[EndedCycle]) -> None:
        try:
            taken = self._sink.export([span for each in cycles for span in spans_of(each, self._resource)])
            error = None
        except Exception as caught:  # noqa: BLE001 - a trace that can't be written must not end the others
            taken, error = False, caught
        if taken:
            self.exported += len(cycles)
        else:
            self.failed += len(cycles)
        self._tell(taken, error)

    def _tell(self, taken: bool, error: Exception | None) -> None:
        """Log the first failure, and that it is over: not each one in between."""
        if taken is self._taking:
            return
        self._taking = taken
        if taken:
            log.info("traces are exported again lost=%s", self.failed)
        else:
            log.warning("traces not exported sink=%s error=%s", type(self._sink).__name__, error or "refused")
