"""A scheduler's recording under faults: how many events, how large, and whether all is decided again.

API conflicts, lost answers, and watches that break and expire; the scheduler is a process of its own behind
tests/e2e/fault_proxy.py. A configuration with another weight of one plugin is asked about each decision, too.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import click

from berth.config.loading import load
from berth.simulation.comparing.compare import weighed
from berth.simulation.recordings.replay import replay
from berth.simulation.text import replay_lines
from tests.benchmarks.tables import Table
from tests.e2e.recorded_storm import recorded

PODS = 3_600
GOAL_EVENTS = 10_000


def run(options):
    """A row, and an exit code of 1 where something is decided otherwise."""
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        file, faults = asyncio.run(recorded(Path(name), options.pods or PODS))
        size, started = file.stat().st_size, time.process_time()
        found = replay(file)
        seconds = time.process_time() - started
        other = replay(file, weighed(load(None), "NodeResourcesBalancedAllocation", 50))
    table = Table(
        f"replay of a recorded run (to reach: {GOAL_EVENTS:,} events, no difference)",
        ["events", "attempts", "writes", "faults", "differences", "KiB", "CPU s of the replay"],
    )
    counts = [f"{number:,}" for number in (found.events, found.attempts, found.writes, faults.total())]
    table.add(*counts, str(found.different), f"{size >> 10:,}", f"{seconds:.1f}")
    table.show()
    click.echo("".join(f"\n  {fault}: {count}" for fault, count in sorted(faults.items())))
    for line in (*replay_lines(found), "", "with NodeResourcesBalancedAllocation at weight 50:"):
        click.echo(line)
    other.differences = other.differences[:1]
    for line in replay_lines(other):
        click.echo(line)
    if found.different or not other.different:
        sys.exit(1)
