"""What sidecars add to a cycle: sidecars beside an HTTP extender.

`sidecar_throughput` has what they cost the throughput.
"""

import asyncio
import gc
import json
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import uvloop
from msgspec.structs import replace

from berth.binding.waiting_pods import WaitingPods
from berth.config import load
from berth.config.out_of_tree.sidecars import SidecarSpec, catalogue_of
from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.framework.clock import SystemClock
from berth.framework.interface import FilterPlugin, Reason, ScorePlugin
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.extender import ExtenderContext, HttpExtenders
from berth.out_of_tree.host import PluginHost
from berth.plugins.priority_sort import PrioritySort
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.queue.scheduling_queue import SchedulingQueue
from berth.testing.handles import Unstarted, make_handle
from tests.benchmarks.sidecar_commands import LOCAL_PLUGIN, OVER_GRPC, PYTHON_PLUGIN, languages
from tests.benchmarks.sidecar_plugin import LEFT_OUT
from tests.benchmarks.sidecar_stages import marked, table_of
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import APPS, Core, node_bytes, pod_template, read_node, read_pod

ANSWERED_SECONDS = 0.02
"""A pause in which questions ahead are answered."""
NODES = 5_000
GOAL_MILLISECONDS = 0.4
WARM_UP = 3 * APPS
READY_SECONDS = 20.0


def run(options):
    """Three tables: what was added to a decision, and to one on a known class; the stages of a call."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        python, *others = languages(Path(folder))
        commands = [python, ("Python, over gRPC", OVER_GRPC), *others]
        rounds = options.rounds or 300
        uvloop.run(measure(rounds, commands)).show()
        uvloop.run(known(rounds)).show()
        uvloop.run(stages(rounds, [each for each in commands if each[1] is not OVER_GRPC])).show()


async def known(rounds):
    """Pods of one class, one after the other: rows that changed are asked about at their turn, or before."""
    table = Table(
        f"pods of a known class, {NODES:,} nodes, plugins in Python that answer by node, ms",
        [
            *("plugins", "none p50", "at its turn p50", "p99", "ahead p50", "p99"),
            *("added at its turn p50", "added ahead p50", "p99"),
        ],
    )
    for name, count, command in (
        ("1", 1, LOCAL_PLUGIN),
        ("3", 3, LOCAL_PLUGIN),
        ("1, over gRPC", 1, [*LOCAL_PLUGIN, "--grpc"]),
    ):
        async with with_sidecars(count, command) as (core, host, _):
            taken = {}
            async for which, seconds in known_turns(core, host, rounds):
                taken.setdefault(which, []).append(seconds * 1e3)
            none, turn, ahead = (quantiles(taken[which], 0.5, 0.99) for which in ("none", "turn", "ahead"))
            added = turn[0] - none[0], ahead[0] - none[0], ahead[1] - none[1]
            table.add(name, none[0], *turn, *ahead, *added)
    return table


async def known_turns(core, host, rounds):
    """Decisions and their seconds: without plugins, asked at their turn, and asked before, in turns.

    Each pod is assumed, so that there is a row that changed for each of the others.
    """
    frameworks = {"none": core.default_profile(), "turn": core.framework, "ahead": core.framework}
    parts = with_own_classes(core, frameworks)
    template, decode = pod_template(), host.pods.decoding(read_pod)
    gc.collect()
    gc.freeze()
    for i in range(WARM_UP + 3 * rounds):
        which = list(parts)[i % 3]
        core.framework, core.algorithm = parts[which]
        pod = decode(template.bytes(1, i + 1))
        if which == "ahead":
            host.ask_ahead()
        await asyncio.sleep(ANSWERED_SECONDS)
        started = time.perf_counter()
        core.cache.update_snapshot(core.snapshot)
        decision = await core.decide(pod)
        taken = time.perf_counter() - started
        assert decision.status.ok, decision.status.message
        core.cache.assume_pod(pod.placed_on(decision.node_name))
        if i >= WARM_UP:
            yield which, taken
    gc.unfreeze()


def with_own_classes(core, frameworks):
    """Each framework with an algorithm: a profile's classes are forgotten where its plugins change."""
    search, chance = core.algorithm.search, core.algorithm.chance
    return {
        which: (framework, SchedulePod(search, chance, EquivalenceCache(core.snapshot)))
        for which, framework in frameworks.items()
    }


async def measure(rounds, commands):
    table = Table(
        f"plugins outside, {NODES:,} nodes, filter and score, ms (goal: {GOAL_MILLISECONDS} added)",
        [
            *("plugins", "none p50", "inside p50", "p50", "p90", "p99"),
            *("added p50", "added p99", "by being outside p50"),
        ],
    )

    async def row(name, core, rounds=rounds, decode=read_pod):
        none, inside, outside = await timed(core, rounds, decode)
        added = outside[0] - none[0], outside[2] - none[2], outside[0] - inside[0]
        table.add(name, none[0], inside[0], *outside, *added)

    for language, command in commands:
        for count in (1, 3):
            async with with_sidecars(count, command) as (core, host, _):
                await row(f"sidecars in {language}: {count}", core, decode=host.pods.decoding(read_pod))
    async with with_sidecars(1, commands[0][1], shadow=True) as (core, host, _):
        await row(f"in {commands[0][0]}, in shadow: 1", core, decode=host.pods.decoding(read_pod))
    async with with_extender() as core:
        await row("HTTP extender, names only", core, min(rounds, 100))
    return table


