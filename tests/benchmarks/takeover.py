"""How long nobody schedules: after a leader's death or end, and after a start in a large cluster.

Times are of the wall clock, of real processes; a lease's own duration is most of what a death costs.
"""

import asyncio
import json
import re
import tempfile
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import click

from berth.sandbox import Options, serve
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import node_bytes
from tests.e2e.faults import LEASES, PATHS, faulty_cluster, node, pod

ROUNDS = 5
LEASE_KINDS = {
    "default lease (15 s, 10 s, 2 s)": {"duration": "15s", "deadline": "10s", "period": "2s"},
    "short lease (4 s, 3 s, 0.5 s)": {},
}
NODES, ROOM = 100, 100_000
BETWEEN_PODS_SECONDS = 0.05
LARGE_NODES, LARGE_PODS = 5_000, 50_000
DEEDS = ("modules read", "everything listed", "first binding")
START_SECONDS = 120
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


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
    deeds = [f"start, {deed}" for deed in DEEDS]
    if not chosen(deeds, options.match):
        return
    size = f"{LARGE_NODES:,} nodes and {LARGE_PODS:,} pods"
    table = Table(f"from a start with {size} (goal: first binding after 3 s)", ["until", *headings[1:]])
    samples = timed(f"starts with {size}", started(rounds))
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
async def trickling(cluster):
    """A new pod every moment, so that there is always one to bind."""

    async def trickle():
        number = 0
        while True:
            await cluster.create(pod(f"p{number}"))
            number += 1
            await asyncio.sleep(BETWEEN_PODS_SECONDS)

    work = asyncio.create_task(trickle())
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def started(rounds):
    """Seconds from a scheduler's start to three of its first deeds, a sample a round."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        await fill(Path(folder) / "data")
        async with faulty_cluster(Path(folder), room=ROOM) as cluster:
            await cluster.until(lambda: len(cluster.pods()) >= LARGE_PODS, "the sandbox is filled")
            return [await one_start(cluster, number) for number in range(rounds)]


async def fill(path):
    """Nodes, and pods that run on them, in a sandbox's data file."""
    nodes = [json.loads(data) for data in node_bytes(LARGE_NODES)]
    names = [each["metadata"]["name"] for each in nodes]
    async with await serve(Options(kubelets=False, data_file=path)) as sandbox:
        sandbox.load({"apiVersion": "v1", "kind": "Node", **each} for each in nodes)
        sandbox.load(
            {**pod(f"old-{i}", nodeName=names[i % LARGE_NODES]), "status": {"phase": "Running"}}
            for i in range(LARGE_PODS)
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
