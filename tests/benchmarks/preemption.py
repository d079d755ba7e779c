"""Preemption: the search for victims alone, and a thousand preemptors on a thousand full nodes end to end."""

import asyncio
import itertools
import tempfile
import time
from pathlib import Path

from berth.client.resources import PODS
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import TopologySpreadConstraint
from tests.benchmarks.tables import Table, quantiles
from tests.e2e.api_servers import IN_MEMORY
from tests.e2e.default_cluster import default_cluster
from tests.e2e.test_preemption import NODES, Ledger, crowded, pod
from tests.unit.preemption.kit import node, placed, preemptor, stage

ROUNDS = 20
ON_EACH = 10
WEB = {"app": "web"}
SPREAD = TopologySpreadConstraint(5, "zone", "DoNotSchedule", LabelSelector(WEB))
WORKLOADS = {"plain pod": {}, "pod that spreads": {"labels": WEB, "topology_spread_constraints": (SPREAD,)}}


def run(options):
    """Two tables."""
    searches(options.rounds or ROUNDS)
    asyncio.run(end_to_end())


def searches(rounds):
    """From a pod that fits nowhere to its candidates, 10 % of the nodes."""
    table = Table(
        "candidates among 5,000 full nodes of 10 pods", ["preemptor", "p50 ms", "p90 ms", "longest"]
    )
    nodes = [node(f"n{i}", labels={"zone": "abc"[i % 3]}) for i in range(5_000)]
    pods = [
        placed(f"p{i}-{j}", "400m", priority=j % 3, on=f"n{i}", started=1.0 + i, labels=WEB)
        for i, j in itertools.product(range(len(nodes)), range(ON_EACH))
    ]
    cluster = stage(nodes, pods)
    for name, fields in WORKLOADS.items():
        asyncio.run(searched(cluster, fields, samples := [], rounds))
        table.add(name, *quantiles(samples, 0.5, 0.9, 1.0))
    table.show()


async def searched(cluster, fields, samples, rounds):
    for i in range(rounds):
        request = await cluster.request(preemptor("2", name=f"high-{i}", **fields))
        started = time.thread_time()
        await cluster.preemption.candidates(request)
        samples.append((time.thread_time() - started) * 1e3)


async def end_to_end():
    """Pods created, victims evicted, their kubelets done, preemptors bound."""
    ledger, bound_at = Ledger(), []

    def look(kind, document):
        before = len(ledger.preemptors())
        ledger.look(kind, document)
        if len(ledger.preemptors()) > before:
            bound_at.append(time.monotonic())

    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        async with (
            default_cluster(Path(folder), crowded(), server=IN_MEMORY) as cluster,
            cluster.watching(look),
        ):
            before, started = cluster.scheduler.usage().cpu_seconds, time.monotonic()
            await cluster.create(PODS, [pod(f"high-{i}", 3, "high") for i in range(NODES)])
            await cluster.reach(lambda: len(bound_at) == NODES)
            spent = cluster.scheduler.usage().cpu_seconds - before
    table = Table(
        f"{NODES:,} preemptors on {NODES:,} full nodes, end to end, victims take 0.5 s to die",
        ["", "p50 s", "p90 s", "longest", "preemptions/s", "CPU ms each"],
    )
    seconds = [at - started for at in bound_at]
    table.add(
        "created to bound", *quantiles(seconds, 0.5, 0.9, 1.0), NODES / max(seconds), spent * 1e3 / NODES
    )
    table.show()
