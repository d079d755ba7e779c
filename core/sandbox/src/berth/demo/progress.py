"""How far a run is, read from the scheduler's own metrics."""

from collections import defaultdict
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

PENDING = "scheduler_pending_pods"
ATTEMPTS = "scheduler_schedule_attempts_total"
TRACES = "berth_traces_total"
READ = (PENDING, ATTEMPTS, TRACES)


@dataclass(slots=True)
class Progress:
    """Pods by queue, attempts by profile and result, and traces by what became of them."""

    queues: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    attempts: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    traces: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def bound(self) -> int:
        """How many pods were scheduled so far."""
        return sum(results.get("scheduled", 0) for results in self.attempts.values())

    @property
    def waiting(self) -> int:
        """How many pods are in a queue and will be tried without any event."""
        return self.queues["active"] + self.queues["backoff"]

    def line(self, seconds: float, rate: float) -> str:
        """All of it in one line."""
        queues = " ".join(f"{name}={self.queues[name]}" for name in ("active", "backoff", "unschedulable"))
        profiles = "  ".join(
            f"{profile} {results.get('scheduled', 0)}" for profile, results in sorted(self.attempts.items())
        )
        return f"{seconds:6.1f} s  bound {self.bound:6d}  {rate:6.0f} pods/s  {queues}  |  {profiles}"


def read_progress(metrics: str) -> Progress:
    """Take the numbers out of the metrics' text, which may hold others by the thousand."""
    progress = Progress()
    wanted = (line for line in metrics.splitlines(keepends=True) if line.startswith(READ))
    for family in text_string_to_metric_families("".join(wanted)):
        for sample in family.samples:
            if sample.name == PENDING:
                progress.queues[sample.labels["queue"]] = int(sample.value)
            elif sample.name == TRACES:
                progress.traces[sample.labels["outcome"]] = int(sample.value)
            elif sample.name == ATTEMPTS:
                results = progress.attempts[sample.labels["profile"]]
                results[sample.labels["result"]] = int(sample.value)
    return progress
