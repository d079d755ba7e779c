"""An OTLP collector on a port of its own, which keeps the spans that it is sent."""

from collections.abc import Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from typing import Any, NamedTuple

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc


class Collected(NamedTuple):
    """A span, with ids in hex; `service` is who wrote it, `links` are of (trace, span).

    `failure` is the text of a span that failed, None of others.
    Units: nanoseconds since the epoch for `ended`.
    """

    service: str
    trace: str
    span: str
    parent: str
    name: str
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    links: Sequence[tuple[str, str]]
    failure: str | None
    ended: int


def plain(attributes):
    """OTLP's attributes as a dictionary."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class Collector(service_grpc.TraceServiceServicer):
    """Keeps spans in the order in which they come."""

    def __init__(self):
        self.spans = []
        self.endpoint = ""

    def Export(self, request, _context):  # noqa: N802 - the generated servicer's name
        for each in request.resource_spans:
            resource = plain(each.resource.attributes)
            for span in (span for scope in each.scope_spans for span in scope.spans):
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
                failed = span.status.code == span.status.STATUS_CODE_ERROR
                failure = span.status.message if failed else None
                reported = plain(span.attributes), resource, links, failure, span.end_time_unix_nano
                self.spans.append(Collected(resource["service.name"], *ids, span.name, *reported))
        return service.ExportTraceServiceResponse()


@contextmanager
def collecting():
    """A collector at work."""
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service_grpc.add_TraceServiceServicer_to_server(collector, server)
    collector.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()
