"""Histograms, held against those of prometheus_client."""

import prometheus_client as prometheus
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.telemetry.metrics.histogram import Histogram

prometheus.disable_created_metrics()  # as the scheduler does

BOUNDS = (0.001, 0.002, 0.5, 1.0)
VALUES = st.floats(0, 2) | st.sampled_from(BOUNDS)


def shown(collector):
    registry = prometheus.CollectorRegistry()
    registry.register(collector)
    return prometheus.generate_latest(registry)


def theirs(labels):
    return prometheus.Histogram("seconds", "How long.", labels, registry=None, buckets=BOUNDS)


@given(st.lists(st.tuples(st.sampled_from("ab"), VALUES)))
def test_exposition_with_labels(observations):
    """What is shown is what prometheus_client's histogram shows after the same observations."""
    ours, known = Histogram("seconds", "How long.", ("kind",), BOUNDS), theirs(("kind",))
    for kind, value in observations:
        ours.labels(kind).observe(value)
        known.labels(kind).observe(value)

    assert shown(known) == shown(ours)


@given(st.lists(VALUES))
def test_exposition_without_labels(values):
    """A family without labels is shown from the start, with zeros."""
    ours, known = Histogram("seconds", "How long.", (), BOUNDS), theirs(())
    for value in values:
        ours.observe(value)
        known.observe(value)

    assert shown(known) == shown(ours)


def test_label_values_are_counted():
    """A series needs a value for each label."""
    with pytest.raises(ValueError, match="seconds has the labels"):
        Histogram("seconds", "How long.", ("kind",), BOUNDS).labels("a", "b")
