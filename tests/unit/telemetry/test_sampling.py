"""Failed and slow cycles are kept, others by their trace id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from berth.telemetry.errors import SettingError
from berth.telemetry.sampling import Sampling
from tests.unit.telemetry.records import MILLISECOND, make_record, rejected_record, scheduled_record

LOW, HIGH = bytes(16), b"\xff" * 16


def sampling(monkeypatch, name, argument=None):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", name)
    if argument is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    return Sampling.from_environment()


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("always_on", None, (True, True)),
        ("parentbased_always_on", None, (True, True)),
        ("always_off", None, (False, False)),
        ("traceidratio", "0.5", (True, False)),
        ("parentbased_traceidratio", "0.5", (True, False)),
        ("parentbased_traceidratio", "0", (False, False)),
        ("parentbased_traceidratio", None, (True, True)),
    ],
)
def test_samplers(monkeypatch, name, argument, expected):
    """Each standard sampler keeps the low and the high ids that it should."""
    chosen = sampling(monkeypatch, name, argument)

    assert expected == (chosen.sampled(LOW), chosen.sampled(HIGH))


@given(trace_id=st.binary(min_size=16, max_size=16), ratio=st.floats(0, 1))
def test_ratio_is_opentelemetrys(trace_id, ratio):
    """A process that samples with the SDK by the same ratio comes to the same decision."""
    sdk = TraceIdRatioBased(ratio).should_sample(None, int.from_bytes(trace_id, "big"), "x").decision

    assert (sdk is Decision.RECORD_AND_SAMPLE) == Sampling(round(ratio * 2**64)).sampled(trace_id)


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        pytest.param(scheduled_record(), False, id="quick and scheduled"),
        pytest.param(rejected_record(), True, id="did not fit"),
        pytest.param(make_record(result="error"), True, id="broke"),
        pytest.param(make_record(cycle_ended_ns=103 * MILLISECOND), True, id="slow cycle"),
        pytest.param(
            make_record(cycle_ended_ns=5 * MILLISECOND, ended_ns=10**12), False, id="slow binding alone"
        ),
    ],
)
def test_what_stands_out_is_kept(record, kept):
    """With a ratio of 0 it is the failed and the slow cycles that remain."""
    assert kept == Sampling(0).keeps(record)


def test_always_off_is_off(monkeypatch):
    """Whoever turns sampling off gets nothing, failures included."""
    assert not sampling(monkeypatch, "always_off").keeps(rejected_record())


@pytest.mark.parametrize("argument", ["two", "1.5", "-0.1", "nan"])
def test_ratio_that_is_none(monkeypatch, argument):
    """A ratio is a number from 0 to 1."""
    with pytest.raises(SettingError, match=argument):
        sampling(monkeypatch, "traceidratio", argument)
