"""KAI Scheduler's published scale scenarios, played to Berth: fill, reclaim, topology, consolidation.

As KAI's own tests have them (test/e2e/scale of KAI Scheduler 72de64fc, described in its docs/scale-tests): 8
GPUs a node, jobs of one GPU that fill the cluster, a gang of a whole node each for half of the nodes, gangs
of 10 pods, a gang over a tree of zones, blocks and racks. KAI plays them on KWOK nodes with a control plane
of its own, and by default on 500 nodes; here API server, scheduler and plugin share this machine's cores.
Times are from the start of the scheduler, or from the creation of the job, to the last binding, as a watcher
sees it.

Its documents have no table of results. What they say of time is shown beside: docs/developer/designs/
vectorizing-resources of the same commit.
"""

import asyncio
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from berth.demo.processes import program
from tests.benchmarks.queued_cluster import gang, namespace, node, pod, queue, queued_cluster
from tests.benchmarks.tables import Table
from tests.unit.simulation.kit import written

NODES = 1_000
GPUS = 8
GPU = "nvidia.com/gpu"
SIZE = 10
"""Pods of a distributed job."""
SAMPLES = 10
PATIENCE_SECONDS = 240.0
LEVELS = (("zone", 4), ("block", 8), ("rack", 8))
IN_A_RACK = 2
CONSOLIDATED = 4
"""Distributed jobs that pods have to move for."""
KAI = {
    "fill": "full cycles 3 to 4 min at 1,000 nodes",
    "reclaim": "8.97 s of one action and 1.7 GiB at 500 nodes; not done in 40 min at 1,000",
    "consolidation": "0.19 s of one action at 50 nodes",
}


def run(options):
    """One table: a row for each scenario."""
    nodes = options.nodes or NODES
    table = Table(
        f"KAI's scale scenarios on {nodes:,} nodes, sandbox, scheduler and queues on this machine",
        ["scenario", "pods", "seconds", "pods/s", "CPU s", "peak MiB of all", "KAI's documents"],
    )
    for name, scenario in SCENARIOS.items():
        if options.match in name:
            for row in asyncio.run(scenario(nodes)):
                table.add(*row.cells())
    table.show()


@dataclass(frozen=True)
class Row:
    """What a scenario came to."""

    name: str
    pods: str
    seconds: float
    rate: float | None = None
    cpu: float | None = None
    mebibytes: float | None = None
    theirs: str = ""

    def cells(self):
        others = ("" if each is None else each for each in (self.rate, self.cpu, self.mebibytes))
        return (self.name, self.pods, self.seconds, *others, self.theirs)


def one_gpu(where, count, name="job"):
    return [pod(where, f"{name}{i}", {GPU: "1"}) for i in range(count)]


def base(nodes):
    """Nodes, two queues, of which the first has no quota, and their namespaces."""
    yield queue("company", capacity="Nodes")
    yield queue("batch", "company", namespaces=["batch"])
    yield queue("owner", "company", namespaces=["owner"], quota={GPU: str(nodes * GPUS)})
    yield from (namespace(name) for name in ("batch", "owner"))
    yield from (node(f"n{i}", {GPU: str(GPUS)}) for i in range(nodes))


