"""What distinguishes one openb node or pod from another, and the names the gpu-share plugin knows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

MILLI_GPU = "gpu-share.berth.dev/milli-gpu"
"""Extended resource: thousandths of a GPU."""
GPU_COUNT = "gpu-share.berth.dev/count"
"""Node label: GPUs it has. Pod annotation: GPUs it wants."""
GPU_MODEL = "gpu-share.berth.dev/model"
"""Node label: the model of its GPUs."""
GPU_MODELS = "gpu-share.berth.dev/models"
"""Pod annotation: the models it accepts, separated by |; absent when it accepts any."""
GPU_MILLI = "gpu-share.berth.dev/milli"
"""Pod annotation: thousandths it wants of each of its GPUs."""


class NodeShape(msgspec.Struct, frozen=True, order=True):
    """The figures of a node; `model` is empty where it has no GPU."""

    milli_cpu: int
    memory_mib: int
    gpus: int
    model: str


class PodShape(msgspec.Struct, frozen=True, order=True):
    """The figures of a task; an empty `models` accepts every model, `gpu_milli` is of each GPU."""

    milli_cpu: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]
    qos: str


class NamedNode(NamedTuple):
    """A node of the trace."""

    name: str
    shape: NodeShape


class NamedPod(NamedTuple):
    """A task of the trace."""

    name: str
    shape: PodShape


Assignment = Callable[[Sequence[PodShape]], Sequence[str]]
"""Gives each pod, in order, the schedulerName it is submitted with."""
