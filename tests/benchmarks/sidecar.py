"""What plugins in other processes add to a cycle: one and three sidecars, beside an HTTP extender."""

import asyncio
import gc
import json
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

from berth.config import load
from berth.config.sidecars import SidecarSpec, catalogue_of
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.out_of_tree.extender import ExtenderSurroundings, HttpExtenders
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.raw_objects import RawObjects
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.testing.handles import make_handle
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import Core, node_bytes, pod_template, read_node, read_pod
from tests.go_toolchain import GO_SDK, build
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install

PYTHON_PLUGIN = [sys.executable, "-m", "tests.benchmarks.sidecar_plugin"]
NODES = 5_000
GOAL_MILLISECONDS = 0.4
WARM_UP = 20
READY_SECONDS = 20.0


def run(options):
    """One table: the time of a cycle, and what was added to it."""
    asyncio.run(measure(options.rounds or 300)).show()


async def measure(rounds):
    table = Table(
        f"plugins outside, {NODES:,} nodes, filter and score, ms (goal: {GOAL_MILLISECONDS} added)",
        ["plugins", "p50", "p90", "p99", "added p50", "added p99"],
    )
    base = await timed(Core.of(NODES), rounds)
    table.add("none", *base, "", "")
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        go_plugin = build("./internal/benchplugin", Path(folder, "plugin"), folder=GO_SDK)
        node_plugin = [str(NODE), FROM_SOURCE, str(NODE_SDK / "test/benchplugin.ts")]
        install()
        for language, command in (
            ("Python", PYTHON_PLUGIN),
            ("Go", [str(go_plugin)]),
            ("TypeScript", node_plugin),
        ):
            for count in (1, 3):
                async with with_sidecars(count, command) as (core, host):
                    figures = await timed(core, rounds, host.pods.decoding(read_pod))
                added = figures[0] - base[0], figures[2] - base[2]
                table.add(f"sidecars in {language}: {count}", *figures, *added)
    async with with_extender() as core:
        figures = await timed(core, min(rounds, 100))
    table.add("HTTP extender, names only", *figures, figures[0] - base[0], figures[2] - base[2])
    return table


async def timed(core, rounds, decode=read_pod):
    """Milliseconds of a decision, p50, p90, p99; every pod is assumed before the next is tried."""
    template = pod_template()
    taken = []
    gc.collect()
    gc.freeze()
    for i in range(rounds + WARM_UP):
        pod = decode(template.bytes(i + 1))
        started = time.perf_counter()
        core.cache.update_snapshot(core.snapshot)
        decision = await core.decide(pod)
        taken.append((time.perf_counter() - started) * 1e3)
        assert decision.status.ok, decision.status.message
        core.cache.assume_pod(pod.placed_on(decision.node_name))
        await asyncio.sleep(0)
    gc.unfreeze()
    return quantiles(taken[WARM_UP:], 0.5, 0.9, 0.99)


@asynccontextmanager
async def with_sidecars(count, command):
    """A core whose profile has so many sidecars, each a process of its own behind a unix socket.

    The command is followed by a name and an address.
    """
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        specs = [SidecarSpec(f"bench-{i}", f"unix:{folder}/{i}.sock") for i in range(count)]
        enabled = [{"name": spec.name, "weight": 1} for spec in specs]
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": enabled}}}
            ],
        }
        loaded = load(json.dumps(document), out_of_tree=catalogue_of(specs))
        host = PluginHost(specs, loaded.profiles, sampled=lambda _: False)
        core = Core()
        host.open(core.cache, core.snapshot)
        handle = make_handle(core.snapshot, listers=core.listers)
        registry = {**IN_TREE, **host.factories()}
        core.framework = build_frameworks(loaded.profiles, registry, lambda _: handle)["default-scheduler"]
        decode = host.nodes.decoding(read_node)
        for data in node_bytes(NODES):
            core.cache.add_node(decode(data))
        core.cache.update_snapshot(core.snapshot)
        async with started(*([*command, spec.name, spec.address] for spec in specs)):
            await appeared([Path(spec.address.removeprefix("unix:")) for spec in specs])
            tasks = [asyncio.create_task(work) for _, work in host.work()]
            try:
                await host.settle(READY_SECONDS)
                yield core, host
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def with_extender():
    """A core whose profile has one HTTP extender that is sent names."""
    async with started([*PYTHON_PLUGIN, "http"]) as [process]:
        port = int(await process.stdout.readline())
        entry = {
            "urlPrefix": f"http://127.0.0.1:{port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "nodeCacheCapable": True,
        }
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [entry],
        }
        around = ExtenderSurroundings(RawObjects[Node](), RawObjects[Pod]())
        extenders = HttpExtenders(load(json.dumps(document)).extenders, around)
        try:
            core = Core.of(NODES)
            core.framework.extenders = extenders
            yield core
        finally:
            await extenders.close()


@asynccontextmanager
async def started(*commands):
    """A process of each command, ended at the end."""
    pipe = asyncio.subprocess.PIPE
    processes = [await asyncio.create_subprocess_exec(*command, stdout=pipe) for command in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
            await process.communicate()


async def appeared(paths):
    async with asyncio.timeout(READY_SECONDS):
        while not all(path.exists() for path in paths):  # noqa: ASYNC110 - another process makes them
            await asyncio.sleep(0.05)
