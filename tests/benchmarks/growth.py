"""How cost grows with the cluster: by nodes, by placed pods, and by pods that wait and fit nowhere.

Each size has a process of its own, so that memory is that of one size. The core runs on fakes of the API
server's writers; times are the thread's CPU time.
"""

import asyncio
import gc
import multiprocessing
import time

from berth.scheduler.loop.event_loop import collect_seldom, leave_alone_what_there_is
from tests.benchmarks.decision import WARM_UP, of_known_class, timed
from tests.benchmarks.snapshot import applied, resident
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.tables import timed as cpu
from tests.benchmarks.workloads import (
    APPS,
    Core,
    Template,
    described,
    node_bytes,
    placed_pods,
    pod_template,
    read_node,
    read_pod,
)
from tests.hostile.cluster import Cluster, changed

NODES = (100, 1_000, 5_000, 20_000, 100_000)
PLACED = (0, 10_000, 50_000, 200_000)
WAITING = (100, 1_000, 5_000, 20_000)
NODES_BESIDE_PODS = 5_000
NODES_BESIDE_WAITING = 1_000
EVENTS = 20
CONSTRAINED = ("PodTopologySpread", "InterPodAffinity")
HOPELESS = "fits nowhere"
LONG_ENOUGH_SECONDS = 600
"""Then pods that no event helped are tried again."""


def run(options):
    """Three tables."""
    rounds = options.rounds or 100
    nodes = Table(
        "growth with nodes, nothing placed: CPU µs of a decision and of following one changed node; memory",
        ["nodes", "new class", "known class", "fits nowhere", "node changed", "KiB a node"],
    )
    filled(nodes, by_nodes, NODES, rounds).show()
    placed = Table(
        f"growth with placed pods, {NODES_BESIDE_PODS:,} nodes: CPU µs of a decision on a new class; memory",
        ["placed", "plain", "known class", "spreading", "affinity", "pod placed", "bytes a pod"],
    )
    filled(placed, by_placed, PLACED, rounds).show()
    waiting = Table(
        f"growth with pods that fit nowhere, {NODES_BESIDE_WAITING:,} nodes: CPU of an attempt (µs), of an "
        "event that helps none, all of one kind or each of its own (ms), of trying all again (µs a pod)",
        ["waiting", "attempt", "event, one kind", "event, own kinds", "again", "bytes a pod"],
    )
    filled(waiting, by_waiting, WAITING, rounds).show()


def filled(table, measure, sizes, rounds):
    """The table with a row for each size."""
    for size in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as one:
            table.add(f"{size:,}", *one.apply(measure, (size, rounds)))
    return table


def by_nodes(nodes, rounds):
    before = resident()
    core = Core.of(nodes)
    gc.collect()
    memory = (resident() - before) / nodes / 1024
    costs = [new_class(core, None, rounds), known_class(core, rounds)]
    costs.append(new_class(core, spec_of(HOPELESS), rounds))
    documents = node_bytes(min(rounds, nodes))
    changes = [
        (read_node(data), read_node(data.replace(b'"cpu": "64"', b'"cpu": "63"'))) for data in documents
    ]
    followed = median(changes, lambda two: applied(core, lambda both: core.cache.update_node(*both), two))
    return *costs, followed, memory


def by_placed(placed, rounds):
    before = resident()
    core = Core.of(NODES_BESIDE_PODS)
    gc.collect()
    empty = resident()
    for pod in placed_pods(placed, NODES_BESIDE_PODS):
        core.cache.add_pod(pod)
    core.cache.update_snapshot(core.snapshot)
    gc.collect()
    memory = f"{(resident() - empty) / placed:,.0f}" if placed else f"(nodes: {(empty - before) >> 20} MiB)"
    costs = [new_class(core, None, rounds), known_class(core, rounds)]
    costs += [new_class(core, spec_of(name), rounds) for name in CONSTRAINED]
    template = Template(described()["placed"])
    more = [read_pod(template.bytes(placed + i)).placed_on(f"node-{i}") for i in range(rounds)]
    followed = median(more, lambda pod: applied(core, core.cache.add_pod, pod))
    return *costs, followed, memory


def by_waiting(waiting, _):
    attempt, same, again, memory = waiting_alike(waiting, kinds=1)
    _, differ, _, _ = waiting_alike(waiting, kinds=waiting)
    return attempt, same, differ, again, memory


def waiting_alike(waiting, *, kinds):
    """CPU of an attempt (µs), of an event that helps none (ms) and of trying all again (µs); bytes a pod."""
    cluster = Cluster(NODES_BESIDE_WAITING)
    gc.collect()
    before = resident()
    template = pod_template(spec_of(HOPELESS))
    for i in range(waiting):
        cluster.core.pod_handler.on_add(read_pod(template.bytes(i % kinds, i)))
    attempts = asyncio.run(tried(cluster))
    memory = (resident() - before) / waiting
    nodes = cluster.core.snapshot.nodes[:EVENTS]
    larger = [
        changed(node, status={"allocatable": {**node.status.allocatable, "cpu": "5"}}) for node in nodes
    ]
    event = median(larger, cluster.update_node) / 1e3
    cluster.clock.seconds += LONG_ENOUGH_SECONDS
    cluster.core.queue.flush()
    again = asyncio.run(tried(cluster))
    assert len(attempts) == len(again) == waiting
    cluster.close()
    return quantiles(attempts, 0.5)[0], event, sum(again) / len(again), memory


async def tried(cluster):
    """CPU microseconds of each attempt at what is ready."""
    queue, taken = cluster.core.queue, []
    collect_seldom()
    leave_alone_what_there_is()
    while (record := queue.pop()) is not None:
        started = time.thread_time()
        await cluster.core.schedule_one.schedule(record)
        taken.append((time.thread_time() - started) * 1e6)
        cluster.forget_writes()
    gc.unfreeze()
    return taken


def spec_of(name):
    """The spec of that workload in workloads.yaml."""
    (spec,) = [work.get("spec") for work in described()["decisions"] if work["name"] == name]
    return spec


def new_class(core, spec, rounds):
    """CPU microseconds of a decision on a pod of a new class, once pods of every app have been seen."""
    template = pod_template(spec)
    pods = [read_pod(template.bytes(i + 1)) for i in range(APPS + rounds)]
    return asyncio.run(timed(core, pods, APPS))[1][0]


def known_class(core, rounds):
    """CPU microseconds of a decision on a pod of a class that was decided on just before."""
    template = pod_template()
    pods = [read_pod(template.bytes(7, n + 100_000)) for n in range(WARM_UP + rounds)]
    return asyncio.run(of_known_class(core, pods))[0][0]


def median(things, call):
    """CPU microseconds of the call on each thing, p50."""
    collect_seldom()
    leave_alone_what_there_is()
    p50, *_ = cpu(things, call)
    gc.unfreeze()
    return p50
