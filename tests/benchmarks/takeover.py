"""How long no scheduler decides: after a leader's death or end, and after a start in a large cluster.

Times are of the wall clock, of real processes; a lease's own duration is most of what a death costs. After
fail-overs of three replicas under load, it is also checked that no rule of a pod is broken; `KUBE_SCHEDULER`
names a kube-scheduler to be run beside.
"""

import asyncio
import itertools
import json
import random
import re
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import click

from berth.sandbox import SandboxOptions, serve
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import node_bytes
from tests.e2e.failover_storm import ZONE, ZONES, Replicas, broken_rules, workload
from tests.e2e.faults import LEASES, PATHS, decided, faulty_cluster, node, pod
from tests.kube_scheduler import kube_scheduler

ROUNDS = 5
LEASE_KINDS = {
    "default lease (15 s, 10 s, 2 s)": {"duration": "15s", "deadline": "10s", "period": "2s"},
    "short lease (4 s, 3 s, 0.5 s)": {},
}
NODES, ROOM = 100, 100_000
BETWEEN_PODS_SECONDS = 0.05
LARGE_PODS = 50_000
DEEDS = ("modules read", "everything listed", "first binding")
START_SECONDS = 120
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
REPLICAS, LOAD_ROOM = 3, 60
SHORT = {"duration": "4s", "deadline": "3s", "period": "500ms"}
AWAY_SECONDS = 6.0
FAILURES = ("kill", "freeze", "cut network")


def run(options):
    """A table for hand-overs and one for starts, or of those rows that `--match` chooses."""
    rounds = options.rounds or ROUNDS
    ends = [(how, name) for name in LEASE_KINDS for how in ("killed", "asked to end")]
    rows = {f"{how}, {name}": (how, LEASE_KINDS[name]) for how, name in ends}
    headings = ["leader", "rounds", "least s", "p25 s", "p50 s", "p75 s", "most s"]
    table = Table("from a leader's end to its successor's first binding", headings)
    for name in chosen(rows, options.match):
        samples = timed(name, handed_over(rounds, *rows[name]))
        table.add(name, str(rounds), *quantiles(samples, *QUARTERS))
    if table.rows:
        table.show()
    pods = options.pods or LARGE_PODS
    size = f"{pods // 10:,} nodes and {pods:,} pods"
    if chosen(["large, killed"], options.match):
        table = Table(f"from a leader's end to its successor's first binding, {size}", headings)
        samples = timed(f"large, killed, {size}", handed_over_large(rounds, pods))
        table.add("large, killed, short lease", str(rounds), *quantiles(samples, *QUARTERS))
        table.show()
    schedulers = {"berth": None, **({"kube-scheduler": kube_scheduler()} if kube_scheduler() else {})}
    rows = {f"fail-overs, {name}": program for name, program in schedulers.items()}
    if chosen(rows, options.match):
        show_fail_overs(options.fail_overs, {row: rows[row] for row in chosen(rows, options.match)}, headings)
    deeds = [f"start, {deed}" for deed in DEEDS]
    if not chosen(deeds, options.match):
        return
    table = Table(f"from a start with {size} (goal: first binding after 3 s)", ["until", *headings[1:]])
    samples = timed(f"starts with {size}", started(rounds, pods))
    for deed, column in zip(DEEDS, zip(*samples, strict=True), strict=True):
        table.add(deed, str(rounds), *quantiles(column, *QUARTERS))
    table.show()


def chosen(names, match):
    return [name for name in names if match in name]


def timed(name, work):
    """Do the work and say how long it took: all of them together take minutes."""
    began = time.monotonic()
    done = asyncio.run(work)
    click.echo(f"{name}: {time.monotonic() - began:.0f} s", err=True)
    return done


