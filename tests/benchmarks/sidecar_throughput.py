"""Pods through sandbox, scheduler and sidecars as real processes: what plugins cost the throughput.

One sandbox serves all rows; for each row its pods come first, then a scheduler of its own with its plugins.
The pods are there before the scheduler, so that no submitter works beside those that are measured.
"""

import asyncio
import json
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from berth.client.api import Api
from berth.client.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import node_bytes, pod_template
from tests.sockets import listens

NODES = 5_000
PODS = 600
READY_SECONDS = 60.0
LONGEST_SECONDS = 180.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Setting:
    """A row: its name, and the command of a plugin that is started so many times, or of a webhook."""

    name: str
    command: tuple[str, ...] = ()
    count: int = 0
    shadow: bool = False
    extender: bool = False


def settings(commands, webhook):
    """The rows for plugins in these languages; `commands` take a name and an address."""
    return [
        Setting("none"),
        *(
            Setting(f"{language}: {count}", command, count)
            for language, command in commands
            for count in (1, 3)
        ),
        *(Setting(f"{language}: 1 in shadow", command, 1, shadow=True) for language, command in commands[:1]),
        Setting("HTTP extender, names only", webhook, 1, extender=True),
    ]


async def measure(rows, pods):
    """A table with one line for each setting."""
    table = Table(
        f"throughput with plugins outside, {NODES:,} nodes, {pods:,} pods, events on, real processes",
        ["plugins", "pods/s", "to none", "to the extender", "CPU ms a pod", "peak MiB"],
    )
    found = {}
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        async with cluster(Path(folder)) as api:
            for number, row in enumerate(rows):
                found[row] = await measured(Path(folder), api, row, number, pods)
    first, last = found[rows[0]][0], found[rows[-1]][0]
    for row, (speed, *others) in found.items():
        table.add(row.name, speed, f"{speed / first:.2f}", f"{speed / last:.2f}", *others)
    return table


@asynccontextmanager
async def cluster(folder):
    """A sandbox with the nodes; the API of it."""
    sandbox = await Child.start(
        "sandbox",
        [program("berth"), "sandbox", "up", "--kubeconfig", str(folder / "kubeconfig")],
        folder / "sandbox",
    )
    try:
        await sandbox.wait_for(folder / "kubeconfig", READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(folder / "kubeconfig")), max_connections=32)
        api = Api(transport)
        nodes = [{"apiVersion": "v1", "kind": "Node", **json.loads(data)} for data in node_bytes(NODES)]
        await create_all(api, nodes)
        yield api
        await transport.aclose()
    finally:
        await sandbox.stop()


async def measured(folder, api, row, number, pods):
    """(pods a second, CPU ms of the scheduler for each, its peak memory)."""
    template = pod_template()
    first = number * pods
    documents = [json.loads(template.bytes(i % 500 + 1, first + i)) for i in range(pods)]
    await create_all(api, [{"apiVersion": "v1", "kind": "Pod", **each} for each in documents])
    children = []
    try:
        await outside(folder, row, children)
        surface = Surface.free()
        scheduler = await Child.start("scheduler", command(folder, surface), folder / f"scheduler-{number}")
        children.append(scheduler)
        return await watched(scheduler, surface, pods)
    finally:
        for child in reversed(children):
            await child.stop()


async def outside(folder, row, children):
    """Start what the row has outside the scheduler, and write the files that tell the scheduler of it."""
    plugins = []
    for i in range(0 if row.extender else row.count):
        name, socket = f"bench-{i}", folder / f"{i}.sock"
        child = await Child.start(name, [*row.command, name, f"unix:{socket}"], folder / name)
        children.append(child)
        await serving(child, lambda socket=socket: listens(socket))
        plugins.append({"name": name, "address": f"unix:{socket}", "shadow": row.shadow})
    enabled = [{"name": each["name"]} for each in plugins]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(folder / "kubeconfig"), "qps": -1},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    if row.extender:
        log = folder / "webhook"
        child = await Child.start("webhook", row.command, log)
        children.append(child)
        await serving(child, lambda: log.read_text(encoding="utf-8").strip())
        configuration["extenders"] = [
            {
                "urlPrefix": f"http://127.0.0.1:{log.read_text(encoding='utf-8').strip()}",
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": 1,
                "nodeCacheCapable": True,
            }
        ]
    listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": plugins}
    (folder / "scheduler.json").write_text(json.dumps(configuration), encoding="utf-8")
    (folder / "plugins.json").write_text(json.dumps(listed), encoding="utf-8")


async def serving(child, serves):
    """Wait until the process serves."""
    async with asyncio.timeout(READY_SECONDS):
        while not serves():
            child.check()
            await asyncio.sleep(0.05)


def command(folder, surface, paths="/readyz,/metrics"):
    """The scheduler's command; anybody may see these paths."""
    return [
        program("berth"),
        "scheduler",
        f"--config={folder / 'scheduler.json'}",
        f"--plugins={folder / 'plugins.json'}",
        f"--secure-port={surface.port}",
        "--bind-address=127.0.0.1",
        f"--authorization-always-allow-paths={paths}",
    ]


async def watched(scheduler, surface, pods):
    """From the first look on, since pods are bound before the scheduler says that it is ready."""
    await surface.wait_ready(scheduler, READY_SECONDS)
    first = seen = (await surface.progress()).bound
    started = last = time.monotonic()
    before = scheduler.usage()
    async with asyncio.timeout(LONGEST_SECONDS):
        while seen < pods:
            await asyncio.sleep(LOOK_SECONDS)
            scheduler.check()
            if (bound := (await surface.progress()).bound) != seen:
                seen, last = bound, time.monotonic()
    usage = scheduler.usage()
    done = max(seen - first, 1)
    cpu_milliseconds = (usage.cpu_seconds - before.cpu_seconds) * 1e3 / done
    return done / max(last - started, LOOK_SECONDS), cpu_milliseconds, usage.peak_mebibytes
