"""A thousand groups that wait, and an event that frees one: attempts made, hints asked, and CPU.

In one process and in virtual time, on the scheduler's real core: what is counted is exact, CPU is this
machine's. Each gang asks for a node of its own; the event is the node that one of them asks for. A group that
failed rests, and is tried at its turn whatever happens (docs/decisions/0011-groups-rest.md). Counted: a turn
in which nothing happens, the moment of the event, and what follows up to the binding of the last pod:
here a whole turn, since the event comes right after one.
"""

import asyncio
import re
import time

from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from tests.benchmarks.tables import Table
from tests.scenarios.pod_groups.kit import GANG, Groups

GROUPS = 1_000
SIZE = 2
SETTLE_SECONDS = 31
"""By then each has been tried a few times, a moment ago, and backs off for the longest time, ten seconds."""
TURN_SECONDS = 11
FREED = "g500"
RELEASES = ((1, 36), (1, 37))
ATTEMPTS = "scheduler_schedule_attempts_total"
OF_GROUPS = "scheduler_podgroup_schedule_attempts_total"
HINTS = "scheduler_queueing_hint_execution_duration_seconds_count"


def run(options):
    """One table."""
    table = Table(
        f"{GROUPS:,} gangs of {SIZE} that wait, and the node that one of them asks for",
        ["release", "what", "attempts at groups", "at pods", "hints asked", "CPU ms", "virtual s"],
    )
    for release in RELEASES:
        for _ in range(options.rounds or 1):
            with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
                for name, counts in runner.run(measured(release)):
                    table.add(".".join(map(str, release)), name, *counts)
    table.show()


async def measured(release):
    """A turn in which nothing happens, the moment of the event, and what comes up to the bindings."""
    cluster = Groups(release=release, gates=GANG if release == (1, 36) else {"GenericWorkload": True})
    cluster.add_node("n0")
    for i in range(GROUPS):
        names = [f"g{i}-{j}" for j in range(SIZE)]
        cluster.add_gang(SIZE, *names, group=f"g{i}", node_selector={"gang": f"g{i}"})
    await cluster.tick(SETTLE_SECONDS)
    found = []
    before = _counts(cluster)
    await cluster.tick(TURN_SECONDS)
    found.append(("a turn in which nothing happens", _since(cluster, before)))
    before = _counts(cluster)
    cluster.add_node("n1", labels={"gang": FREED})
    await cluster.tick(0.1)
    found.append(("the event", _since(cluster, before)))
    before = _counts(cluster)
    while len(cluster.bound) < SIZE:
        await cluster.tick(0.1)
    found.append(("up to the bindings", _since(cluster, before)))
    return found


def _counts(cluster):
    text = cluster.metrics.text().decode()
    sums = [
        sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))
        for name in (OF_GROUPS, ATTEMPTS, HINTS)
    ]
    return [*sums, 1e3 * time.process_time(), cluster.clock.monotonic()]


def _since(cluster, before):
    return [now - then for now, then in zip(_counts(cluster), before, strict=True)]
