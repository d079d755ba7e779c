"""What a scheduler says that can't begin, because a kind is not listed."""

import asyncio
from types import SimpleNamespace

from berth.scheduler.watching.first_sync import FirstSync
from berth.telemetry.metrics.registry import SchedulerMetrics
from tests.failures.reporting import reports


def mirror(plural, error="", *, errors=0, synced=False):
    """Stands for a reflector, as far as it is looked at."""
    event = asyncio.Event()
    if synced:
        event.set()
    return SimpleNamespace(
        synced=event,
        last_error=error,
        statistics=SimpleNamespace(errors=errors),
        source=SimpleNamespace(resource=SimpleNamespace(plural=plural)),
    )


@reports(
    "not-listed",
    metric="`berth_watch_errors_total` by kind",
    answer="`/readyz/sched-handler-sync`: each kind that is not listed and its cause",
)
def test_kinds_that_are_not_listed():
    """The health check names each kind that is waited for, and what the API server said."""
    mirrors = [
        mirror("pods", synced=True),
        mirror("nodes", "403 Forbidden: no right to list", errors=3),
        mirror("services"),
    ]
    first_sync = FirstSync(mirrors, None, None, None)
    text = (
        "handlers are not fully synchronized, not listed: nodes (403 Forbidden: no right to list), services"
    )

    assert text == first_sync.check()
    assert {"pods": 0.0, "nodes": 3.0, "services": 0.0} == first_sync.errors()
    metrics = SchedulerMetrics()
    metrics.watch_watches(first_sync.errors)
    assert b'berth_watch_errors_total{resource="nodes"} 3.0' in metrics.text()
    first_sync.synced.set()
    assert "" == first_sync.check()
