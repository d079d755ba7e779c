"""Kueue's performance baseline, with queues in the place of ClusterQueues: the time to admission by class.

Kueue's own load (test/performance/scheduler/configs/baseline, ff69552e): 5 cohorts of 6 queues, each
with a quota of 20 and a borrowing limit of 100, in each queue 350 small, 100 medium and 50 large
workloads, created in intervals and run for a while. Kueue's runner plays it with its controllers alone,
without pods or a scheduler: a workload that is admitted counts as running. Here each is a pod that this
scheduler binds through an API server, and that is deleted once it has run; time to admission is from its
creation to its binding, as a watcher sees both. `--rounds 10` plays a tenth of each class.

Kueue's figures are the averages of five runs that its rangespec.yaml names. It allows evictions within a
queue (LowerPriority) and within a cohort (Any); here `reclaim: Quota`.
"""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field

from tests.benchmarks.queued_cluster import namespace, node, pod, queue, queued_cluster
from tests.benchmarks.tables import Table, quantiles

COHORTS, QUEUES_EACH = 5, 6
QUOTA, BORROWING = 20, 100
RESOURCE = "cpu"
NODES = 40
"""With 256 cores each they hold whatever quotas allow."""
PATIENCE_SECONDS = 420.0
LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class WorkloadClass:
    """What a class asks for, how often it comes, and how long it runs; Kueue's mean time to admission."""

    name: str
    count: int
    every_seconds: float
    runs_seconds: float
    priority: int
    cores: int
    kueue_mean_seconds: float


CLASSES = (
    WorkloadClass("small", 350, 0.1, 0.2, 50, 1, 215.468),
    WorkloadClass("medium", 100, 0.5, 0.5, 100, 5, 76.768),
    WorkloadClass("large", 50, 1.2, 1.0, 200, 20, 16.501),
)
KUEUE_WALL_SECONDS = 351.1164


def run(options):
    """One table: a row for each class."""
    share = min(1.0, (options.rounds or 100) / 100)
    outcome = asyncio.run(played(share))
    used = f"{outcome.mebibytes:.0f} MiB and {outcome.cpu:.0f} s of CPU"
    table = Table(
        f"Kueue's baseline, {share:.0%} of its workloads, in {outcome.seconds:.0f} s (Kueue: "
        f"{KUEUE_WALL_SECONDS:.0f} s), {outcome.evicted} evicted; all processes {used}",
        ["class", "admitted", "mean s", "p50", "p99", "Kueue's mean s", "times"],
    )
    for each in CLASSES:
        waits = outcome.waits[each.name]
        wanted = round(each.count * share) * COHORTS * QUEUES_EACH
        mean = sum(waits) / max(len(waits), 1)
        done = f"{len(waits):,} of {wanted:,}"
        table.add(
            each.name,
            done,
            mean,
            *quantiles(waits or [0.0], 0.5, 0.99),
            each.kueue_mean_seconds,
            mean / each.kueue_mean_seconds,
        )
    table.show()


@dataclass
class Outcome:
    """How long workloads waited, by class, and what it took. Units: seconds, MiB."""

    waits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0
    cpu: float = 0.0
    mebibytes: float = 0.0
    evicted: int = 0


@dataclass
class Runs:
    """The pods that run: each is deleted once its class's time is over, one that was evicted is made anew."""

    cluster: object
    outcome: Outcome
    waiting: dict[str, tuple[float, WorkloadClass]] = field(default_factory=dict)
    """Those that have had no node yet, since when."""
    kinds: dict[str, WorkloadClass] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    """Those that have a node, until when they run."""
    evicted: list[str] = field(default_factory=list)
    done: int = 0

    def seen(self, what, key, document):
        """A pod that has got its node begins to run; one that goes before its time begins anew."""
        if what == "DELETED":
            if self.ends.pop(key, None) is not None:
                self.evicted.append(key)
        elif document["spec"].get("nodeName") and key not in self.ends and key in self.kinds:
            if document["metadata"].get("deletionTimestamp"):
                return
            now = time.monotonic()
            if key in self.waiting:
                at, kind = self.waiting.pop(key)
                self.outcome.waits[kind.name].append(now - at)
            self.ends[key] = now + self.kinds[key].runs_seconds

    async def end(self):
        """Delete what has run, and create what was evicted, until cancelled."""
        while True:
            now = time.monotonic()
            over = [key for key, at in self.ends.items() if at <= now]
            for key in over:
                del self.ends[key], self.kinds[key]
            self.done += len(over)
            by_namespace = defaultdict(list)
            for key in over:
                where, _, name = key.partition("/")
                by_namespace[where].append(name)
            for where, names in by_namespace.items():
                await self.cluster.delete_pods(where, names)
            again, self.evicted = self.evicted, []
            self.outcome.evicted += len(again)
            await self.cluster.create(workload(key, self.kinds[key]) for key in again)
            await asyncio.sleep(LOOK_SECONDS)


def workload(key, kind):
    """A pod of that class."""
    where, _, name = key.partition("/")
    return pod(where, name, {RESOURCE: str(kind.cores)}, priorityClassName=kind.name)


async def played(share):
    """The whole load, or that part of each class."""
    outcome = Outcome()
    async with queued_cluster(RESOURCE, reclaim="Quota") as cluster:
        await cluster.create(_base())
        runs = Runs(cluster, outcome)
        await cluster.start_scheduler()
        async with cluster.watched(runs.seen) as watcher:
            started, before = time.monotonic(), cluster.cpu()
            async with asyncio.TaskGroup() as tasks:
                ending = tasks.create_task(runs.end())
                wanted = 0
                makers = []
                for each in CLASSES:
                    number = round(each.count * share)
                    wanted += number * COHORTS * QUEUES_EACH
                    makers.append(tasks.create_task(_created(runs, each, number)))
                await asyncio.wait(makers)
                await watcher.until(lambda _: runs.done >= wanted, PATIENCE_SECONDS)
                ending.cancel()
            outcome.seconds = time.monotonic() - started
            outcome.cpu = cluster.cpu() - before
            outcome.mebibytes = cluster.memory()
    return outcome


def _base():
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    yield from ({**head, "metadata": {"name": each.name}, "value": each.priority} for each in CLASSES)
    yield from (node(f"n{i}", {"pods": "2000"}) for i in range(NODES))
    for cohort in range(COHORTS):
        yield queue(f"cohort{cohort}", capacity="Quota")
        for i in range(QUEUES_EACH):
            name = _name(cohort, i)
            yield namespace(name)
            yield queue(
                name,
                f"cohort{cohort}",
                namespaces=[name],
                quota={RESOURCE: str(QUOTA)},
                borrowingLimit={RESOURCE: str(BORROWING)},
            )


def _name(cohort, i):
    return f"cohort{cohort}-cq{i}"


async def _created(runs, kind, number):
    """Create one workload of the class in each queue, again and again, in its interval."""
    started = time.monotonic()
    for i in range(number):
        await asyncio.sleep(max(0.0, started + i * kind.every_seconds - time.monotonic()))
        documents = []
        for cohort in range(COHORTS):
            for each in range(QUEUES_EACH):
                where, name = _name(cohort, each), f"{kind.name}{i}"
                key = f"{where}/{name}"
                documents.append(workload(key, kind))
                runs.kinds[key], runs.waiting[key] = kind, (time.monotonic(), kind)
        await runs.cluster.create(documents)
