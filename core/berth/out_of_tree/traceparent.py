"""Trace context for calls to plugins: the record's trace, and a span of its own for each call.

Source: W3C Trace Context, https://www.w3.org/TR/trace-context/.
"""

import secrets
from collections.abc import Callable

from berth.framework.cycle_record import CycleRecord

SPAN_ID_BYTES = 8

Metadata = tuple[tuple[str, str], ...]


class CallSpan:
    """A call as a stretch of the cycle, for as long as it is entered.

    Entering gives the metadata that makes the plugin's spans its children.
    """

    __slots__ = ("_index", "_name", "_record", "_sampled")

    def __init__(self, record: CycleRecord | None, name: str, sampled: Callable[[bytes], bool]) -> None:
        self._record = record if record is not None and record.trace_id else None
        self._name = name
        self._sampled = sampled

    def __enter__(self) -> Metadata:
        record = self._record
        if record is None:
            return ()
        self._index = record.begin(self._name)
        span_id = record.intervals[self._index].span_id = secrets.token_bytes(SPAN_ID_BYTES)
        flags = "01" if self._sampled(record.trace_id) else "00"
        return (("traceparent", f"00-{record.trace_id.hex()}-{span_id.hex()}-{flags}"),)

    def __exit__(self, *_: object) -> None:
        if self._record is not None:
            self._record.end(self._index)
