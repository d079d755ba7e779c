"""What the operator counts of itself."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from berth.operator.kinds import EXPLAIN_API, SchedulerKey
from berth.operator.reporting.conditions import StatusCondition
from berth.version import version

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class OperatorMetrics:
    """The operator's metrics, and their text."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._shown: dict[SchedulerKey, dict[tuple[str, str], bool]] = {}
        Info("berth_operator", "The operator's version.", registry=self._registry).info(
            {"version": version()}
        )
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
            "1 where a Scheduler's condition holds, by its reason.",
            ["namespace", "name", "type", "reason"],
            registry=self._registry,
        )

        self._explain_api = Gauge(
            "berth_operator_explain_api_unreachable",
            "1 while schedulers are ready and the API server does not reach them for explanations.",
            ["apiservice"],
            registry=self._registry,
        )

    def explain_api(self, *, unreachable: bool) -> None:
        """Show whether the API server does not reach schedulers that are ready."""
        self._explain_api.labels(EXPLAIN_API).set(unreachable)

    def reconciled(self, result: str, seconds: float) -> None:
        """Count a look."""
        self._reconciles.labels(result).inc()
        self._seconds.observe(seconds)

    def applied(self, kind: str) -> None:
        """Count an object."""
        self._applied.labels(kind).inc()

    def conditions(self, key: SchedulerKey, found: Iterable[StatusCondition]) -> None:
        """Show a Scheduler's conditions, and none that it has no more."""
        shown = {(one.type, one.reason): one.holds for one in found}
        for kind, reason in self._shown.pop(key, {}).keys() - shown.keys():
            self._conditions.remove(*key, kind, reason)
        for (kind, reason), holds in shown.items():
            self._conditions.labels(*key, kind, reason).set(holds)
        if shown:
            self._shown[key] = shown

    def forget(self, key: SchedulerKey) -> None:
        """Show a Scheduler no longer."""
        self.conditions(key, ())

    def text(self, _names: Sequence[str] = ()) -> bytes:
        """Give all series."""
        return generate_latest(self._registry)