async def fill(nodes):
    """Jobs of one GPU fill the cluster: created while no scheduler runs, and while it does; then reclaim."""
    rows, count = [], nodes * GPUS
    async with queued_cluster(GPU) as cluster:
        await cluster.create(base(nodes))
        await cluster.create(one_gpu("batch", count))
        async with cluster.watched() as seen:
            rows.append(await _bound(cluster, seen, count, "fill, scheduler started afterwards", KAI["fill"]))
        async with cluster.watched() as seen:
            rows += await _reclaimed_one_by_one(cluster, seen)
        async with cluster.watched() as seen:
            rows.append(await _reclaimed_gang(cluster, seen, nodes // 2))
    return rows


async def filled_at_work(nodes):
    """The same with the scheduler at work while jobs are created."""
    count = nodes * GPUS
    async with queued_cluster(GPU) as cluster:
        await cluster.create(base(nodes))
        await cluster.start_scheduler()
        async with cluster.watched() as seen:
            started, before = time.monotonic(), cluster.cpu()
            await cluster.create(one_gpu("batch", count))
            await seen.until(lambda watcher: len(watcher.bound) >= count, PATIENCE_SECONDS)
            seconds = max(seen.bound.values()) - started
        done = f"{len(seen.bound):,} of {count:,}"
        name = "fill, scheduler at work while jobs are created"
        cpu = cluster.cpu() - before
        return [Row(name, done, seconds, len(seen.bound) / seconds, cpu, cluster.memory(), KAI["fill"])]


async def _bound(cluster, seen, count, name, theirs):
    started, before = time.monotonic(), cluster.cpu()
    await cluster.start_scheduler()
    await seen.until(lambda watcher: len(watcher.bound) >= count, PATIENCE_SECONDS)
    seconds = max(seen.bound.values(), default=time.monotonic()) - started
    done = f"{len(seen.bound):,} of {count:,}"
    cpu = cluster.cpu() - before
    return Row(name, done, seconds, len(seen.bound) / seconds, cpu, cluster.memory(), theirs)


async def _reclaimed_one_by_one(cluster, seen):
    """The time that one job of one GPU takes which has to be given what another queue has too much."""
    waits, before = [], cluster.cpu()
    for i in range(SAMPLES):
        started, key = time.monotonic(), f"owner/single{i}"
        await cluster.create([pod("owner", f"single{i}", {GPU: "1"})])
        if not await seen.until(lambda watcher, key=key: key in watcher.bound, PATIENCE_SECONDS):
            break
        waits.append(seen.bound[key] - started)
    mean = sum(waits) / max(len(waits), 1)
    done = f"{len(waits)} of {SAMPLES}"
    return [Row("reclaim, one GPU, mean", done, mean, None, cluster.cpu() - before, cluster.memory())]


async def _reclaimed_gang(cluster, seen, size):
    """A gang of a whole node each, for which half of the cluster has to leave."""
    groups, pods = gang("owner", "large", size, {GPU: str(GPUS)})
    started, before = time.monotonic(), cluster.cpu()
    await cluster.create(groups)
    await cluster.create(pods)
    done = await seen.until(lambda watcher: _of(watcher, "owner/large") >= size, PATIENCE_SECONDS)
    last = max(
        (at for key, at in seen.bound.items() if key.startswith("owner/large")), default=time.monotonic()
    )
    name = f"reclaim, one gang of {size} whole nodes" + ("" if done else " (not done)")
    pods_done = f"{_of(seen, 'owner/large'):,} of {size:,}"
    theirs = KAI["reclaim"]
    return Row(name, pods_done, last - started, None, cluster.cpu() - before, cluster.memory(), theirs)


def _of(watcher, start):
    return sum(key.startswith(start) for key in watcher.bound)


async def distributed(nodes):
    """Gangs of ten pods of five GPUs on an empty cluster: one on each node."""
    count = nodes // SIZE
    async with queued_cluster(GPU) as cluster:
        await cluster.create(base(nodes))
        made = [gang("batch", f"g{i}", SIZE, {GPU: "5"}) for i in range(count)]
        await cluster.create(group for groups, _ in made for group in groups)
        await cluster.create(each for _, pods in made for each in pods)
        async with cluster.watched() as seen:
            return [await _bound(cluster, seen, count * SIZE, f"{count} gangs of {SIZE}", "")]


async def topology(nodes):
    """One gang over the whole tree of zones, blocks and racks, and one that keeps to a zone."""
    del nodes
    rows = []
    for label, size in (("", 512), ("zone", 128)):
        async with queued_cluster(GPU) as cluster:
            await cluster.create([queue("company", capacity="Nodes"), namespace("batch")])
            await cluster.create(_tree())
            groups, pods = gang("batch", "job", size, {GPU: "2"}, topology=label)
            await cluster.create(groups)
            await cluster.create(pods)
            async with cluster.watched() as seen:
                where = f"in one {label}" if label else "anywhere"
                rows.append(
                    await _bound(cluster, seen, size, f"topology, 512 nodes: a gang of {size} {where}", "")
                )
    return rows


def _tree():
    (zone, zones), (block, blocks), (rack, racks) = LEVELS
    for i in range(zones * blocks * racks * IN_A_RACK):
        place = i // IN_A_RACK
        labels = {
            zone: f"z{place // (blocks * racks)}",
            block: f"b{place // racks}",
            rack: f"r{place}",
        }
        yield node(f"n{i}", {GPU: str(GPUS)}, **labels)


async def consolidation(nodes):
    """Gangs of pods of six GPUs where every node has five free: who would have to move, as a plan."""
    moving = [
        pod("default", f"p{i}-{j}", {GPU: "1"}, nodeName=f"n{i}") for i in range(nodes) for j in range(3)
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    for each in moving:
        each["metadata"]["ownerReferences"] = [owner]
        each["status"] = {"phase": "Running"}
    made = [gang("default", f"g{i}", SIZE, {GPU: "6"}) for i in range(CONSOLIDATED)]
    waiting = [each for groups, pods in made for each in (*groups, *pods)]
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "pluginConfig": [
                        {
                            "name": "NodeResourcesFit",
                            "args": {
                                "scoringStrategy": {
                                    "type": "MostAllocated",
                                    "resources": [{"name": GPU, "weight": 1}],
                                }
                            },
                        }
                    ]
                }
            ],
        }
        (folder / "scheduler.json").write_text(json.dumps(configuration), encoding="utf-8")
        file = written(
            folder / "cluster.json",
            *(node(f"n{i}", {GPU: str(GPUS)}) for i in range(nodes)),
            *moving,
            *waiting,
        )
        command = [
            *(program("berth"), "simulate", "consolidate", str(file), "-o", "json"),
            *(
                f"--config={folder}/scheduler.json",
                "--feature-gates=GenericWorkload=true,GangScheduling=true",
            ),
        ]
        started = time.monotonic()
        timed = ["time", "-f", "%M %U", *command]
        done = await asyncio.to_thread(subprocess.run, timed, capture_output=True, check=False)
        seconds = time.monotonic() - started
    found = json.loads(done.stdout)
    kibibytes, cpu = done.stderr.decode().split()[-2:]
    placed = sum(len(move["makesRoomFor"]) for move in found["moves"])
    name = f"consolidation, plan for {CONSOLIDATED} gangs of {SIZE}: {len(found['moves'])} moves"
    waiting_pods = f"{placed:,} of {CONSOLIDATED * SIZE:,}"
    return [Row(name, waiting_pods, seconds, None, float(cpu), int(kibibytes) / 1024, KAI["consolidation"])]


SCENARIOS = {
    "fill and reclaim": fill,
    "fill at work": filled_at_work,
    "gangs": distributed,
    "topology": topology,
    "consolidation": consolidation,
}
