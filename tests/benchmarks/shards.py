"""Two shards, led by one process and by two on one API server; and one process with a huge cluster.

The pods are there before any shard has a leader. What counts is the time in which both shards are at work,
and the schedulers' CPU from their leases to the last binding.
"""

import asyncio
import gc
import json
import os
import resource
import tempfile
import time
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import click

from berth.client.api import MERGE_PATCH, Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from tests.benchmarks.decision import of_known_class, timed
from tests.benchmarks.end_to_end import cpu_of_all
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import APPS, Core, node_bytes, pod_template, read_pod
from tests.e2e.faults import CONFIGURATION, ELECTION, LEASES, NO_LIMIT
from tests.e2e.sharding import SHARDED, SHARDS, lease
from tests.pod_events import current_pods, pod_events

NODES, PODS = 1_000, 3_000
HUGE_NODES, HUGE_PODS = 100_000, 1_000_000
READY_SECONDS, LONGEST_SECONDS = 120.0, 240
MEBIBYTE = 1 << 20


def run(options):
    """A table for processes, or with `--large` one for the simulation."""
    if options.large:
        huge(options.nodes or HUGE_NODES, options.placed or HUGE_PODS, options.rounds or 200).show()
        return
    nodes, pods = options.nodes or NODES, options.pods or PODS
    which = "a real API server" if options.real else "the sandbox"
    table = Table(
        f"two shards on {which}, {nodes:,} nodes, {pods:,} pods; load before: {os.getloadavg()[0]:.1f}",
        ["processes", "bound", "pods/s", "CPU ms a pod", "of each", "API server's CPU ms a pod"],
    )
    for _ in range(options.rounds or 1):
        for count in (1, 2):
            table.add(str(count), *asyncio.run(measured(count, nodes, pods, real=options.real)))
    table.show()


def objects(nodes, pods):
    """Nodes and pods, each shard's in turn."""
    for i, data in enumerate(node_bytes(nodes)):
        node = {"apiVersion": "v1", "kind": "Node", **json.loads(data)}
        node["metadata"].setdefault("labels", {})["color"] = SHARDS[i % len(SHARDS)]
        yield node
    template = pod_template()
    for i in range(pods):
        pod = {"apiVersion": "v1", "kind": "Pod", **json.loads(template.bytes(7, i))}
        yield {**pod, "spec": {**pod["spec"], "schedulerName": SHARDS[i % len(SHARDS)]}}


async def measured(count, nodes, pods, *, real):
    """The row of so many processes."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))

        async def child(name, *command):
            quiet = {"OTEL_TRACES_EXPORTER": "none"}
            process = await Child.start(name, command, folder / f"{name}.log", quiet)
            stack.push_async_callback(process.stop)
            return process

        kubeconfig = folder / "kubeconfig"
        flags = ("--real",) if real else ()
        up = (program("berth"), "sandbox", "up", "--no-kubelets", "--kubeconfig", str(kubeconfig), *flags)
        sandbox = await child("sandbox", *up)
        await sandbox.wait_for(kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=32)
        stack.push_async_callback(transport.aclose)
        api = Api(transport)
        await create_all(api, list(objects(nodes, pods)))
        for color in SHARDS:
            held = lease(color, holderIdentity="predecessor", leaseDurationSeconds=3600, renewTime=MOMENT)
            await api.call("POST", LEASES, json.dumps(held).encode())
        file = folder / "scheduler.yaml"
        head = CONFIGURATION.format(kubeconfig=kubeconfig, elect="true", qps=NO_LIMIT, **ELECTION)
        file.write_text(head + SHARDED, encoding="utf-8")
        schedulers = [await started(child, f"s{number}", file) for number in range(count)]
        _, version = await current_pods(transport)
        events = pod_events(transport, version)
        before = [scheduler.usage().cpu_seconds for scheduler in schedulers], cpu_of_all(sandbox.pid)
        freed = json.dumps({"spec": {"holderIdentity": ""}}).encode()
        for color in SHARDS:
            path = f"{LEASES}/kube-scheduler-{color}"
            await api.call("PATCH", path, freed, content_type=MERGE_PATCH)
        bound = await bindings(events, pods)
        used = [s.usage().cpu_seconds - b for s, b in zip(schedulers, before[0], strict=True)]
        around = cpu_of_all(sandbox.pid) - before[1]
        each = " + ".join(f"{seconds:.1f} s" for seconds in used)
        total = len(bound)
        return f"{total:,}", rate(bound), sum(used) * 1e3 / total, each, around * 1e3 / total


MOMENT = "2026-01-01T00:00:00.000000Z"


async def started(child, name, file):
    """A scheduler that knows everything and leads nothing yet."""
    surface = Surface.free()
    scheduler = await child(
        name,
        *(program("berth"), "scheduler", f"--config={file}"),
        *("--bind-address=127.0.0.1", f"--secure-port={surface.port}"),
        "--authorization-always-allow-paths=/*",
    )
    await surface.wait_ready(scheduler, READY_SECONDS)
    return scheduler


async def bindings(events, pods):
    """The moment and the shard of each binding."""
    bound = {}
    async with asyncio.timeout(LONGEST_SECONDS), aclosing(events):
        async for _, pod in events:
            if pod["spec"].get("nodeName"):
                seen = time.monotonic(), pod["spec"]["schedulerName"]
                bound.setdefault(pod["metadata"]["name"], seen)
            if len(bound) == pods:
                break
    return list(bound.values())


def rate(bound):
    """Bindings a second while both shards are at work."""
    moments = [sorted(moment for moment, color in bound if color == shard) for shard in SHARDS]
    since, until = max(each[0] for each in moments), min(each[-1] for each in moments)
    if until <= since:
        return "never both"
    return sum(since <= moment <= until for each in moments for moment in each) / (until - since)


def huge(nodes, placed, rounds):
    """One process's cache and snapshot of a cluster of that size, and decisions on it."""
    before = resident_mebibytes()
    began = time.process_time()
    core = Core.of(nodes, placed)
    built = time.process_time() - began
    gc.collect()
    resident = resident_mebibytes() - before
    template = pod_template()
    others = [read_pod(template.bytes(i + 1)) for i in range(APPS + rounds)]
    equals = [read_pod(template.bytes(7, n + nodes)) for n in range(20 + rounds)]
    _, new = asyncio.run(timed(core, others, APPS))
    known, _ = asyncio.run(of_known_class(core, equals))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    click.echo(f"load: {os.getloadavg()[0]:.1f}", err=True)
    table = Table(
        f"one process, {nodes:,} nodes, {placed:,} placed pods",
        ["built, CPU s", "MiB", "KiB a pod", "peak MiB", "new class p50 µs", "p90", "known p50 µs", "p90"],
    )
    table.add(built, resident, resident * 1024 / placed, peak, new[0], new[1], known[0], known[1])
    return table


def resident_mebibytes():
    """What the process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / MEBIBYTE
