"""What is counted of sidecars, as Prometheus reads it."""

import pytest

from berth.telemetry.metrics.registry import SchedulerMetrics
from tests.failures.reporting import reports


@reports("score-ignored", metric="`berth_plugin_failures_ignored_total`")
@pytest.mark.parametrize(
    ("name", "labels", "count"),
    [
        ("berth_plugin_hint_misses_total", {}, lambda counted: counted.rescued("gpu-share")),
        ("berth_plugin_requeues_total", {}, lambda counted: counted.requeued("gpu-share")),
        (
            "berth_plugin_failures_ignored_total",
            {"extension_point": "score"},
            lambda counted: counted.ignored("gpu-share", "score"),
        ),
    ],
    ids=["hint misses", "requeues", "failures ignored"],
)
def test_a_plugins_series_begin_at_zero(name, labels, count):
    """An alert on their increase needs a sample from before the first one."""
    metrics = SchedulerMetrics()
    counted = metrics.plugins
    read = metrics.registry.get_sample_value
    series = (name, {"plugin": "gpu-share", **labels})

    counted.called("gpu-share", "Filter", "ok", 0.001)
    before = read(*series)
    count(counted)
    counted.called("gpu-share", "Score", "ok", 0.001)

    assert [0.0, 1.0] == [before, read(*series)]


def test_nodes_rejected_by_a_shadow_begin_at_zero():
    metrics = SchedulerMetrics()
    counted = metrics.plugins

    counted.compared("gpu-share", "default-scheduler", "same", 0)

    labels = {"plugin": "gpu-share", "profile": "default-scheduler"}
    name = "berth_plugin_shadow_nodes_rejected_total"
    assert 0.0 == metrics.registry.get_sample_value(name, labels)
