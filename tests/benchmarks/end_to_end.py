"""Pods through sandbox and scheduler as real processes: throughput, and what a pod costs the scheduler.

The pods are there before the scheduler starts, so no submitter works beside the two while it is measured.
Where kube-scheduler's program is at hand (tests/kube_scheduler.py), it does the same work. It sends protobuf,
its default, and reads JSON: the sandbox sends nothing else.
"""

import asyncio
import json
import os
import tempfile
import time
from collections import defaultdict
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.dataset import open_dataset
from berth.demo.files import RunFiles
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import described, node_bytes, pod_template
from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.pod_events import current_pods, pod_events

NODES = 5_000
SIDECAR = "trace with gpu-share"
READY_SECONDS = 60.0
LONGEST_SECONDS = 90


def run(options):
    """One table: each kind of pods by Berth and, where it is at hand, by kube-scheduler."""
    pods = options.pods or 1_500
    which = "a real API server" if options.real else "the sandbox"
    table = Table(
        f"end to end on {which}, events on (goals: 0.33 ms CPU a pod for equal pods, 0.5 ms for 500 classes)",
        ["pods", "bound", "pods/s", "CPU ms a pod", "peak MiB", "API server's CPU ms a pod"],
    )
    real = ("--real",) if options.real else ()
    kinds = {work["name"]: partial(alike, work, pods) for work in described()["throughput"]}
    kinds["trace, no sidecar"] = partial(traced, pods, "default-scheduler")
    for name, objects in kinds.items():
        if options.match not in name:
            continue
        ours = asyncio.run(measured(objects(), flags=real))
        table.add(name, *cells(ours))
        if theirs := kube_scheduler():
            other = asyncio.run(measured(objects(), (theirs,), flags=real))
            table.add("  by kube-scheduler", *cells(other))
            table.add("  times", "", ratio(ours, other, "rate"), ratio(ours, other, "cpu_ms"), *[""] * 2)
    if options.match in SIDECAR:
        row = asyncio.run(measured(traced(pods, "gpu-share"), flags=real, sidecar=True))
        table.add(SIDECAR, *cells(row))
    table.show()
    if not kube_scheduler():
        click.echo(WITHOUT)


@dataclass(frozen=True)
class Measured:
    """A scheduler at work: pods a second, and milliseconds of CPU for each of them."""

    pods: int
    bound: int
    rate: float
    cpu_ms: float
    peak_mebibytes: float
    around_cpu_ms: float
    """What the API server and its store used, all processes of it."""


def cells(row):
    return f"{row.bound:,} of {row.pods:,}", row.rate, row.cpu_ms, row.peak_mebibytes, row.around_cpu_ms


def ratio(ours, theirs, figure):
    return f"{getattr(ours, figure) / getattr(theirs, figure):.2f}"


def alike(work, pods):
    """Nodes, and pods of one of `throughput`'s kinds."""
    templates = [pod_template(spec) for spec in work.get("specs", [{}])]
    nodes = [json.loads(data) for data in node_bytes(NODES)]
    return [{"apiVersion": "v1", "kind": "Node", **node} for node in nodes], [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            **json.loads(templates[i % len(templates)].bytes(i % work["classes"] + 1, i)),
        }
        for i in range(pods)
    ]


def traced(pods, scheduler_name):
    """The production trace's nodes, and its first pods, all for that profile."""
    objects = open_dataset(None, seed=0).load()
    chosen = [
        {**pod, "spec": {**pod["spec"], "schedulerName": scheduler_name}} for pod in objects.pods[:pods]
    ]
    return [*objects.others, *objects.nodes], chosen


async def measured(objects, command=("berth", "scheduler"), *, flags=(), sidecar=False):
    """What the scheduler did with these nodes and pods."""
    around, pods = objects
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        cluster = await Cluster.up(stack, folder, flags)
        await create_all(Api(cluster.transport), [*around, *pods])
        _, version = await current_pods(cluster.transport)
        events = pod_events(cluster.transport, version)
        scheduler, _ = await cluster.scheduler(command, sidecar=sidecar)
        return await watched(events, scheduler, cluster.sandbox, len(pods))


