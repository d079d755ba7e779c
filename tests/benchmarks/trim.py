"""What giving free memory back to the system costs decisions: CPU a pod with it and without, in turns.

A scheduler gives back each twenty seconds, once in ten thousand pods or more. Here it does so once a turn, of
far fewer pods, so that what it costs shows more than it does there.
"""

import asyncio
import gc
import statistics
import time

from berth.scheduler.loop.event_loop import (
    collect_seldom,
    give_back_what_is_free,
    leave_alone_what_there_is,
)
from tests.benchmarks.decision import forget
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import Core, pod_template, read_pod

NODES, PLACED = 5_000, 50_000
PODS, CLASSES = 1_000, 20
TURNS = 10


def run(options):
    """Each way that number of times, one after the other, on one core."""
    core = Core.of(options.nodes or NODES, options.placed or PLACED)
    template = pod_template()
    collect_seldom()
    leave_alone_what_there_is()
    used, trims = {True: [], False: []}, []
    for turn in range(2 * (options.rounds or TURNS) + 2):
        pods = [read_pod(template.bytes(i % CLASSES + 1, turn * PODS + i)) for i in range(PODS)]
        giving = turn % 2 == 1
        seconds, trim = asyncio.run(_turn(core, pods, giving=giving))
        if turn >= len(used):
            used[giving].append(seconds / PODS * 1e6)
            trims += [trim * 1e3] if giving else []
    gc.unfreeze()
    table = Table(
        f"decisions, {options.nodes or NODES:,} nodes, {options.placed or PLACED:,} placed pods, "
        f"{PODS:,} pods of {CLASSES} classes a turn",
        ["", "CPU µs a pod, median", "least", "most", "giving back, CPU ms"],
    )
    for giving, name in ((False, "nothing given back"), (True, "given back once a turn")):
        figures = (statistics.median(used[giving]), min(used[giving]), max(used[giving]))
        table.add(name, *figures, f"{statistics.median(trims):.1f}" if giving else "")
    table.show()


async def _turn(core, pods, *, giving):
    """CPU seconds of the process for deciding on the pods, giving back included, and of giving back alone."""
    started, trim = time.process_time(), 0.0
    if giving:
        await asyncio.to_thread(give_back_what_is_free)
        trim = time.process_time() - started
    for pod in pods:
        core.cache.update_snapshot(core.snapshot)
        decision = await core.decide(pod)
        if decision.node_name:
            core.cache.assume_pod(pod.placed_on(decision.node_name))
    seconds = time.process_time() - started
    forget(core, pods)
    return seconds, trim
