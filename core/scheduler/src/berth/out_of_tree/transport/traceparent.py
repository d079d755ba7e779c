"""Trace context for calls to plugins: the record's trace, and a span of its own for each call.

Source: W3C Trace Context, https://www.w3.org/TR/trace-context/.
"""

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.clock import nanoseconds
from berth.framework.status import failed

SPAN_ID_BYTES = 8

# A system call for each would release the GIL in the middle of a scheduling cycle.
_random_bytes = random.Random().randbytes

Metadata = tuple[tuple[str, str], ...]

R = TypeVar("R")

Outcome = Callable[[BaseException | None], Mapping[str, str | int]]
"""The attributes that say how a call ended."""


class CallSpan:
    """The span of a call, a child of the cycle's.

    Entering gives the metadata that makes the plugin's spans its children. `attributes` say what is called,
    `outcome` how it ended. It ends when the response arrives, however late that is awaited.
    """

    __slots__ = (
        "_answer",
        "_answered_ns",
        "_attributes",
        "_index",
        "_name",
        "_outcome",
        "_record",
        "_sampled",
        "metadata",
    )

    def __init__(
        self,
        record: CycleRecord | None,
        name: str,
        sampled: Callable[[bytes], bool],
        attributes: Mapping[str, str | int],
        outcome: Outcome,
    ) -> None:
        self._record = record if record is not None and record.trace_id else None
        self._name = name
        self._sampled = sampled
        self._attributes = attributes
        self._outcome = outcome
        self._answer: object = None
        self._answered_ns = 0
        self.metadata: Metadata = ()

    def __enter__(self) -> Metadata:
        record = self._record
        if record is None:
            return self.metadata
        self._index = record.begin(self._name)
        interval = record.intervals[self._index]
        interval.attributes.update(self._attributes)
        span_id = interval.span_id = _random_bytes(SPAN_ID_BYTES)
        flags = "01" if self._sampled(record.trace_id) else "00"
        self.metadata = (("traceparent", f"00-{record.trace_id.hex()}-{span_id.hex()}-{flags}"),)
        return self.metadata

    def until(self, answer: Awaitable[R]) -> Awaitable[R]:
        """Await the response to the call, or to its retry; the span ends with that."""
        if self._record is None or hasattr(answer, "answered_ns"):
            self._answer = answer
            return answer
        return self._timed(answer)

    async def _timed(self, answer: Awaitable[R]) -> R:
        try:
            return await answer
        finally:
            self._answered_ns = nanoseconds()

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if self._record is None:
            return
        # An exception that ends a coroutine or a task has no text.
        status = None if error is None else failed(str(error) or "cancelled")
        self._record.end(self._index, status, **self._outcome(error))
        if answered_ns := getattr(self._answer, "answered_ns", self._answered_ns):
            self._record.intervals[self._index].ended_ns = answered_ns
