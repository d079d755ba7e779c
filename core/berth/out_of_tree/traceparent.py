"""Trace context for calls to plugins: the record's trace, and a span of its own for each call.

Source: W3C Trace Context, https://www.w3.org/TR/trace-context/.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from berth.framework.cycle_record import CycleRecord

SPAN_ID_BYTES = 8

Metadata = tuple[tuple[str, str], ...]


@contextmanager
def call_span(record: CycleRecord | None, name: str, sampled: Callable[[bytes], bool]) -> Iterator[Metadata]:
    """Record a call as a stretch of the cycle; the metadata that makes the plugin's spans its children."""
    if record is None or not record.trace_id:
        yield ()
        return
    index = record.begin(name)
    span_id = secrets.token_bytes(SPAN_ID_BYTES)
    record.intervals[index].span_id = span_id
    flags = "01" if sampled(record.trace_id) else "00"
    try:
        yield (("traceparent", f"00-{record.trace_id.hex()}-{span_id.hex()}-{flags}"),)
    finally:
        record.end(index)
