"""What tracing costs an attempt: the scheduling loop's share of it, and the export thread's.

The attempt is one of the default profile with two calls of a plugin in it. Time is the CPU of the thread.
"""

import asyncio
import time

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace.export import SpanExportResult

from berth.framework.attempt import Attempt
from berth.framework.clock import nanoseconds
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.framework.status import SUCCESS
from berth.out_of_tree.transport.call_attributes import rpc_outcome, rpc_request
from berth.out_of_tree.transport.traceparent import CallSpan
from berth.telemetry.otlp import request_of
from berth.telemetry.sampling import Sampling
from berth.telemetry.sdk_exporter import SdkExporter
from berth.telemetry.spans import EndedCycle, spans_of
from berth.telemetry.tracing import Tracing, resource_from_environment
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.tables import timed as timed_each
from tests.benchmarks.workloads import Core, pod_template, read_pod

NODES = 1_000
UNSAMPLED_GOAL, SAMPLED_GOAL = 10, 150
CALLS = ("FilterScore", "Reserve")
ADDRESS = "unix:/run/berth/plugin.sock"
NONE, ALL = 0, 1 << 64


class Nowhere:
    """A sink that drops what it gets, at the price of nothing."""

    def export(self, spans):
        return bool(spans)

    def close(self):
        """Hold nothing."""


def run(options):
    """A row without sampling, one with, one for the export; beside them what the issue asks for."""
    count = options.rounds or 2_000
    table = Table(
        f"tracing, CPU µs an attempt (to reach: {UNSAMPLED_GOAL} unsampled, {SAMPLED_GOAL} sampled in all)",
        ["part", "p50", "p90", "p99"],
    )
    records = asyncio.run(decided(count))
    for name, bound in (("loop, unsampled", NONE), ("loop, sampled", ALL)):
        table.add(name, *of_the_loop(records, bound))
    table.add("export of a sampled one", *timed_each(records, exporting()))
    table.add("  by the SDK's encoder", *timed_each(records, exporting_by_the_sdk()))
    table.show()


async def decided(count):
    """Records of attempts that were decided on, ended and not yet traced."""
    core, template = Core.of(NODES), pod_template()
    records = []
    for number in range(count):
        pod = read_pod(template.bytes(number + 1))
        trace_id = number.to_bytes(8, "big") * 2
        record = CycleRecord(pod, "default-scheduler", 1, trace_id, trace_id[:8], 0, 1, nanoseconds())
        state = CycleState()
        state.write(CycleRecord, record)
        record.begin_phase("scheduling cycle")
        decision = await core.algorithm.decide(core.framework, Attempt(pod, core.snapshot, state, record))
        record.end(record.phase, SUCCESS)
        record.node_name, record.status, record.result = decision.node_name, SUCCESS, "scheduled"
        record.cycle_ended_ns = record.ended_ns = nanoseconds()
        records.append(record)
    return records


def of_the_loop(records, bound):
    """What the loop pays: two calls' spans and traceparents, and the decision whether to keep the trace."""
    tracing = Tracing([Nowhere()], sampling=Sampling(bound))
    taken = []
    for record in records:
        begun, known = time.thread_time(), len(record.intervals)
        for method in CALLS:
            about = rpc_request(ADDRESS, method)
            with CallSpan(record, f"plugin {method}", tracing.sampled, about, rpc_outcome):
                pass
        tracing.on_record(record)
        taken.append((time.thread_time() - begun) * 1e6)
        del record.intervals[known:]
    tracing.close()
    return quantiles(taken, 0.5, 0.9, 0.99)


def exporting():
    """What turns one record into spans and those into OTLP's bytes."""
    resource = resource_from_environment()

    def export(record):
        request_of(spans_of(EndedCycle(record, ""), resource), resource).SerializeToString()

    return export


def exporting_by_the_sdk():
    """The same by OpenTelemetry's own spans and encoder."""
    resource = resource_from_environment()
    kept = SdkExporter(Encoding(), resource)

    def export(record):
        kept.export(spans_of(EndedCycle(record, ""), resource))

    return export


class Encoding:
    """An exporter that encodes spans and sends nothing."""

    def export(self, spans):
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS
