"""The spans of calls, held against those that the OpenTelemetry SDK records itself."""

import json

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from berth_sdk.tracing import Tracing

TRACEPARENT = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03")
NOT_SAMPLED = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
FAILED = "the plugin is at a loss"


def recorded(work, metadata, **environment):
    """The span that a call's work leaves behind, without what differs from call to call."""
    exporter = InMemorySpanExporter()
    with pytest.MonkeyPatch.context() as patch:
        for key, value in environment.items():
            patch.setenv(key, value)
        tracing = Tracing("passes", "1", [exporter])
    try:
        with tracing.span("passes/Filter", metadata) as span:
            assert trace.get_current_span() is span
            work(span)
    except ValueError as error:
        assert str(error) == FAILED  # noqa: PT017 - both ways of recording let it through
    tracing.shutdown()
    (ended,) = exporter.get_finished_spans()
    assert 0 < ended.start_time <= ended.end_time
    reported = json.loads(ended.to_json())
    for event in reported["events"]:
        del event["timestamp"], event["attributes"]["exception.stacktrace"]
    del reported["start_time"], reported["end_time"], reported["context"]["span_id"]
    return reported | {"scope": ended.instrumentation_scope.name}


def nothing(span):
    assert span.is_recording()


def attributes(span):
    span.set_attributes({"plain": 1, "text": "a", "list": [1, 2], "no value": {"a": 1}})
    span.set_attribute("ratio", 0.5)
    span.update_name("another")


def failing(span):
    span.set_attribute("before", True)
    raise ValueError(FAILED)


def with_status(span):
    span.set_status(trace.StatusCode.ERROR, "in words")


@pytest.mark.parametrize("work", [nothing, attributes, failing, with_status])
def test_the_sdk_s_own_span(work):
    """A sampled call's span is the one that the SDK's tracer records."""
    own = recorded(work, [TRACEPARENT], OTEL_TRACES_SAMPLER="parentbased_always_off")

    assert own == recorded(work, [TRACEPARENT])


def test_children_find_their_parent():
    """What a plugin's author records within a call belongs to the call's span."""
    tracing = Tracing("passes", "1", [InMemorySpanExporter()])
    with tracing.span("passes/Filter", [TRACEPARENT]) as span:
        child = tracing._provider.get_tracer("author").start_span("lookup")
        assert span.get_span_context() == child.parent
        child.end()
    tracing.shutdown()

    assert not span.is_recording()


@pytest.mark.parametrize("sampler", [None, "parentbased_always_off"], ids=["our own", "the SDK's"])
def test_a_trace_that_is_not_sampled(monkeypatch, sampler):
    """What the author records within the call is of the same trace, and not sampled either."""
    if sampler is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    tracing = Tracing("passes", "1", [exporter := InMemorySpanExporter()])
    outside = trace.get_current_span()
    with tracing.span("passes/Filter", [NOT_SAMPLED]) as span:
        assert trace.get_current_span() is span
        context = span.get_span_context()
        child = tracing._provider.get_tracer("author").start_span("lookup")
        assert not child.is_recording()
    tracing.shutdown()

    assert trace.get_current_span() is outside
    assert (int(NOT_SAMPLED[1].split("-")[1], 16), False) == (context.trace_id, context.trace_flags.sampled)
    assert context.trace_id == child.get_span_context().trace_id
    assert () == exporter.get_finished_spans()


def test_ended_once():
    """A span that its author ends is not exported again as it is left."""
    exporter = InMemorySpanExporter()
    tracing = Tracing("passes", "1", [exporter])
    with tracing.span("passes/Filter", [TRACEPARENT]) as span:
        span.end()
    tracing.shutdown()

    assert 1 == len(exporter.get_finished_spans())


@pytest.mark.parametrize(
    "traceparent",
    [
        pytest.param("00-" + "0" * 32 + "-b7ad6b7169203331-01", id="no trace"),
        pytest.param("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", id="not sampled"),
        pytest.param("nonsense", id="nonsense"),
        pytest.param("", id="empty"),
    ],
)
def test_not_recorded(traceparent):
    """Calls of no sampled trace leave nothing behind."""
    exporter = InMemorySpanExporter()
    tracing = Tracing("passes", "1", [exporter])
    with tracing.span("passes/Filter", [("traceparent", traceparent)]) as span:
        assert not span.is_recording()
    tracing.shutdown()

    assert () == exporter.get_finished_spans()
