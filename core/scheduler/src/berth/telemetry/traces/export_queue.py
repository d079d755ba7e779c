"""Between the loop, which hands records over, and an exporter, which may be slow or away.

    offer (the loop) -> bounded queue -> thread: cycles into the sink's batch
                                                 -> the batch sent when it is enough, or nothing else waits

What does not fit is dropped and counted. The thread works in slices with a pause after each: it shares the
interpreter with the loop, which would otherwise wait for it in steps of the interpreter's switch interval.
"""

import logging
import threading
import time
from collections import deque
from typing import Protocol

from berth.framework.clock import nanoseconds
from berth.telemetry.traces.spans import EndedCycle

log = logging.getLogger(__name__)

MAX_CYCLES = 4096
SLICE_NS = 2_000_000
PAUSE_SECONDS = 0.0005
INTERVAL_SECONDS = 0.5
CLOSE_SECONDS = 10.0


class Sink(Protocol):
    """Where spans go, a batch at a time."""

    def add(self, cycle: EndedCycle) -> bool:
        """Put the cycle's spans into the batch, all or none; whether the batch is enough to be sent."""

    def send(self) -> bool:
        """Send the batch and begin another; False where its spans are lost."""

    def close(self) -> None:
        """Write out what is left."""


class ExportQueue:
    """One sink's queue and thread. Counts cycles: `exported`, `dropped` (no room), `failed` (not taken)."""

    def __init__(
        self,
        sink: Sink,
        *,
        max_cycles: int = MAX_CYCLES,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self.exported = self.dropped = self.failed = 0
        self._sink = sink
        self._in_batch = 0
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
            self._work(nanoseconds() + SLICE_NS)
            if not self._closing:
                time.sleep(PAUSE_SECONDS)
        if self._in_batch:
            self._send()

    def _work(self, until: int) -> None:
        """Export until then, or until nothing is waiting; one cycle at least."""
        while self._queue:
            if self._add(self._queue.popleft()):
                self._send()
            if nanoseconds() >= until:
                return

    def _add(self, cycle: EndedCycle) -> bool:
        try:
            enough = self._sink.add(cycle)
        except Exception as error:  # noqa: BLE001 - a trace that can't be written must not end the others
            self.failed += 1
            self._tell(False, error)
            return False
        self._in_batch += 1
        return enough

    def _send(self) -> None:
        count, self._in_batch = self._in_batch, 0
        try:
            taken = self._sink.send()
            error = None
        except Exception as caught:  # noqa: BLE001 - a batch that can't be sent must not end the others
            taken, error = False, caught
        if taken:
            self.exported += count
        else:
            self.failed += count
        self._tell(taken, error)

    def _tell(self, taken: bool, error: Exception | None) -> None:
        """Log the first failure, and that it is over: not each one in between."""
        if taken is self._taking:
            return
        self._taking = taken
        if taken:
            log.info("traces are exported again lost=%s", self.failed)
        else:
            log.warning("traces not exported sink=%s err=%s", type(self._sink).__name__, error or "refused")
