"""Writing a tape to a file, in a thread of its own: the event loop hands spans over and never waits.

    sink --queue, bounded--> thread: JSON, gzip --> one file, until it has the size that is allowed

A disk that is too slow, full or gone costs the recording, and nothing else: what was written stays, the last
line says why it ends, and everything after it is counted as dropped.
"""

import logging
import queue
import threading
from contextlib import suppress
from typing import Final

from berth.framework.clock import SYSTEM_CLOCK
from berth.recordings.core.spans import END, DeltaEncoding, SpanLine, TapeSpan, line_of
from berth.recordings.formats import EndReason
from berth.recordings.line_files import LineFile

log = logging.getLogger(__name__)

SUFFIX: Final = ".tape.gz"
MAX_WAITING: Final = 200_000
"""This many spans may wait for the disk: they are small, and refer to objects that the cluster has."""
FLUSH_SECONDS: Final = 1.0


class TapeFile:
    """A sink (recorder.Sink) that writes a file of at most so many bytes."""

    def __init__(self, file: LineFile, max_bytes: int, max_waiting: int = MAX_WAITING) -> None:
        """Write to the file, which has its header and nothing else."""
        self.written = 0
        """Spans that are in the file."""
        # Each counter has one thread that moves it: those two are the event loop's.
        self._taken = self._refused = 0
        self._max_bytes = max_bytes
        self._max_waiting = max_waiting
        self._queue: queue.SimpleQueue[TapeSpan | EndReason] = queue.SimpleQueue()
        self._ended = self._over = False
        self._file = file
        self._thread = threading.Thread(target=self._run, name="tape", daemon=True)
        self._thread.start()

    def __call__(self, span: TapeSpan) -> None:
        """Take a span, or drop it where the recording has ended."""
        self._taken += 1
        if self._ended:
            self._refused += 1
        elif self._queue.qsize() >= self._max_waiting:
            self._refused += 1
            self._end(EndReason.BEHIND)
        else:
            self._queue.put(span)

    @property
    def dropped(self) -> int:
        """Spans that came and are not in the file; it never goes back."""
        return self._taken - self.written if self._over else self._refused

    def close(self, seconds: float = 5.0) -> None:
        """Write what waits, for that long, and end the file."""
        if not self._ended:
            self._end(EndReason.COMPLETE)
        self._thread.join(seconds)

    def _end(self, reason: EndReason) -> None:
        self._ended = True
        self._queue.put(reason)

    # In the thread.

    def _run(self) -> None:
        try:
            self._write_all(self._file)
        except OSError as error:
            log.warning("recording ended file=%s err=%s", self._file.path, error)
        finally:
            self._ended = self._over = True
            with suppress(OSError):
                self._file.close()
            self._forget_left()

    def _write_all(self, file: LineFile) -> None:
        differences, reason = DeltaEncoding(), EndReason.SIZE
        due = SYSTEM_CLOCK.monotonic() + FLUSH_SECONDS
        while file.size_bytes < self._max_bytes:
            with suppress(queue.Empty):
                item = self._queue.get(timeout=FLUSH_SECONDS)
                if isinstance(item, EndReason):
                    reason = item
                    break
                file.write(line_of(item, differences))
                self.written += 1
            if SYSTEM_CLOCK.monotonic() > due:
                file.flush()
                due = SYSTEM_CLOCK.monotonic() + FLUSH_SECONDS
        self._ended = True
        file.close(SpanLine(END, [reason]))
        if reason is not EndReason.COMPLETE:
            log.warning("recording ended file=%s reason=%s", file.path, reason)

    def _forget_left(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
