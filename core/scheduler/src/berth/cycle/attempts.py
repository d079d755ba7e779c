"""Beginning and ending attempts: each has a record, which its listeners get at the end."""

import random
from collections.abc import Callable

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.clock import Clock, nanoseconds
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import Status

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8


class Attempts(msgspec.Struct, frozen=True):
    """Makes records; `on_record` gets every attempt's once it has ended."""

    clock: Clock
    chance: random.Random
    on_record: Callable[[CycleRecord], None]

    def begin(self, info: QueuedPodInfo, profile: str) -> CycleRecord:
        """The record of an attempt at a popped pod that starts now."""
        now, moment = nanoseconds(), self.clock.monotonic()
        offset = int(self.clock.wall() * 1e9) - now
        arrived = info.timestamp if info.initial_attempt_timestamp is None else info.initial_attempt_timestamp
        trace_id, root_span_id = self.chance.randbytes(TRACE_ID_BYTES), self.chance.randbytes(SPAN_ID_BYTES)
        earlier, info.last_trace = info.last_trace, trace_id + root_span_id
        return CycleRecord(
            pod=info.pod,
            profile=profile,
            attempt=info.attempts,
            trace_id=trace_id,
            root_span_id=root_span_id,
            wall_offset_ns=offset,
            enqueued_ns=now - int((moment - info.timestamp) * 1e9),
            dequeued_ns=now,
            first_enqueued_ns=now - int((moment - arrived) * 1e9),
            rescued_from=frozenset(info.rejectors) if info.was_flushed_from_unschedulable else frozenset(),
            after_flush=info.was_flushed_from_unschedulable,
            earlier=earlier,
        )

    def end(self, record: CycleRecord, status: Status) -> None:
        """The attempt is over; tell of it."""
        record.status = status
        record.result = "scheduled" if status.ok else "unschedulable" if status.rejected else "error"
        record.ended_ns = nanoseconds()
        self.on_record(record)
