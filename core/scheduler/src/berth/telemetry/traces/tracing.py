"""Traces of finished cycles, for the process that schedules.

`on_record` is all that the loop pays for: a decision whether the cycle is kept and one append for each
exporter. Threads of `export_queue` do the rest.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from berth.framework.attempts.cycle_record import CycleRecord
from berth.telemetry.traces.export_queue import CLOSE_SECONDS, ExportQueue, Sink
from berth.telemetry.traces.sampling import Sampling
from berth.telemetry.traces.spans import EndedCycle
from berth.telemetry.traces.trace_file import TraceFile
from berth.version import version

SERVICE_NAME = "berth-scheduler"

_OTLP_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Tracing:
    """Turns records into traces; without sinks it does nothing."""

    def __init__(
        self,
        sinks: Sequence[Sink] = (),
        *,
        sampling: Sampling | None = None,
    ) -> None:
        self.sampling = Sampling() if sampling is None else sampling
        self._queues = [ExportQueue(sink) for sink in sinks]

    @classmethod
    def from_environment(cls, trace_file: str | Path | None = None) -> "Tracing":
        """What the OTEL_* variables and BERTH_TRACE_FILE ask for; `trace_file` overrides the latter.

        OTLP is used where OTEL_TRACES_EXPORTER names it or an endpoint is set.

        Raises: SettingError, TraceFileError.
        """
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return cls()
        sampling = Sampling.from_environment()
        names, path = exporter_names(), trace_file or os.environ.get("BERTH_TRACE_FILE")
        if not names and not path:
            return cls(sampling=sampling)
        resource = resource_from_environment()
        sinks: list[Sink] = [_exporter(name, resource) for name in names]
        if path:
            sinks.append(TraceFile(path, resource))
        return cls(sinks, sampling=sampling)

    @property
    def enabled(self) -> bool:
        """Whether traces go anywhere."""
        return bool(self._queues)

    @property
    def exported(self) -> int:
        """Traces that every exporter, taken together, has taken so far."""
        return sum(queue.exported for queue in self._queues)

    @property
    def dropped(self) -> int:
        """Traces lost because an exporter fell behind."""
        return sum(queue.dropped for queue in self._queues)

    @property
    def failed(self) -> int:
        """Traces that an exporter could not get rid of."""
        return sum(queue.failed for queue in self._queues)

    @property
    def over_rate(self) -> int:
        """Failed and slow attempts that were not kept, because their minute had enough of them."""
        return self.sampling.failed.refused + self.sampling.slow.refused

    def sampled(self, trace_id: bytes) -> bool:
        """Whether the trace is certain to be exported: the flag in the `traceparent` that sidecars see."""
        return self.enabled and self.sampling.sampled(trace_id)

    def on_record(self, record: CycleRecord) -> None:
        """Take a finished cycle; never waits."""
        if not self._queues or not self.sampling.keeps(record):
            return
        record.traced = True
        status = record.status
        cycle = EndedCycle(record, "" if status is None or status.ok else status.message)
        for queue in self._queues:
            queue.offer(cycle)

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Export what is waiting; whether all of it was in time. Units: seconds for each exporter."""
        closed = [queue.close(timeout_seconds) for queue in self._queues]
        return all(closed)


def resource_from_environment() -> dict[str, Any]:
    """Who we are, by OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME; an instance without a name gets one."""
    found = {
        "service.name": SERVICE_NAME,
        "service.version": version(),
        "service.instance.id": str(uuid4()),
    }
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, equals, value = pair.partition("=")
        if equals:
            found[key.strip()] = unquote(value.strip())
    if name := os.environ.get("OTEL_SERVICE_NAME"):
        found["service.name"] = name
    return found


def exporter_names() -> list[str]:
    """The exporters that the OTEL_* variables ask for, besides a trace file."""
    asked = os.environ.get("OTEL_TRACES_EXPORTER")
    if asked is None:
        return ["otlp"] if any(os.environ.get(each) for each in _OTLP_ENDPOINTS) else []
    return [name for each in asked.split(",") if (name := each.strip()) and name != "none"]


def _exporter(name: str, resource: Mapping[str, Any]) -> Sink:
    from berth.telemetry.traces.sdk_exporter import sink  # noqa: PLC0415 - a slow import, and files do without

    return sink(name, resource)
