"""What a decision over all nodes costs, for a plain pod and for each plugin's worst."""

import asyncio
import gc
import time

from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import Core, described, pod_template, read_pod

GOALS = {5_000: (100, 10), 15_000: (200, 10), 100_000: (1_000, 17)}
"""design.md's microseconds by number of nodes: for a pod unlike the last, and for one like it."""

WARM_UP = 20


def run(options):
    """A table for each size of cluster."""
    for nodes in (100_000,) if options.large else (5_000, 15_000):
        decisions(nodes, options.rounds or 200, options.match).show()


def decisions(nodes, rounds, match=""):
    unlike, like = GOALS[nodes]
    table = Table(
        f"decision, {nodes:,} nodes, µs (goals: unlike {unlike:,}, like {like:,}; ratio to the plain pod's p50)",
        ["pod", "placed", "unlike p50", "p90", "p99", "ratio", "like p50", "p90", "p99"],
    )
    workloads = [work for work in described()["decisions"] if match in work["name"]]
    plain = None
    for placed in (0, 50_000):
        concerned = [work for work in workloads if placed in work.get("placed", [0])]
        claims = max((work.get("claims", 0) for work in concerned), default=0)
        core = Core.of(nodes, placed, claims) if concerned else None
        for work in concerned:
            template = pod_template(work.get("spec"))
            others = [read_pod(template.bytes(i + 1)) for i in range(rounds + WARM_UP)]
            equals = [read_pod(template.bytes(7, n + 100_000)) for n in range(rounds + WARM_UP)]
            first, second = (asyncio.run(timed(core, pods)) for pods in (others, equals))
            plain = plain or first[0]
            table.add(work["name"], f"{placed:,}", *first, f"{first[0] / plain:.1f}", *second)
    return table


async def timed(core, pods):
    """Microseconds of a decision (p50, p90, p99), each pod assumed before the next, as in the loop."""
    taken = []
    gc.collect()
    gc.freeze()
    for pod in pods:
        core.cache.update_snapshot(core.snapshot)
        started = time.perf_counter()
        decision = await core.decide(pod)
        taken.append((time.perf_counter() - started) * 1e6)
        if decision.node_name:
            core.cache.assume_pod(pod.placed_on(decision.node_name))
    for pod in pods:
        if core.cache.is_assumed(pod.uid):
            core.cache.forget_pod(core.cache.get_pod(pod.uid))
    gc.unfreeze()
    return quantiles(taken[WARM_UP:], 0.5, 0.9, 0.99)
