"""The cluster and the tasks of the experiment of Weng et al. (USENIX ATC 2023), as Kubernetes documents.

The trace's nodes that have GPUs, and tasks drawn from the trace with replacement, in the order of the draw.
"""

import copy
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from berth.demo.dataset.shapes import GPU_COUNT, GPU_MILLI, GPU_MODELS, MILLI_GPU

SCHEDULER = "gpu-sharing"


@dataclass(frozen=True)
class Experiment:
    """What one run creates."""

    workload: list[dict[str, Any]]
    """The kinds of pods that usually come, as `berth-gpu-share --workload` reads them."""
    others: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    pods: list[dict[str, Any]] = field(repr=False)


def drawn(objects, demand, seed):
    """Draw tasks until the next would ask for more than `demand` times the GPUs of the nodes."""
    nodes = [node for node in objects.nodes if MILLI_GPU in node["status"]["allocatable"]]
    room = demand * sum(int(node["status"]["allocatable"][MILLI_GPU]) for node in nodes)
    asked = np.array([milli_gpu(pod) for pod in objects.pods])
    if not asked.any():
        raise ValueError("no task asks for a GPU: the demand is never reached")
    chance = np.random.default_rng(seed)
    tasks, total = [], 0
    while (milli := asked[task := chance.integers(len(asked))]) + total <= room:
        total += milli
        tasks.append(named(objects.pods[task], len(tasks)))
    return Experiment(kinds(objects.pods), objects.others, nodes, tasks)


def kinds(pods):
    """How many there are of each kind of task in the whole trace."""
    found = Counter(
        (
            int(requests["cpu"].removesuffix("m")),
            int(notes.get(GPU_COUNT, 0)),
            int(notes.get(GPU_MILLI, 0)),
            notes.get(GPU_MODELS),
        )
        for requests, notes in map(asked_for, pods)
    )
    return [
        {
            "number": number,
            "cpu": cpu,
            "count": count,
            "milli": milli,
            "models": models.split("|") if models else [],
        }
        for (cpu, count, milli, models), number in found.items()
    ]


def asked_for(pod):
    """The requests of a task's only container, and its annotations."""
    (container,) = pod["spec"]["containers"]
    return container["resources"]["requests"], pod["metadata"].get("annotations", {})


def milli_gpu(pod):
    """Thousandths of GPUs that a pod asks for."""
    requests, _ = asked_for(pod)
    return int(requests.get(MILLI_GPU, 0))


def named(task, number):
    """One more pod like the task; names sort as they were drawn, and so a scheduler lists them."""
    pod = copy.deepcopy(task)
    pod["metadata"]["name"] = f"task-{number:06d}"
    pod["spec"]["schedulerName"] = SCHEDULER
    return pod
