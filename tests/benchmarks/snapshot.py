"""What it costs to follow the cluster: a changed node, a placed pod, and the memory of a pod."""

import gc
from pathlib import Path

from tests.benchmarks.tables import Table, timed
from tests.benchmarks.workloads import Core, Template, described, node_bytes, placed_pods, read_node, read_pod

PAGE_BYTES = 4096
GOAL_EVENT_MICROSECONDS = 30


def run(options):
    """One table for each size of cluster, and the memory of 50,000 pods."""
    for nodes in (5_000, 15_000):
        following(nodes, options.rounds or 1_000).show()
    memory().show()


def following(nodes, rounds):
    table = Table(
        f"events, {nodes:,} nodes, CPU µs (goal: {GOAL_EVENT_MICROSECONDS} for a pod decoded and applied)",
        ["event", "p50", "p90", "p99"],
    )
    core = Core.of(nodes)
    documents = node_bytes(rounds)
    heartbeat = [data.replace(b'"cpu": "64"', b'"cpu": "63"') for data in documents]
    pods = list(placed_pods(rounds, nodes))
    texts = [Template(described()["placed"]).bytes(i) for i in range(rounds)]
    known = [read_node(data) for data in documents]
    gc.collect()
    gc.freeze()
    table.add("pod decoded", *timed(texts, read_pod))
    table.add("pod placed, and taken over", *timed(pods, lambda pod: applied(core, core.cache.add_pod, pod)))
    table.add(
        "pod removed, and taken over", *timed(pods, lambda pod: applied(core, core.cache.remove_pod, pod))
    )
    table.add("node decoded", *timed(heartbeat, read_node))
    changes = list(zip(known, map(read_node, heartbeat), strict=True))
    table.add(
        "node changed, and taken over",
        *timed(changes, lambda change: applied(core, lambda two: core.cache.update_node(*two), change)),
    )
    table.add("nothing changed", *timed(range(rounds), lambda _: core.cache.update_snapshot(core.snapshot)))
    gc.unfreeze()
    return table


def applied(core, call, what):
    call(what)
    core.cache.update_snapshot(core.snapshot)


def memory():
    table = Table("memory, 5,000 nodes (goal: 120 MB with 50,000 pods)", ["what", "MiB", "bytes a pod"])
    gc.collect()
    before = resident()
    core = Core.of(5_000)
    nodes = resident() - before
    table.add("5,000 nodes", nodes / 2**20, "")
    for pod in placed_pods(50_000, 5_000):
        core.cache.add_pod(pod)
    core.cache.update_snapshot(core.snapshot)
    gc.collect()
    pods = resident() - before - nodes
    table.add("50,000 placed pods", pods / 2**20, pods / 50_000)
    table.add("this process", resident() / 2**20, "")
    return table


def resident():
    """The memory that this process holds. Units: bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
