"""What tracing costs an attempt: the scheduling loop's share, and all of it up to a collector's receipt.

The attempt is one of the default profile with two calls of a plugin in it. Time is CPU: of the thread, and of
the whole process where a trace is sent to a collector, which is a process of its own.
"""

import asyncio
import multiprocessing
import os
import time
from concurrent import futures
from contextlib import contextmanager
from unittest.mock import patch

import grpc
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc
from opentelemetry.sdk.trace.export import SpanExportResult

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import nanoseconds
from berth.framework.status import SUCCESS
from berth.out_of_tree.transport.call_attributes import rpc_outcome, rpc_request
from berth.out_of_tree.transport.traceparent import CallSpan
from berth.telemetry.traces.otlp import OtlpExporter
from berth.telemetry.traces.otlp_encoder import attempt_bytes
from berth.telemetry.traces.sampling import Sampling
from berth.telemetry.traces.sdk_exporter import SdkExporter
from berth.telemetry.traces.spans import EndedCycle
from berth.telemetry.traces.tracing import Tracing, resource_from_environment
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.tables import timed as timed_each
from tests.benchmarks.workloads import Core, pod_template, read_pod

NODES = 1_000
UNSAMPLED_GOAL, SAMPLED_GOAL = 10, 150
CALLS = ("FilterScore", "Reserve")
ADDRESS = "unix:/run/berth/plugin.sock"
NONE, ALL = 0, 1 << 64
HALF_A_SECOND = 150
"""How many attempts an export takes where 300 a second are made."""


class Nowhere:
    """A sink that drops what it gets, at the price of nothing."""

    def add(self, cycle):
        return bool(cycle)

    def send(self):
        return True

    def close(self):
        """Nothing is open."""


def run(options):
    """Rows of the loop, with sampling and without, of the export's parts, and of a sampled attempt in all."""
    count = options.rounds or 2_000
    table = Table(
        f"tracing, CPU µs an attempt (to reach: {UNSAMPLED_GOAL} unsampled, {SAMPLED_GOAL} sampled in all)",
        ["part", "p50", "p90", "p99"],
    )
    records = asyncio.run(decided(count))
    for name, bound in (("loop, unsampled", NONE), ("loop, sampled", ALL)):
        table.add(name, *of_the_loop(records, bound))
    for record in records:
        call_plugin(record, lambda _: True)
    table.add("encoding of a sampled one", *timed_each(records, encoding))
    table.add("  by the SDK's encoder", *timed_each(records, encoding_by_the_sdk()))
    table.add("a sampled one in all, sent", *of_all(records))
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
        call_plugin(record, tracing.sampled)
        tracing.on_record(record)
        taken.append((time.thread_time() - begun) * 1e6)
        del record.intervals[known:]
    tracing.close()
    return quantiles(taken, 0.5, 0.9, 0.99)


def call_plugin(record, sampled):
    """The calls' spans and traceparents."""
    for method in CALLS:
        about = rpc_request(ADDRESS, method)
        with CallSpan(record, f"plugin {method}", sampled, about, rpc_outcome):
            pass


def encoding(record):
    """What turns one record into OTLP's bytes."""
    attempt_bytes(EndedCycle(record, ""))


def encoding_by_the_sdk():
    """The same by OpenTelemetry's own spans and encoder."""
    exporter = SdkExporter(Encoding(), resource_from_environment())

    def encode(record):
        exporter.add(EndedCycle(record, ""))
        exporter.send()

    return encode


class Encoding:
    """An exporter that encodes spans and sends nothing."""

    def export(self, spans):
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


def of_all(records):
    """All that a traced attempt costs the process: the loop's part, encoding, threads, gRPC."""
    taken, spans = [], 0
    with collector() as (endpoint, received), patch.dict(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint):
        tracing = Tracing([OtlpExporter(resource_from_environment())], sampling=Sampling(ALL))
        for begin in range(0, len(records) - HALF_A_SECOND + 1, HALF_A_SECOND):
            some = records[begin : begin + HALF_A_SECOND]
            for record in some:
                del record.intervals[-len(CALLS) :]
            begun = time.process_time()
            for record in some:
                call_plugin(record, tracing.sampled)
                tracing.on_record(record)
            while tracing.exported < begin + len(some):
                time.sleep(0.05)
            taken.append((time.process_time() - begun) / len(some) * 1e6)
            spans += sum(len(record.intervals) + 2 for record in some)
        tracing.close()
        if received() != spans:
            raise SystemExit(f"{received()} of {spans} spans were received")
    return quantiles(taken[1:] or taken, 0.5, 0.9, 0.99)


@contextmanager
def collector():
    """A collector's endpoint, and what says how many spans it has received."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=collect, args=(theirs,), daemon=True)
    process.start()

    def received():
        ours.send(None)
        return ours.recv()

    try:
        yield ours.recv(), received
    finally:
        process.terminate()
        process.join()


def collect(pipe):
    """Receive spans on a port of our own, and count them."""
    counting = Counting()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    service_grpc.add_TraceServiceServicer_to_server(counting, server)
    pipe.send(f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    server.start()
    while True:
        pipe.recv()
        pipe.send(counting.spans)


class Counting(service_grpc.TraceServiceServicer):
    """Counts the spans that it is sent."""

    def __init__(self):
        self.spans = 0

    def Export(self, request, _context):  # noqa: N802 - the generated servicer's name
        for each in request.resource_spans:
            self.spans += sum(len(scope.spans) for scope in each.scope_spans)
        return service.ExportTraceServiceResponse()
