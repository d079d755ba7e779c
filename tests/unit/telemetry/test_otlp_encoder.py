"""The bytes that are made from a record are those of its spans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from berth.framework.attempts.cycle_record import Interval
from berth.framework.status import SKIP, SUCCESS, failed, unschedulable
from berth.telemetry.traces.otlp_encoder import MAX_KEPT_CHARACTERS, Envelope, attempt_bytes
from berth.telemetry.traces.sdk_exporter import SdkExporter
from berth.telemetry.traces.spans import EndedCycle
from tests.hostile.work import calls, kept_bytes
from tests.suite import examples
from tests.unit.telemetry.records import interval, make_record, rejected_record, scheduled_record

RESOURCE = {"service.name": "s", "list": (1, 2), "switch": True, "ratio": 0.5}
STATUSES = (None, SUCCESS, SKIP, unschedulable(), unschedulable("no room", "é"), failed("boom"))
VALUES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=200)


class Encoded(SpanExporter):
    """Keeps what the SDK's encoder makes of spans."""

    def export(self, spans):
        self.request = encode_spans(spans)
        return SpanExportResult.SUCCESS


def ours(*cycles):
    """The request of our encoder, decoded."""
    resource = Resource.create(RESOURCE).attributes
    request = Envelope(resource).request([attempt_bytes(cycle) for cycle in cycles])
    return ExportTraceServiceRequest.FromString(request)


def the_sdks(*cycles):
    """The request of the SDK's encoder; what is unset in it is left out."""
    exporter = SdkExporter(encoded := Encoded(), RESOURCE)
    for cycle in cycles:
        exporter.add(cycle)
    exporter.send()
    (group,) = encoded.request.resource_spans
    group.ClearField("schema_url")
    for span in group.scope_spans[0].spans:
        if not span.status.code:
            span.ClearField("status")
    return encoded.request


def of_value(value):
    """A cycle with one span that has an attribute with that value."""
    plugin = Interval("Gpu", 1, 2, 0, {"berth.value": value})
    return EndedCycle(make_record(intervals=[interval("Filter", 0, 1), plugin]), "")


@st.composite
def cycles(draw):
    """Ended cycles whose intervals say all that intervals may say."""
    now, intervals = 1, []
    for index in range(draw(st.integers(0, 6))):
        ended = draw(st.just(0) | st.integers(now, now + 50))
        made = Interval(
            draw(st.text(max_size=5)),
            now,
            ended,
            draw(st.integers(-1, index - 1)),
            draw(st.dictionaries(st.sampled_from(["rejected", "rpc.method", "é"]), VALUES)),
            draw(st.sampled_from([b"", index.to_bytes(8, "big")])),
            draw(st.sampled_from(STATUSES)),
        )
        intervals.append(made)
    record = make_record(
        intervals=intervals,
        root_span_id=draw(st.binary(min_size=8, max_size=8).filter(any)),
        earlier=draw(st.sampled_from([b"", bytes(range(1, 25))])),
        result=draw(st.sampled_from(["scheduled", "unschedulable", "error"])),
    )
    return EndedCycle(record, draw(st.text(max_size=300)))


@settings(max_examples=examples(50))
@given(cycle=cycles())
def test_same_message_as_by_the_sdk(cycle):
    """What is encoded from a record is what OpenTelemetry's encoder makes of its spans."""
    assert the_sdks(cycle) == ours(cycle)


def test_many_attempts_in_one_request():
    """Attempts stand one behind the other under one resource, however long the request is."""
    many = [EndedCycle(scheduled_record(), "x" * 20_000), EndedCycle(rejected_record(), "no room")] * 200

    assert the_sdks(*many) == ours(*many)


@pytest.mark.parametrize("values", [(1, True, 1.0), (0, False, 0.0), ("1", 1), (7, np.int64(7))])
def test_equal_values_of_different_types(values):
    """An integer, a boolean and a float that are equal to Python remain what they are."""
    assert [the_sdks(of_value(value)) for value in values] == [ours(of_value(value)) for value in values]


def test_value_beyond_what_otlp_carries():
    """An integer of more than 64 bits is refused and not cut."""
    with pytest.raises(ValueError, match="int"):
        attempt_bytes(of_value(1 << 63))


def test_spans_that_were_made_before_are_few_calls():
    """A span that says what one before it said is not encoded again: five calls, where encoding takes 30."""
    plugins = [interval(f"plugin-{number}", 5, 6, 1, SKIP) for number in range(200)]
    points = [interval("scheduling cycle", 3, 10), interval("Filter", 4, 8, 0)]
    cycle = EndedCycle(make_record(intervals=points + plugins), "")
    first = calls(lambda: attempt_bytes(cycle))
    again = calls(lambda: attempt_bytes(cycle))

    assert first > 30 * len(plugins)
    assert again < 12 * len(plugins)


def test_words_of_pods_are_not_kept():
    """Long messages and reasons leave nothing behind."""
    words = iter(range(1_000_000))

    def encode():
        for _ in range(50):
            text = f"{next(words)}".rjust(10 * MAX_KEPT_CHARACTERS)
            rejected = interval("Gpu", 4, 5, 0, unschedulable(text))
            attempt_bytes(EndedCycle(make_record(intervals=[interval("Filter", 3, 6), rejected]), text))

    encode()

    assert 50 * MAX_KEPT_CHARACTERS > kept_bytes(encode)
