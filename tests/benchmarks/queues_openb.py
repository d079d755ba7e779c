"""Three tenants with quotas on openb's nodes: who has the GPUs, with reclaim and without; and one tenant.

    python -m tests.benchmarks queues_openb --openb FOLDER [--nodes N] [--seeds N] [--match WAY]

Simulations with the plugins gpu-share (policy fgd) and queues as sidecars. Pods come once a second and stay,
until 130 % of the GPUs are asked for. Each of three tenants has a third of the GPUs as its quota and may
borrow the rest; the first tenant's pods come early, the third's late, who wants back what was borrowed.
One tenant has all of them, and is to have as much allocated as without queues.
"""

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from berth.demo.dataset import open_dataset
from berth.demo.dataset.shapes import MILLI_GPU
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.timeline import ARRIVAL
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.gpu_sharing_draw import SCHEDULER, drawn, milli_gpu
from tests.benchmarks.joint_openb import AFTERWARDS_SECONDS, USUAL_NODES, sampled
from tests.benchmarks.tables import Table

TENANTS = ("early", "even", "late")
PATIENCE = "60s"
SPACING_SECONDS = 1.0
"""Pods that fit nowhere are tried again every five minutes: at one a minute these would be most attempts."""


@dataclass(frozen=True)
class Way:
    """Which queues there are."""

    name: str
    tenants: tuple[str, ...] = ()
    reclaim: str = "Never"


WAYS = (
    Way("FGD without queues"),
    Way("one tenant", ("all",), "Quota"),
    Way("three tenants, no reclaim", TENANTS),
    Way("three tenants, reclaim", TENANTS, "Quota"),
)


def run(options):
    """A row for each way, the mean of all seeds."""
    objects = open_dataset(options.openb, seed=0).load()
    count = options.nodes or USUAL_NODES
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    title = f"{count} nodes of openb, {options.demand:.0%} of their GPUs asked for, {len(seeds)} runs"
    parts = [f"{name}, % of GPUs" for name in TENANTS]
    table = Table(title, ["way", "allocated, %", "placed", "evicted", *parts])
    for way in (each for each in WAYS if options.match in each.name):
        rows = [
            figures(drawn(sampled(objects, count, seed), options.demand, seed), way, seed) for seed in seeds
        ]
        table.add(way.name, *(f"{fmean(column):.1f}" for column in zip(*rows, strict=True)))
    table.show()


def figures(experiment, way, seed):
    """Allocation in percent, pods placed and evicted, and the part of each tenant in percent."""
    chance = np.random.default_rng(seed)
    asked = {}
    for number, pod in enumerate(experiment.pods):
        tenant = drawn_tenant(way, number / len(experiment.pods), chance)
        pod["metadata"]["namespace"] = tenant
        pod["metadata"].setdefault("annotations", {})[ARRIVAL] = str(SPACING_SECONDS * number)
        asked[f"{tenant}/{pod['metadata']['name']}"] = milli_gpu(pod)
    room = sum(int(node["status"]["allocatable"][MILLI_GPU]) for node in experiment.nodes)
    found = outcome(experiment, way, seed, room)
    evicted = {preemption.pod for preemption in found.preemptions}
    there = [placement.pod for placement in found.placements if placement.pod not in evicted]
    parts = (
        100 * sum(asked[pod] for pod in there if pod.startswith(f"{tenant}/")) / room for tenant in TENANTS
    )
    return (found.utilization[MILLI_GPU].percent, len(there), len(evicted), *parts)


def drawn_tenant(way, passed, chance):
    """The tenant of a pod that comes when that part of all has come."""
    if len(way.tenants) < len(TENANTS):
        return "all"
    weights = np.array([1 - passed, 0.5, passed])
    return str(chance.choice(TENANTS, p=weights / weights.sum()))


def outcome(experiment, way, seed, room):
    """The simulation of an experiment."""
    documents = [*experiment.others, *experiment.nodes, *queues(way, room), *experiment.pods]
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        (folder / "workload.json").write_text(json.dumps(experiment.workload), encoding="utf-8")
        (folder / "cluster.json").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
        (folder / "scheduler.yaml").write_text(configuration(folder, way, seed), encoding="utf-8")
        settings = read_scheduler(str(folder / "scheduler.yaml"), "")
        ends = SPACING_SECONDS * len(experiment.pods) + AFTERWARDS_SECONDS
        options = SimulationOptions(*settings, seed=seed, max_seconds=ends)
        return simulate(read_cluster([folder / "cluster.json"]), options)


def queues(way, room):
    """A root with all nodes, and a queue for each tenant."""
    if not way.tenants:
        return []
    specs = {"company": {"capacity": "Nodes"}}
    for tenant in way.tenants:
        quota = {MILLI_GPU: room // len(way.tenants)}
        specs[tenant] = {"parent": "company", "quota": quota, "namespaces": [tenant]}
    return [
        {
            "apiVersion": "queues.berth.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": spec,
        }
        for name, spec in specs.items()
    ]


def configuration(folder, way, seed):
    """The scheduler, and the plugins that it starts."""
    names = ["gpu-share", *(["queues"] if way.tenants else [])]
    plugins = {
        "multiPoint": {"enabled": [{"name": name} for name in names]},
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "gpu-share"}]},
        "postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "queues"}] if way.tenants else []},
    }
    if way.tenants:
        plugins["queueSort"] = {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "queues"}]}
    settings = [{"name": "gpu-share", "args": {"policy": "fgd", "ties": "used-first", "cpuPods": True}}]
    if way.tenants:
        settings.append({"name": "queues", "args": {"reclaim": way.reclaim}})
    profile = {"schedulerName": SCHEDULER, "plugins": plugins, "pluginConfig": settings}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podInitialBackoffSeconds": int(SPACING_SECONDS),
        "podMaxBackoffSeconds": int(SPACING_SECONDS),
        "profiles": [profile],
    }
    share = [sys.executable, "-m", "berth_gpu_share", "--policy", "fgd", "--seed", str(seed)]
    share += ["--workload", str(folder / "workload.json")]
    # What a busy machine delays is no answer of another kind.
    listed = [{"name": "gpu-share", "command": share, "timeout": PATIENCE}]
    if way.tenants:
        command = [sys.executable, "-m", "berth_queues", "--kinds", "Queue"]
        points = ["queueSort", "filter", "postFilter", "reserve"]
        queued = {"name": "queues", "command": command, "extensionPoints": points, "timeout": PATIENCE}
        listed.append(queued)
    both = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": listed}
    # What begins with a brace has one document.
    return f"# a scheduler\n{json.dumps(document)}\n---\n{json.dumps(both)}\n"