async def handed_over(rounds, how, lease):
    """Seconds from the signal to the successor's first binding, a sample a round."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        async with faulty_cluster(Path(folder), room=ROOM) as cluster, trickling(cluster):
            await cluster.create(*(node(f"n{i}", pods=ROOM) for i in range(NODES)))
            return [await one_end(cluster, how, lease, number) for number in range(rounds)]


async def one_end(cluster, how, lease, number):
    while len(cluster.schedulers) < 2:
        name = f"s{number}-{len(cluster.schedulers)}"
        await cluster.start_scheduler(name, elect=True, **lease)
        await cluster.ready(name)
    leader = await cluster.until(lambda: leading(cluster), "one leads")
    (successor,) = cluster.schedulers.keys() - {leader}
    since = len(await cluster.proxy.bindings(leader))
    await cluster.until(lambda: more_bindings(cluster, leader, since), "it binds")
    ended = time.monotonic()
    await (cluster.kill(leader) if how == "killed" else cluster.end(leader))
    first = await cluster.until(lambda: more_bindings(cluster, successor, 0), "its successor binds")
    return first[0]["at"] - ended


async def leading(cluster):
    """Which scheduler that lives wrote the lease last."""
    log = await cluster.proxy.ask("log")
    wrote = [e["via"] for e in log if e["method"] != "GET" and LEASES in e["path"] and e["status"] < 400]
    return wrote[-1] if wrote and wrote[-1] in cluster.schedulers else ""


async def more_bindings(cluster, name, than):
    return (await cluster.proxy.bindings(name))[than:]


@asynccontextmanager
async def trickling(cluster, first=()):
    """A new pod every moment, `first` these, so that there is always one to bind."""

    async def trickle():
        for document in itertools.chain(first, (pod(f"plain-{i}") for i in itertools.count())):
            await cluster.create(document)
            await asyncio.sleep(BETWEEN_PODS_SECONDS)

    work = asyncio.create_task(trickle())
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


def show_fail_overs(count, rows, headings):
    """What fail-overs under load take, by how the leader fails, and what they break."""
    for row, program in rows.items():
        title = "from a leader's failure to the next binding of another, 3 replicas, under load"
        table = Table(title, headings)
        samples, wrongs = timed(row, failed_over(count, program))
        for how, seconds in samples.items():
            table.add(f"{row}, {how}", str(len(seconds)), *quantiles(seconds, *QUARTERS))
        table.show()
        click.echo(f"{row}: {count} fail-overs, {len(wrongs)} broken: {'; '.join(wrongs[:5]) or 'nothing'}")


async def failed_over(count, program):
    """Seconds of each fail-over by how it came about, and what was broken at the end or in between."""
    room = LOAD_ROOM + 2 * count
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        async with faulty_cluster(Path(folder), room=room) as cluster:
            if program:
                cluster.command, cluster.may_exit = (program,), True
            zones = [{ZONE: f"z{i % ZONES}"} for i in range(NODES)]
            await cluster.create(*(node(f"n{i}", pods=room, **zones[i]) for i in range(NODES)))
            replicas = Replicas(cluster, REPLICAS, **SHORT)
            samples = {how: [] for how in FAILURES[:count]}
            async with trickling(cluster, workload(random.Random(1), 40 * count)):
                for number in range(count):
                    await replicas.fill_up()
                    how = FAILURES[number % len(FAILURES)]
                    samples[how].append(await one_failure(cluster, replicas, how))
            await cluster.until(lambda: all(map(decided, cluster.pods())), "each is bound or says why not")
            return samples, [*cluster.witness.wrongs, *broken_rules(cluster.pods())]


async def one_failure(cluster, replicas, how):
    leader = await cluster.until(replicas.leader, "one leads")
    since = len(await cluster.proxy.bindings(leader))
    await cluster.until(lambda: more_bindings(cluster, leader, since), "it binds")
    seen, ended = len(await cluster.proxy.bindings()), time.monotonic()
    back = asyncio.create_task(await replicas.fail(leader, how, AWAY_SECONDS))

    async def by_another():
        return [e for e in (await cluster.proxy.bindings())[seen:] if e["via"] != leader]

    first = await cluster.until(by_another, "another binds")
    await back
    return first[0]["at"] - ended


async def handed_over_large(rounds, pods):
    """Seconds from a leader's death to its successor's first binding in a large cluster."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        await fill(Path(folder) / "data", pods)
        async with faulty_cluster(Path(folder), room=ROOM) as cluster:
            await cluster.until(lambda: len(cluster.pods()) >= pods, "the sandbox is filled")
            async with trickling(cluster):
                return [await one_end(cluster, "killed", SHORT, number) for number in range(rounds)]


async def started(rounds, pods):
    """Seconds from a scheduler's start to three of its first deeds, a sample a round."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        await fill(Path(folder) / "data", pods)
        async with faulty_cluster(Path(folder), room=ROOM) as cluster:
            await cluster.until(lambda: len(cluster.pods()) >= pods, "the sandbox is filled")
            return [await one_start(cluster, number) for number in range(rounds)]


async def fill(path, pods):
    """Nodes, and ten pods for each that run on them, in a sandbox's data file."""
    nodes = [json.loads(data) for data in node_bytes(pods // 10)]
    names = [each["metadata"]["name"] for each in nodes]
    async with await serve(SandboxOptions(kubelets=False, data_file=path)) as sandbox:
        sandbox.load({"apiVersion": "v1", "kind": "Node", **each} for each in nodes)
        sandbox.load(
            {**pod(f"old-{i}", nodeName=names[i % len(names)]), "status": {"phase": "Running"}}
            for i in range(pods)
        )


async def one_start(cluster, number):
    name = f"s{number}"
    await cluster.create(pod(f"new-{number}"))
    began = time.time()
    await cluster.start_scheduler(name, direct=True)
    path = f"{PATHS['Pod']}/new-{number}"
    async with asyncio.timeout(START_SECONDS):
        while not (await cluster.get(path))["spec"].get("nodeName"):  # noqa: ASYNC110 - another process's state
            await asyncio.sleep(0.01)
    bound = time.time()
    said = cluster.log(name).read_text()
    await cluster.kill(name)
    return [*(moment(said, text) - began for text in ("Starting informers", "Sync completed")), bound - began]


def moment(said, text):
    """When the log said so, in seconds since the epoch."""
    stamp = re.search(rf"^I(\d{{4}} [\d:.]+) .*{text}", said, re.MULTILINE)[1]
    return time.mktime(time.strptime(f"{time.localtime().tm_year}{stamp[:-7]}", "%Y%m%d %H:%M:%S")) + float(
        stamp[-7:]
    )
