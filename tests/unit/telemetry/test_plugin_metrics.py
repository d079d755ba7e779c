"""What is counted of plugins in other processes, as Prometheus reads it."""

from berth.telemetry.metrics import SchedulerMetrics
from berth.telemetry.plugin_metrics import PrometheusPluginMetrics


def test_hint_misses_are_there_before_the_first_one():
    """An alert on their increase needs a sample from before it."""
    metrics = SchedulerMetrics()
    counted = PrometheusPluginMetrics(metrics.families)
    read = metrics.registry.get_sample_value
    series = ("berth_plugin_hint_misses_total", {"plugin": "gpu-share"})

    counted.called("gpu-share", "Filter", "ok", 0.001)
    before = read(*series)
    counted.rescued("gpu-share")
    counted.called("gpu-share", "Score", "ok", 0.001)

    assert [0.0, 1.0] == [before, read(*series)]