@dataclass(frozen=True)
class Cluster:
    """An API server as a process, a connection to it, and what a scheduler on it is started with."""

    stack: AsyncExitStack
    files: RunFiles
    sandbox: Child
    transport: Transport

    @classmethod
    async def up(cls, stack, folder, flags=()):
        """Start the API server; it ends with the stack."""
        files = RunFiles(folder, folder)
        files.prepare()
        kubeconfig = str(files.kubeconfig)
        up = (program("berth"), "sandbox", "up", "--kubeconfig", kubeconfig, *flags)
        sandbox = await child(stack, files, "sandbox", up)
        await sandbox.wait_for(files.kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=kubeconfig), max_connections=32)
        stack.push_async_callback(transport.aclose)
        return cls(stack, files, sandbox, transport)

    async def scheduler(self, command, *, sidecar=False, open_paths="/readyz,/metrics"):
        """Start a scheduler, with the trace's plugin or without one; its process and its secure port."""
        files, plugins = self.files, []
        if sidecar:
            plugin = (program("berth-gpu-share"), "--address", f"unix:{files.socket}")
            await (await child(self.stack, files, "gpu-share", plugin)).wait_for(files.socket, READY_SECONDS)
            plugins = [f"--plugins={files.plugins}"]
        else:
            configuration = files.configuration.read_text(encoding="utf-8").partition("profiles:")[0]
            files.configuration.write_text(configuration, encoding="utf-8")
        surface = Surface.free()
        arguments = (
            program(command[0]),
            *command[1:],
            f"--config={files.configuration}",
            f"--secure-port={surface.port}",
            "--bind-address=127.0.0.1",
            f"--authorization-always-allow-paths={open_paths}",
            *plugins,
        )
        return await child(self.stack, files, "scheduler", arguments), surface.port


async def child(stack, files, name, command):
    """A process that ends with the stack."""
    process = await Child.start(name, command, files.log(name), {})
    stack.push_async_callback(process.stop)
    return process


async def watched(events, scheduler, sandbox, pods):
    """A scheduler at work, from its first binding to its last, as a watcher of the pods sees it.

    It is not asked for metrics: a scheduler with many of them would work for us.
    """
    before, first, decided, bound = None, 0, set(), {}
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_SECONDS), aclosing(events):
            async for _, pod in events:
                name, on = outcome(pod)
                if on:
                    bound.setdefault(name, time.monotonic())
                if on is not None:
                    decided.add(name)
                if bound and before is None:
                    before, first = (scheduler.usage().cpu_seconds, cpu_of_all(sandbox.pid)), len(bound)
                if len(decided) == pods:
                    break
    usage, around, since = scheduler.usage(), cpu_of_all(sandbox.pid), min(bound.values())
    done = max(len(bound) - first, 1)
    return Measured(
        pods,
        len(bound),
        done / (max(bound.values()) - since),
        (usage.cpu_seconds - before[0]) * 1e3 / done,
        usage.peak_mebibytes,
        (around - before[1]) * 1e3 / done,
    )


def cpu_of_all(pid):
    """CPU seconds of a process and of all that it started."""
    used, children = {}, defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            each = int(stat.parent.name)
            children[int(fields[1])].append(each)
            used[each] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    waiting, total = [pid], 0.0
    while waiting:
        each = waiting.pop()
        total += used.get(each, 0.0)
        waiting += children[each]
    return total


def outcome(pod):
    """A pod's name, and its node: empty where it fits nowhere, None where that is not decided."""
    rejected = (c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", ()))
    return pod["metadata"]["name"], pod["spec"].get("nodeName") or ("" if any(rejected) else None)
