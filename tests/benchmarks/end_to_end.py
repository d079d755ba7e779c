"""Pods through sandbox and scheduler as real processes: throughput, and what a pod costs the scheduler.

The pods are there before the scheduler starts, so that nobody else works beside the two while it is measured.
Where kube-scheduler's program is at hand (tests/kube_scheduler.py), it does the same work. It sends protobuf,
its default, and reads JSON: the sandbox sends nothing else.
"""

import asyncio
import json
import tempfile
import time
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

import click

from berth.client.api import Api
from berth.client.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.files import RunFiles
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from berth.sandbox.dataset import open_dataset
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import described, node_bytes, pod_template
from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.pod_events import current_pods, pod_events

READY_SECONDS = 60.0
LONGEST_SECONDS = 90


def run(options):
    """One table."""
    pods = options.pods or 1_500
    table = Table(
        "end to end, events on (goals: twice kube-scheduler in the same run, 0.33 ms CPU a pod)",
        ["cluster", "pods", "bound", "pods/s", "CPU ms a pod", "peak MiB"],
    )
    real = ("--real",) if options.real else ()
    for name, objects in (
        ("5,000 nodes, plain pods", lambda: plain(pods)),
        ("5,000 nodes, spread and apart", lambda: plain(pods, "spreading and")),
        ("trace's nodes and pods, no sidecar", lambda: traced(pods, "default-scheduler")),
    ):
        table.add(name, *asyncio.run(measured(objects(), flags=real)))
        if theirs := kube_scheduler():
            row = asyncio.run(measured(objects(), (theirs,), flags=real))
            table.add("  the same by kube-scheduler", *row)
    sidecar = measured(traced(pods, "gpu-share"), flags=real, sidecar=True)
    table.add("trace's nodes and pods with gpu-share", *asyncio.run(sidecar))
    table.show()
    if not kube_scheduler():
        click.echo(WITHOUT)


def plain(pods, workload="plain"):
    """Nodes and pods as the decisions are measured on."""
    work = next(work for work in described()["decisions"] if work["name"].startswith(workload))
    template = pod_template(work.get("spec"))
    nodes = [json.loads(data) for data in node_bytes(5_000)]
    return [{"apiVersion": "v1", "kind": "Node", **node} for node in nodes], [
        {"apiVersion": "v1", "kind": "Pod", **json.loads(template.bytes(i % 500 + 1, i))} for i in range(pods)
    ]


def traced(pods, scheduler_name):
    """The production trace's nodes, and its first pods, all for that profile."""
    objects = open_dataset(None, seed=0).load()
    chosen = [
        {**pod, "spec": {**pod["spec"], "schedulerName": scheduler_name}} for pod in objects.pods[:pods]
    ]
    return [*objects.others, *objects.nodes], chosen


async def measured(objects, command=("berth", "scheduler"), *, flags=(), sidecar=False):
    """(pods, bound, pods a second, CPU ms of the scheduler for each, its peak memory)."""
    around, pods = objects
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        files = RunFiles(folder, folder)
        files.prepare()

        async def child(name, *command):
            process = await Child.start(name, command, files.log(name), {})
            stack.push_async_callback(process.stop)
            return process

        kubeconfig = str(files.kubeconfig)
        sandbox = await child(
            "sandbox", program("berth"), "sandbox", "up", "--kubeconfig", kubeconfig, *flags
        )
        await sandbox.wait_for(files.kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=kubeconfig), max_connections=32)
        stack.push_async_callback(transport.aclose)
        await create_all(Api(transport), [*around, *pods])
        if sidecar:
            plugin = (program("berth-gpu-share"), "--address", f"unix:{files.socket}")
            await (await child("gpu-share", *plugin)).wait_for(files.socket, READY_SECONDS)
        else:
            configuration = files.configuration.read_text(encoding="utf-8").partition("profiles:")[0]
            files.configuration.write_text(configuration, encoding="utf-8")
        _, version = await current_pods(transport)
        events = pod_events(transport, version)
        surface = Surface.free()
        plugins = [f"--plugins={files.plugins}"] if sidecar else []
        scheduler = await child(
            "scheduler",
            program(command[0]),
            *command[1:],
            f"--config={files.configuration}",
            f"--secure-port={surface.port}",
            "--bind-address=127.0.0.1",
            "--authorization-always-allow-paths=/readyz,/metrics",
            *plugins,
        )
        return await watched(events, scheduler, len(pods))


async def watched(events, scheduler, pods):
    """The row of a scheduler at work, from its first binding to its last, as a watcher of the pods sees it.

    It is not asked for metrics: whoever has many of them would work for us.
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
                    before, first = scheduler.usage(), len(bound)
                if len(decided) == pods:
                    break
    usage, since = scheduler.usage(), min(bound.values())
    done = max(len(bound) - first, 1)
    return (
        f"{pods:,}",
        f"{len(bound):,}",
        done / (max(bound.values()) - since),
        (usage.cpu_seconds - before.cpu_seconds) * 1e3 / done,
        usage.peak_mebibytes,
    )


def outcome(pod):
    """A pod's name, and its node: empty where it fits nowhere, None where nobody knows yet."""
    rejected = (c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", ()))
    return pod["metadata"]["name"], pod["spec"].get("nodeName") or ("" if any(rejected) else None)
