"""Pods through sandbox, scheduler and sidecars as real processes: what plugins cost the throughput.

    python -m tests.benchmarks sidecar_throughput --match by --pods 2000 --rounds 3

Rows take turns, each with a sandbox, a scheduler and plugins of its own. The pods are there before the
scheduler, so that no submitter works beside those that are measured.
"""

import asyncio
import json
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from tests.benchmarks.sidecar_commands import (
    LOCAL_PLUGIN,
    OVER_GRPC,
    PYTHON_PLUGIN,
    WITHOUT_PODS,
    languages,
)
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import node_bytes, pod_template
from tests.sockets import listens

NODES = 5_000
PODS = 2_000
KINDS = 500
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


def run(options):
    """A table with the settings whose name `--match` is in, beside none; `--rounds` of each, in turns."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        none, *others = settings(languages(Path(folder)))
        rows = [none, *(row for row in others if options.match in row.name)]
        asyncio.run(measure(rows, options.pods or PODS, options.rounds or 1)).show()


def settings(commands):
    """The rows, none first, for plugins in these languages."""
    python, *others = [(language, tuple(command)) for language, command in commands]
    in_turn = [
        python,
        ("Python, over gRPC", tuple(OVER_GRPC)),
        *others,
        ("Python, by node", tuple(LOCAL_PLUGIN)),
        ("Python, by node without pods", tuple(WITHOUT_PODS)),
    ]
    return [
        Setting("none"),
        *(
            Setting(f"{language}: {count}", command, count)
            for language, command in in_turn
            for count in (1, 3)
        ),
        Setting(f"{python[0]}: 1 in shadow", python[1], 1, shadow=True),
        Setting("HTTP extender, names only", (*PYTHON_PLUGIN, "http"), 1, extender=True),
    ]


async def measure(rows, pods, rounds):
    """A table with one line for each setting: medians, and the slowest and quickest round."""
    table = Table(
        f"throughput with plugins outside, {NODES:,} nodes, {pods:,} pods, events on, real processes",
        ["plugins", "pods/s", "from", "to", "to none", "CPU ms a pod", "peak MiB"],
    )
    found = {row: [] for row in rows}
    for _ in range(rounds):
        for row in rows:
            found[row].append(await measured(row, pods))
    without = median(speed for speed, _, _ in found[rows[0]])
    for row, samples in found.items():
        speeds, cpu, peak = zip(*samples, strict=True)
        speed = median(speeds)
        table.add(
            row.name, speed, min(speeds), max(speeds), f"{speed / without:.2f}", median(cpu), median(peak)
        )
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


async def measured(row, pods):
    """(pods a second, CPU ms of the scheduler for each, its peak memory)."""
    template = pod_template()
    documents = [json.loads(template.bytes(i % KINDS + 1, i)) for i in range(pods)]
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        async with cluster(folder) as api:
            await create_all(api, [{"apiVersion": "v1", "kind": "Pod", **each} for each in documents])
            children = []
            try:
                await outside(folder, row, children)
                surface = Surface.free()
                scheduler = await Child.start("scheduler", command(folder, surface), folder / "scheduler")
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