async def timed(core, rounds, decode):
    """Milliseconds of a decision, p50, p90, p99: without plugins, with the same here, with them outside."""
    taken = {}
    async for which, seconds in turns(core, rounds, decode):
        taken.setdefault(which, []).append(seconds * 1e3)
    return [quantiles(samples, 0.5, 0.9, 0.99) for samples in taken.values()]


async def turns(core, rounds, decode):
    """Decisions and their seconds, "none", "inside" and "outside" in turns.

    What else goes on shows in all of them alike. Each decision is worked out from nothing, once the cluster
    has run for a while. Only what is decided outside is assumed, just before the next such turn: a step of
    the state is in its figures.
    """
    outside = core.framework
    asked = sum(not plugin.in_process for plugin in outside.plugins.filter) + len(outside.extenders)
    frameworks = {"none": core.default_profile(), "inside": with_inside(core, asked), "outside": outside}
    template, assumed = pod_template(), None
    # Without what is known of classes every pod asks about all nodes.
    core.algorithm = SchedulePod(core.algorithm.search, core.algorithm.chance)
    gc.collect()
    gc.freeze()
    for i in range(WARM_UP + 3 * rounds):
        which = list(frameworks)[i % 3]
        core.framework = frameworks[which]
        pod = decode(template.bytes(i + 1))
        if which == "outside" and assumed is not None:
            core.cache.assume_pod(assumed)
        started = time.perf_counter()
        core.cache.update_snapshot(core.snapshot)
        decision = await core.decide(pod)
        taken = time.perf_counter() - started
        assert decision.status.ok, decision.status.message
        if which == "outside":
            assumed = pod.placed_on(decision.node_name)
        await asyncio.sleep(0)
        if i >= WARM_UP:
            yield which, taken
    gc.unfreeze()


def with_inside(core, count):
    """The default profile with so many plugins in this process that do what those outside do."""
    made = core.default_profile()
    plugins = [Inside() for _ in range(count)]
    scores = [*made.plugins.score, *((plugin, 1) for plugin in plugins)]
    made.take(replace(made.plugins, filter=[*made.plugins.filter, *plugins], score=scores))
    return made


class Inside(FilterPlugin, ScorePlugin):
    """Turns down every tenth node, and scores the others by their number."""

    reasons = (Reason("node(s) had the wrong number"),)

    def filter(self, _state, _pod, nodes):
        return (np.arange(len(nodes)) % LEFT_OUT == 0).astype(np.uint8)

    def score(self, _state, _pod, nodes):
        return np.arange(len(nodes)) % 101


async def stages(rounds, commands):
    found = {}
    for language, command in commands:
        async with with_sidecars(1, command) as (core, host, _):
            with marked() as marks:
                found[language] = [
                    dict(marks)
                    async for which, _ in turns(core, rounds, host.pods.decoding(read_pod))
                    if which == "outside"
                ]
    return table_of(found)


def host_of(core, specs, profiles, queue=None, **surroundings):
    """A host of these plugins on the core; without a queue of its own nothing waits."""
    return PluginHost(
        specs,
        profiles,
        cache=core.cache,
        snapshot=core.snapshot,
        answers=core.algorithm.cache,
        queue=queue or SchedulingQueue(PrioritySort(None, None).less, {}, SystemClock(), pod_lister=unknown),
        waiting_pods=WaitingPods(Unstarted(), SystemClock()),
        sampled=lambda _: False,
        watch=lambda _kind, _handler: lambda: None,
        rewire=lambda _: None,
        **surroundings,
    )


def unknown(_namespace, _name):
    """The watch has brought no pod."""


@asynccontextmanager
async def with_sidecars(count, command, *, shadow=False):
    """A core with so many sidecars, or shadows, its host, and their processes, each behind a unix socket.

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
        core = Core()
        host = host_of(core, specs, loaded.profiles)
        handle = make_handle(core.snapshot, listers=core.listers)
        registry = {**IN_TREE, **host.factories()}
        core.framework = build_frameworks(loaded.profiles, registry, lambda _: handle)["default-scheduler"]
        decode = host.nodes.decoding(read_node)
        for data in node_bytes(NODES):
            core.cache.add_node(decode(data))
        core.cache.update_snapshot(core.snapshot)
        async with started(*([*command, spec.name, spec.address] for spec in specs)) as processes:
            await appeared([Path(spec.address.removeprefix("unix:")) for spec in specs])
            tasks = [asyncio.create_task(work) for _, work in host.work()]
            try:
                await host.settle(READY_SECONDS)
                if shadow:
                    enabled = EnabledPlugins(core.framework)
                    for plugin in host.plugins.values():
                        enabled.set_aside(plugin)
                        host.shadows.enter(plugin, core.framework, enabled)
                yield core, host, [process.pid for process in processes]
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
        around = ExtenderContext(RawObjects[Node](), RawObjects[Pod]())
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
