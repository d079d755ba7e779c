"""How soon a pod that fits nowhere is on a node after the event that makes it fit (goal: within a second).

Real processes over HTTP, as in tests/e2e; from the answer to the write that helps to the watch event that
shows the pod on its node. A deleted pod takes half a second to die.
"""

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.benchmarks.tables import Table, quantiles
from tests.e2e.api_servers import IN_MEMORY
from tests.e2e.default_cluster import default_cluster
from tests.e2e.waiting import CASES, Pods, help_out, prepare, storm, surroundings, wait_until_rejected

ROUNDS = 5
STORM = 200


def run(options):
    """One table."""
    taken = defaultdict(list)
    for _ in range(options.rounds or ROUNDS):
        asyncio.run(one_round(taken))
    table = Table(
        "from the event that helps to the binding seen, after 200 events that do not (goal: 1,000 ms)",
        ["event", "p50 ms", "p90 ms", "longest"],
    )
    for case in CASES:
        table.add(case.name, *(1e3 * seconds for seconds in quantiles(taken[case.name], 0.5, 0.9, 1.0)))
    table.show()


async def one_round(taken):
    pods = Pods()
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        async with (
            default_cluster(Path(folder), surroundings(), server=IN_MEMORY) as cluster,
            cluster.watching(pods.look),
        ):
            await prepare(cluster)
            for case in CASES:
                await wait_until_rejected(cluster, pods, case)
                await storm(cluster, case, STORM)
                taken[case.name].append(await help_out(cluster, pods, case))
