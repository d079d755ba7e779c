"""Plugins in five languages under load, each killed, frozen and replaced once: nothing may grow.

    python -m tests.benchmarks plugin_soak --minutes 30

Pods come 200 a second, as far as the machine lets them be bound, and go once 2,000 younger ones are there.
The memory of each process is looked at from the fifth minute on, or from a sixth of a shorter run; one whose
least in the last third is above its most in the first third grew, and the run fails, as it does where the
API server's own objects show a node with more requested on it than it has.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import click

from berth.client.errors import ClientError
from berth.client.resources import NODES, PODS
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from berth.objects.pods.pod_requests import pod_requests
from berth.objects.quantity import nanos
from tests.benchmarks.sidecar_commands import languages
from tests.benchmarks.sidecar_throughput import cluster, command, serving
from tests.benchmarks.soak import mean, thirds
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import pod_template, read_pod
from tests.hostile.probes import resident_mebibytes
from tests.sockets import listens

PODS_A_SECOND, LIVING_PODS, AT_ONCE = 200, 2_000, 50
SAMPLE_SECONDS, FROZEN_SECONDS, AWAY_SECONDS = 5.0, 5.0, 2.0
WARM_UP_SECONDS, WARM_UP = 300.0, 1 / 6
READY_SECONDS = 90.0
GROWTH = 1.05
"""What is no noise."""


@dataclass
class Plugin:
    """A plugin of one language: its process, and how often it was replaced."""

    name: str
    start: list[str]
    folder: Path
    version: int = 0
    child: Child | None = None

    @property
    def socket(self):
        return self.folder / f"{self.name}-{self.version}.sock"

    async def run(self):
        """Start its process and wait until it serves."""
        self.child = await Child.start(
            self.name, [*self.start, self.name, f"unix:{self.socket}"], self.folder / self.name
        )
        await serving(self.child, lambda: listens(self.socket))


@dataclass
class Seen:
    """The memory of each process over time, in MiB, and what was done to plugins."""

    memory: dict[str, list[float]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    bound: int = 0
    seconds: float = 0.0


def run(options):
    """The table of memory; ends with 1 where some grew, or a node has more on it than it can hold."""
    with tempfile.TemporaryDirectory(prefix="berth-", ignore_cleanup_errors=True) as folder:
        seen, too_much = asyncio.run(soaked(Path(folder), languages(Path(folder)), options.minutes * 60))
    speed = f"{seen.bound:,} pods bound, {seen.bound / seen.seconds:.0f} a second"
    table = Table(
        f"resident MiB, {options.minutes:g} minutes, {speed}",
        ["process", "first third", "middle", "last third", "most"],
    )
    grown = []
    for name, series in seen.memory.items():
        first, middle, last = thirds(series)
        table.add(name, mean(first), mean(middle), mean(last), max(series))
        if min(last) > GROWTH * max(first):
            grown.append(name)
    table.show()
    click.echo("; ".join(seen.done))
    click.echo(f"nodes with more requested than they have: {len(too_much)} {too_much[:3]}")
    click.echo(f"grew: {', '.join(grown) or 'none'}")
    if grown or too_much:
        sys.exit(1)


async def soaked(folder, commands, seconds):
    """What was seen, and the nodes that hold too much in the end."""
    plugins = [Plugin(name.lower().replace(" ", "-"), start, folder) for name, start in commands]
    seen = Seen()
    async with cluster(folder) as api:
        scheduler, surface = None, Surface.free()
        try:
            for plugin in plugins:
                await plugin.run()
            write_configuration(folder, plugins)
            started = command(folder, surface, "/readyz,/metrics,/plugins")
            scheduler = await Child.start("scheduler", started, folder / "scheduler")
            await surface.wait_ready(scheduler, READY_SECONDS)
            tasks = [
                asyncio.create_task(churn(api)),
                asyncio.create_task(troubled(plugins, surface, seconds, seen)),
            ]
            try:
                await sampled(scheduler, plugins, surface, seconds, seen)
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
            if failed := [e for e in ended if e and not isinstance(e, asyncio.CancelledError)]:
                raise failed[0]
            return seen, await overcommitted(api)
        finally:
            for child in (scheduler, *(plugin.child for plugin in plugins)):
                if child is not None:
                    await child.stop()


def write_configuration(folder, plugins):
    """One profile with all of them."""
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": plugin.name} for plugin in plugins]}},
    }
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(folder / "kubeconfig"), "qps": -1},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    listed = [{"name": plugin.name, "address": f"unix:{plugin.socket}"} for plugin in plugins]
    document = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": listed}
    (folder / "scheduler.json").write_text(json.dumps(configuration), encoding="utf-8")
    (folder / "plugins.json").write_text(json.dumps(document), encoding="utf-8")


async def churn(api):
    """Pods that come at the rate wanted and go in the order in which they came."""
    template, living, began = pod_template(), deque(), time.monotonic()
    for batch in count():
        first = batch * AT_ONCE
        documents = [json.loads(template.bytes(i % 500 + 1, i)) for i in range(first, first + AT_ONCE)]
        await create_all(api, [{"apiVersion": "v1", "kind": "Pod", **each} for each in documents])
        living.extend(each["metadata"]["name"] for each in documents)
        while len(living) > LIVING_PODS:
            with suppress(ClientError):
                await api.delete(PODS, "default", living.popleft())
        await asyncio.sleep(max(0.0, began + (first + AT_ONCE) / PODS_A_SECOND - time.monotonic()))


async def troubled(plugins, surface, seconds, seen):
    """Kill, freeze and replace each plugin once, spread over the run."""
    deeds = [(deed, plugin) for deed in (killed, frozen, replaced) for plugin in plugins]
    for deed, plugin in deeds:
        await asyncio.sleep(0.9 * seconds / len(deeds))
        await deed(plugin, surface)
        seen.done.append(f"{plugin.name} {deed.__name__}")


async def killed(plugin, _surface):
    """End it without a word, and start it again on the same socket."""
    os.kill(plugin.child.pid, signal.SIGKILL)
    await plugin.child.wait()
    await asyncio.sleep(AWAY_SECONDS)
    plugin.socket.unlink(missing_ok=True)
    await plugin.run()


async def frozen(plugin, _surface):
    """Stop it for a while."""
    os.kill(plugin.child.pid, signal.SIGSTOP)
    await asyncio.sleep(FROZEN_SECONDS)
    os.kill(plugin.child.pid, signal.SIGCONT)


async def replaced(plugin, surface):
    """Attach another version beside it, which takes over, and end the old one."""
    old, plugin.version = plugin.child, plugin.version + 1
    await plugin.run()
    server = ["--server", f"https://127.0.0.1:{surface.port}", "--insecure-skip-tls-verify"]
    attach = ["plugin", "attach", plugin.name, "--address", f"unix:{plugin.socket}"]
    said = await asyncio.create_subprocess_exec(
        program("berth"), *attach, "--profile", "default-scheduler", *server
    )
    if await said.wait() != 0:
        raise RuntimeError(f"{plugin.name} was not replaced")
    await old.stop()


async def sampled(scheduler, plugins, surface, seconds, seen):
    """Look at all processes until the time is over."""
    began = time.monotonic()
    first = (await surface.progress()).bound
    warm = min(WARM_UP_SECONDS, WARM_UP * seconds)
    while (now := time.monotonic() - began) < seconds:
        await asyncio.sleep(SAMPLE_SECONDS)
        scheduler.check()
        if now < warm:
            continue
        for name, child in (("scheduler", scheduler), *((plugin.name, plugin.child) for plugin in plugins)):
            if mebibytes := resident_mebibytes(child.pid):
                seen.memory.setdefault(name, []).append(mebibytes)
    seen.bound = (await surface.progress()).bound - first
    seen.seconds = time.monotonic() - began


async def overcommitted(api):
    """The nodes on which more is requested than they have, by what the API server says."""
    nodes = json.loads(await api.call("GET", NODES.collection("")))["items"]
    pods = json.loads(await api.call("GET", PODS.collection("")))["items"]
    used = {}
    for document in pods:
        if node := document["spec"].get("nodeName"):
            totals = used.setdefault(node, Counter())
            totals.update(pod_requests(read_pod(json.dumps(document).encode())))
            totals["pods"] += nanos("1")
    return [
        node["metadata"]["name"]
        for node in nodes
        for resource, amount in used.get(node["metadata"]["name"], {}).items()
        if amount > nanos(node["status"]["allocatable"].get(resource, "0"))
    ]
