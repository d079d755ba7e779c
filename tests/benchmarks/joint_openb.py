"""Joint placement of the openb trace's GPU pods in batches of 64, beside FGD one by one.

    python -m tests.benchmarks joint --openb FOLDER [--nodes N] [--seeds N]

Simulations with the plugin gpu-share as a sidecar: cards are shared as its policy says in all rows. A pod
comes each minute. Allocation: pods stay, until 130 % of the GPUs are asked for. Waits: pods end, so that as
many GPUs are asked for as there are, and twice as many come; a batch is there once its last pod has come,
and its pods have waited for that, too. Pods of batches that do not fit are tried again after a minute where
pods end, and once a batch where none does: nothing else would let them fit. The solver may take ten seconds,
as far as its cycle's budget goes, so that other work of the machine has less of a say in what it finds.
"""

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np

from berth.demo.dataset import open_dataset
from berth.demo.dataset.shapes import MILLI_GPU
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.timeline import ARRIVAL, DURATION
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.gpu_sharing_draw import SCHEDULER, drawn, milli_gpu
from tests.benchmarks.tables import Table

BATCH = 64
WAITS_DEMAND = 2.0
SPACING_SECONDS, AFTERWARDS_SECONDS = 60.0, 600.0
YEAR_SECONDS = 365 * 24 * 3600.0
GATES = "GenericWorkload=true,GangScheduling=true"
GROUPS = "scheduling.k8s.io/v1alpha2"
USUAL_NODES = 60


@dataclass(frozen=True)
class Way:
    """How pods are placed: alone or in batches, planned or not."""

    name: str
    batched: bool = False
    planned: bool = False


WAYS = (
    Way("FGD, one by one"),
    Way("FGD's scores, batches one by one", batched=True),
    Way("FGD's scores, batches planned", batched=True, planned=True),
)


@dataclass(frozen=True)
class Figures:
    """What one run comes to. Units: percent; virtual seconds; CPU seconds of this process."""

    allocation: float
    placed: int
    pods: int
    median: float
    longest: float
    cpu_seconds: float


def run(options):
    """A row for each way, the mean of all seeds."""
    objects = open_dataset(options.openb, seed=0).load()
    count = options.nodes or USUAL_NODES
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    clusters = {seed: sampled(objects, count, seed) for seed in seeds}
    table = Table(
        f"{count} nodes of openb, {options.demand:.0%} of their GPUs asked for, {len(seeds)} runs",
        ["way", "allocated, %", "placed", "of pods", "wait p50, s", "p99, s", "CPU s"],
    )
    for way in WAYS:
        found = [figures(cluster, options.demand, seed, way) for seed, cluster in clusters.items()]
        means = (fmean(getattr(one, name) for one in found) for name in Figures.__dataclass_fields__)
        table.add(way.name, *(f"{mean:.1f}" for mean in means))
    table.show()


def sampled(objects, count, seed):
    """The trace with so many of its nodes that have GPUs."""
    nodes = [node for node in objects.nodes if MILLI_GPU in node["status"]["allocatable"]]
    chosen = np.random.default_rng(seed).choice(len(nodes), min(count, len(nodes)), replace=False)
    return msgspec.structs.replace(objects, nodes=[nodes[index] for index in sorted(chosen.tolist())])


def figures(cluster, demand, seed, way):
    """What becomes of pods that stay, and how long pods wait that end."""
    started = time.process_time()
    stay = outcome(drawn(cluster, demand, seed), way, seed, AFTERWARDS_SECONDS, retry=BATCH * SPACING_SECONDS)
    ends = with_ends(drawn(cluster, WAITS_DEMAND, seed), seed)
    ending = outcome(ends, way, seed, YEAR_SECONDS, retry=SPACING_SECONDS)
    waits = list(waited(ending, way))
    median, longest = np.percentile(waits, [50, 99], method="higher")
    return Figures(
        stay.utilization[MILLI_GPU].percent,
        len(stay.placements),
        stay.pods,
        float(median),
        float(longest),
        time.process_time() - started,
    )


def with_ends(experiment, seed):
    """The same pods, ending so that as many GPUs are asked for as there are."""
    room = sum(int(node["status"]["allocatable"][MILLI_GPU]) for node in experiment.nodes)
    mean = SPACING_SECONDS * room / fmean(map(milli_gpu, experiment.pods))
    drawn_seconds = np.random.default_rng(seed).exponential(mean, len(experiment.pods))
    for pod, seconds in zip(experiment.pods, drawn_seconds, strict=True):
        pod["metadata"].setdefault("annotations", {})[DURATION] = str(round(float(seconds), 3))
    return experiment


def outcome(experiment, way, seed, afterwards, *, retry):
    """The simulation of an experiment, until so many seconds after its last pod came at the latest.

    Groups are tried again after `retry` seconds.
    """
    groups = []
    for number, pod in enumerate(experiment.pods):
        comes = number
        if way.batched:
            comes = min(number // BATCH * BATCH + BATCH, len(experiment.pods)) - 1
            name = f"batch-{number // BATCH}"
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
            if number % BATCH == 0:
                groups.append(group(name, pod["metadata"].get("namespace", "default")))
        pod["metadata"].setdefault("annotations", {})[ARRIVAL] = str(SPACING_SECONDS * comes)
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        (folder / "workload.json").write_text(json.dumps(experiment.workload), encoding="utf-8")
        documents = (*experiment.others, *experiment.nodes, *groups, *experiment.pods)
        (folder / "cluster.json").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
        (folder / "scheduler.yaml").write_text(configuration(folder, way, seed, retry), encoding="utf-8")
        settings = read_scheduler(str(folder / "scheduler.yaml"), GATES if way.batched else "")
        ends = SPACING_SECONDS * len(experiment.pods) + afterwards
        options = SimulationOptions(*settings, seed=seed, max_seconds=ends)
        return simulate(read_cluster([folder / "cluster.json"]), options)


def group(name, namespace):
    """A PodGroup whose pods need not all be placed."""
    metadata = {"name": name, "namespace": namespace}
    spec = {"schedulingPolicy": {"basic": {}}}
    return {"apiVersion": GROUPS, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def configuration(folder, way, seed, retry):
    """The scheduler, and the plugin that it starts."""
    enabled = [{"name": "gpu-share"}, *([{"name": "JointPlacement"}] if way.planned else [])]
    settings = [{"name": "gpu-share", "args": {"policy": "fgd", "cpuPods": True}}]
    if way.planned:
        settings.append({"name": "JointPlacement", "args": {"timeLimit": "10s"}})
    profile = {
        "schedulerName": SCHEDULER,
        "plugins": {
            "multiPoint": {"enabled": enabled},
            "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "gpu-share"}]},
            "postFilter": {"disabled": [{"name": "*"}]},
        },
        "pluginConfig": settings,
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podInitialBackoffSeconds": int(retry),
        "podMaxBackoffSeconds": int(retry),
        "profiles": [profile],
    }
    command = [sys.executable, "-m", "berth_gpu_share", "--policy", "fgd", "--seed", str(seed)]
    command += ["--workload", str(folder / "workload.json")]
    listed = {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "PluginList",
        "plugins": [{"name": "gpu-share", "command": command}],
    }
    # What begins with a brace has one document.
    return f"# a scheduler\n{json.dumps(document)}\n---\n{json.dumps(listed)}\n"


def waited(found, way):
    """How long each pod that was placed waited, for its batch as well."""
    for placement in found.placements:
        number = int(placement.pod.rpartition("-")[2])
        comes = SPACING_SECONDS * number if way.batched else placement.at_seconds - placement.wait_seconds
        yield placement.at_seconds - comes
