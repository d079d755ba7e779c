"""What the operator counts of itself."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from berth.operator.conditions import TYPES, Condition
from berth.operator.kinds import EXPLAIN_API, Key

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class OperatorMetrics:
    """The operator's metrics, and their text."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._reconciles = Counter(
            "berth_operator_reconciles",
            "Schedulers looked at, by result.",
            ["result"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "berth_operator_reconcile_seconds",
            "How long a look took.",
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._applied = Counter(
            "berth_operator_applied", "Objects applied, by kind.", ["kind"], registry=self._registry
        )
        self._conditions = Gauge(
            "berth_operator_scheduler_condition",
            "1 where a Scheduler's condition holds.",
            ["namespace", "name", "type"],
            registry=self._registry,
        )

        self._explain_api = Gauge(
            "berth_operator_explain_api_available",
            "1 while the API server reaches schedulers for explanations; no series where it is not to.",
            ["apiservice"],
            registry=self._registry,
        )

    def explain_api(self, *, available: bool) -> None:
        """Show whether explanations are served through the API server."""
        self._explain_api.labels(EXPLAIN_API).set(available)

    def reconciled(self, result: str, seconds: float) -> None:
        """Count a look."""
        self._reconciles.labels(result).inc()
        self._seconds.observe(seconds)

    def applied(self, kind: str) -> None:
        """Count an object."""
        self._applied.labels(kind).inc()

    def conditions(self, key: Key, found: Iterable[Condition]) -> None:
        """Show a Scheduler's conditions, and none that it has no more."""
        holds = {one.type: one.holds for one in found}
        for kind in TYPES:
            if kind in holds:
                self._conditions.labels(*key, kind).set(holds[kind])
            elif (*key, kind) in self._conditions._metrics:  # noqa: SLF001 (remove() of what is not there raises)
                self._conditions.remove(*key, kind)

    def forget(self, key: Key) -> None:
        """Show a Scheduler no longer."""
        self.conditions(key, ())

    def text(self, _names: Sequence[str] = ()) -> bytes:
        """Give all series."""
        return generate_latest(self._registry)
