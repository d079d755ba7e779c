"""What a decision over all nodes costs, for a plain pod and for each plugin's worst.

A pod of a new class is asked about on all nodes; of a known one, on the node that the last pod went to.

A decision waits for nothing, so its time is the thread's CPU time: other work on the machine stays out of it.
"""

import asyncio
import gc
import time

from berth.scheduler.loop.event_loop import collect_seldom, leave_alone_what_there_is
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import APPS, Core, described, pod_template, read_pod

GOALS = {5_000: (100, 10), 15_000: (200, 10), 100_000: (1_000, 17)}
"""Microseconds to reach by number of nodes: for a pod of a new class, and for one of a known class."""

IN_TURN = "classes in turn"
CLASSES = (1, 20, 50, 500)
TURNS = 3
WARM_UP = 20
STEADY = APPS
"""Once a cluster has run for a while, pods of every app have been seen; what the first cost is apart."""


def run(options):
    """A table for each size of cluster."""
    for nodes in (100_000,) if options.large else (5_000, 15_000):
        decisions(nodes, options.rounds or 200, options.match).show()
        if options.match in IN_TURN:
            in_turn(nodes).show()


def decisions(nodes, rounds, match=""):
    new_class, known_class = GOALS[nodes]
    table = Table(
        f"decision, {nodes:,} nodes, CPU µs (to reach: {new_class:,} and {known_class:,}; ratio to plain)",
        [
            *("pod", "placed", "first p50", "new class p50", "p90", "p99", "ratio"),
            *("known class p50", "p90", "p99", "times", "reused"),
        ],
    )
    workloads = [work for work in described()["decisions"] if match in work["name"]]
    plain = None
    for placed in (0, 50_000):
        concerned = [work for work in workloads if placed in work.get("placed", [0])]
        claims = max((work.get("claims", 0) for work in concerned), default=0)
        core = Core.of(nodes, placed, claims) if concerned else None
        for work in concerned:
            template = pod_template(work.get("spec"))
            others = [read_pod(template.bytes(i + 1)) for i in range(STEADY + rounds)]
            equals = [read_pod(template.bytes(7, n + 100_000)) for n in range(WARM_UP + rounds)]
            new, first = asyncio.run(timed(core, others, STEADY))
            plain = plain or first[0]
            known, reused = asyncio.run(of_known_class(core, equals))
            figures = *known, f"{first[0] / known[0]:.1f}", f"{reused:.0%}"
            table.add(work["name"], f"{placed:,}", new, *first, f"{first[0] / plain:.1f}", *figures)
    return table


def in_turn(nodes):
    """Plain pods of so many classes, one after the other: each finds the rows dirty that the others took."""
    table = Table(
        f"{IN_TURN}, {nodes:,} nodes, CPU µs of a decision on a known class", ["classes", "p50", "p90", "p99"]
    )
    template = pod_template()
    for classes in CLASSES:
        rounds = max(TURNS, 60 // classes)
        pods = [read_pod(template.bytes(i % classes + 1, i)) for i in range(classes * (rounds + 2))]
        _, figures = asyncio.run(timed(Core.of(nodes), pods, 2 * classes))
        table.add(str(classes), *figures)
    return table


async def of_known_class(core, pods):
    """CPU microseconds of a decision on pods of one class: p50, p90 and p99; and how many found it known."""
    memory = core.algorithm.cache
    before = memory.outcomes["reused"]
    _, figures = await timed(core, pods, WARM_UP)
    return figures, (memory.outcomes["reused"] - before) / len(pods)


async def timed(core, pods, before):
    """CPU microseconds of a decision, each pod assumed before the next, as in the loop.

    The median of those `before`, and p50, p90 and p99 of the others.
    """
    taken = []
    collect_seldom()
    leave_alone_what_there_is()
    for pod in pods:
        core.cache.update_snapshot(core.snapshot)
        started = time.thread_time()
        decision = await core.decide(pod)
        taken.append((time.thread_time() - started) * 1e6)
        if decision.node_name:
            core.cache.assume_pod(pod.placed_on(decision.node_name))
    forget(core, pods)
    return quantiles(taken[:before], 0.5)[0], quantiles(taken[before:], 0.5, 0.9, 0.99)


def forget(core, pods):
    """Take the pods off their nodes again."""
    for pod in pods:
        if core.cache.is_assumed(pod.uid):
            core.cache.forget_pod(core.cache.get_pod(pod.uid))
    gc.unfreeze()
