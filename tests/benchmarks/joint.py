"""Joint placement: groups drawn by chance, one by one, by a plan, and in every way that there is.

With --openb FOLDER: GPU pods of that trace in batches instead (joint_openb.py).
"""

import asyncio
import time

from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from tests.benchmarks import joint_openb
from tests.benchmarks.tables import Table
from tests.scenarios.pod_groups.test_planned_trees import placed
from tests.unit.pod_groups.kit import member, node, quality, stage

INSTANCES, TREES = 100, 200
MAX_PODS = 12
HUNDREDTH = 0.01
LARGE, SHAPES = 64, 8
SIZES = (60, 150, 500)


def run(options):
    """What a plan gains over one by one and leaves to the best; what planning large groups costs."""
    if options.openb:
        joint_openb.run(options)
        return
    results = asyncio.run(results_of(options.rounds or INSTANCES))
    table = Table(f"{len(results)} groups of up to {MAX_PODS} pods", ["compared with", "groups"])
    for name, holds in ROWS.items():
        table.add(name, str(sum(holds(*result) for result in results)))
    table.add("largest gap to the best score, %", round(max(100 * gap(*result) for result in results), 2))
    table.show()
    table = Table(
        f"{TREES} trees of groups, the first attempt at each", ["compared with one by one", "trees"]
    )
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        planned = [runner.run(trees_placed(seed)) for seed in range(TREES)]
    for name, (fewer, more) in {"fewer pods placed": (1, 0), "more pods placed": (0, 1)}.items():
        table.add(name, str(sum(pair[fewer] < pair[more] for pair in planned)))
    table.show()
    table = Table(f"groups of {LARGE} pods in {SHAPES} shapes, CPU s", ["nodes", "one by one", "planned"])
    for nodes in SIZES:
        table.add(f"{nodes}", *asyncio.run(cost_of(nodes)))
    table.show()


async def trees_placed(seed):
    """How many pods of a drawn tree find a node one by one, and planned."""
    return await placed(seed), await placed(seed, "JointPlacement")


async def cost_of(nodes):
    """CPU seconds of trying a large group one pod after the other, and of planning it."""
    cluster = [
        node(f"n{i}", cpu=8 + 8 * (i % 2), gpus=4 * (i % 3 == 0), zone="abc"[i % 3]) for i in range(nodes)
    ]
    pods = [member(f"p{i}", cpu=1 + i % SHAPES, gpus=i % 2) for i in range(LARGE)]
    taken = []
    for way in ("one_by_one", "jointly"):
        one, begun = stage(cluster, pods), time.process_time()
        await getattr(one, way)()
        taken.append(time.process_time() - begun)
    return taken


async def results_of(count):
    return [await quality(seed, max_pods=MAX_PODS) for seed in range(count)]


def gap(_greedy, joint, best):
    """The share of the best score that the plan lacks, where it places as many pods."""
    return max(0.0, 1 - joint[1] / best[1]) if joint[0] == best[0] and best[1] else 0.0


ROWS = {
    "one by one: worse": lambda greedy, joint, _best: joint < greedy,
    "one by one: more pods placed": lambda greedy, joint, _best: joint[0] > greedy[0],
    "one by one: as many, higher score": lambda greedy, joint, _best: (
        joint[0] == greedy[0] and joint[1] > greedy[1]
    ),
    "every way: fewer pods placed": lambda _greedy, joint, best: joint[0] < best[0],
    "every way: as many, more than 1 % less": lambda *result: gap(*result) > HUNDREDTH,
    "every way: as many, less": lambda *result: gap(*result) > 0,
}
