"""What parts of the scheduler count and measure, in Prometheus's families."""

from prometheus_client import Counter

from berth.framework.ports.measurements import Measurements
from berth.telemetry.metrics.histogram import Series
from berth.telemetry.metrics.metric_families import Families


class MeasuredFamilies(Measurements):
    """Implements berth.framework.ports.measurements.Measurements. Each series is looked up once."""

    def __init__(self, families: Families) -> None:
        self.use(families)

    def use(self, families: Families) -> None:
        """Count in these families from now on."""
        self._families = families
        self._counters: dict[tuple[str, tuple[str, ...]], Counter | None] = {}
        self._series: dict[tuple[str, tuple[str, ...]], Series | None] = {}

    def exports(self, name: str) -> bool:
        """Whether the followed release has a metric of that name."""
        return name in self._families.labels

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        key = name, labels
        if key not in self._counters:
            self._counters[key] = self._families.counter(name, labels)
        counter = self._counters[key]
        if counter is not None:
            counter.inc(by)

    def observe(self, name: str, value: float, *labels: str, times: int = 1) -> None:
        """Observe a value in a histogram this many times."""
        key = name, labels
        if key not in self._series:
            self._series[key] = self._families.series(name, labels)
        series = self._series[key]
        if series is not None:
            series.observe(value, times)
