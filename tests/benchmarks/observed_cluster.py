"""Pods that are created all at once, recorded from outside: how many decisions Berth would take otherwise.

With kube-scheduler, where its program is at hand ($KUBE_SCHEDULER), and with Berth.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from berth.config.loading import load
from berth.observer.replay import replay_observed
from tests.benchmarks.tables import Table
from tests.e2e.default_cluster import BERTH
from tests.e2e.observed_cluster import observed
from tests.kube_scheduler import kube_scheduler

PODS = 200


def run(options):
    """A row for each scheduler, and an exit code of 1 where anything is decided otherwise."""
    found, program = [], kube_scheduler()
    table = Table(
        "replay of a cluster recorded from outside (to reach: no difference)",
        ["scheduler", "events", "decisions", "different", "KiB", "CPU s of the replay"],
    )
    for name, scheduler in (("kube-scheduler", (program,)), ("berth", BERTH)):
        if scheduler == (None,):
            continue
        with tempfile.TemporaryDirectory(prefix="berth-") as folder:
            file = asyncio.run(observed(Path(folder), scheduler, options.pods or PODS, in_turn=False))
            started = time.process_time()
            found.append(replay_observed(file, load(None)))
            seconds, size = time.process_time() - started, file.stat().st_size >> 10
        counts = (str(each) for each in (found[-1].events, found[-1].compared, found[-1].different, size))
        table.add(name, *counts, f"{seconds:.1f}")
    table.show()
    if any(each.different for each in found):
        sys.exit(1)
