"""Attempts are kept by their trace ids, failed and slow ones beside them up to a rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from berth.telemetry.errors import SettingError
from berth.telemetry.traces.sampling import Rate, Sampling
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


def keeping(failed=60, slow=60):
    """Of all attempts none, but so many failed and slow ones."""
    return Sampling(0, Rate(failed), Rate(slow))


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
    """With a rate, failed and slow attempts remain where the ratio leaves all out."""
    assert kept == keeping().keeps(record)


def failing(count, seconds):
    """So many failed attempts, ended in even steps over that time."""
    return [rejected_record(ended_ns=int(1e9 * seconds * n / count)) for n in range(count)]


@pytest.mark.parametrize(("count", "seconds", "kept"), [(10_000, 59, 7), (10_000, 120, 14), (5, 59, 5)])
def test_backlog_stays_under_the_rate(count, seconds, kept):
    """However many pods fail, a minute has at most the rate's number of traces."""
    sampling = keeping(failed=7)

    assert kept == sum(map(sampling.keeps, failing(count, seconds)))
    assert count - kept == sampling.failed.refused


def test_failed_attempts_do_not_hide_slow_ones():
    """Each kind has a rate of its own."""
    sampling = keeping(failed=1)
    for record in failing(10, 1):
        sampling.keeps(record)

    assert sampling.keeps(make_record(cycle_ended_ns=103 * MILLISECOND))


@pytest.mark.parametrize("name", ["always_off", "traceidratio"])
def test_nothing_is_kept_unless_asked_for(monkeypatch, name):
    """With a ratio of 0 failures are kept by a rate that is set, and only by that."""
    off = sampling(monkeypatch, name, "0")
    monkeypatch.setenv("BERTH_TRACES_FAILED_PER_MINUTE", "3")
    asked = sampling(monkeypatch, name, "0")

    assert (False, True) == (off.keeps(rejected_record()), asked.keeps(rejected_record()))


def test_settings_of_the_environment(monkeypatch):
    """The rates and the threshold are variables of their own."""
    monkeypatch.setenv("BERTH_TRACES_SLOW_PER_MINUTE", "1")
    monkeypatch.setenv("BERTH_TRACES_SLOW_SECONDS", "0.01")
    chosen = sampling(monkeypatch, "always_off")
    slow = make_record(cycle_ended_ns=14 * MILLISECOND)

    assert [True, False] == [chosen.keeps(slow), chosen.keeps(slow)]


@pytest.mark.parametrize("argument", ["two", "1.5", "-0.1", "nan"])
def test_ratio_that_is_none(monkeypatch, argument):
    """A ratio is a number from 0 to 1."""
    with pytest.raises(SettingError, match=argument):
        sampling(monkeypatch, "traceidratio", argument)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BERTH_TRACES_FAILED_PER_MINUTE", "6001"),
        ("BERTH_TRACES_SLOW_PER_MINUTE", "1.5"),
        ("BERTH_TRACES_SLOW_SECONDS", "-1"),
    ],
)
def test_rate_that_is_none(monkeypatch, name, value):
    """The error names the variable, what it says, and what it may say."""
    monkeypatch.setenv(name, value)

    with pytest.raises(SettingError, match=f"{name}: '{value}' is not a .*number from 0 to"):
        Sampling.from_environment()
