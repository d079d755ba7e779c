"""The names that nodes and pods use, and what a pod asks for."""

from dataclasses import dataclass, replace

from berth_sdk import Node, Pod

DOMAIN = "gpu-share.berth.dev"
RESOURCE = f"{DOMAIN}/milli-gpu"
MODEL = f"{DOMAIN}/model"
COUNT = f"{DOMAIN}/count"
MILLI = f"{DOMAIN}/milli"
MODELS = f"{DOMAIN}/models"
MEMORY = f"{DOMAIN}/memory"
DEVICES = f"{DOMAIN}/devices"
NVIDIA = "nvidia.com/gpu"
NVIDIA_COUNT, NVIDIA_MEMORY, NVIDIA_MODEL = f"{NVIDIA}.count", f"{NVIDIA}.memory", f"{NVIDIA}.product"
"""Labels of NVIDIA's GPU feature discovery; memory is in MiB of each device."""

MAX_DIGITS = 10
WHOLE = 1000
"""One GPU in thousandths."""


class DemandError(ValueError):
    """What the pod asks for makes no sense; the text says why."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod asks for: `count` devices with `milli` thousandths of each, of one of the models.

    No models means any. `cpu` is in thousandths of a core. With `memory`, in MiB of each device, how many
    thousandths that is depends on the device: `milli` is the least. A pod that asks for CPU alone has 0
    devices with 0 thousandths.
    """

    count: int
    milli: int
    models: frozenset[str] = frozenset()
    cpu: int = 0
    memory: int = 0

    def on(self, device_memory: int) -> "Demand | None":
        """Return the demand on devices of so many MiB, None where they have less.

        The larger of the two shares counts, so that neither memory nor cores are given twice.
        """
        if not self.memory:
            return self
        if device_memory < self.memory:
            return None
        share = -(-WHOLE * self.memory // device_memory)
        return replace(self, milli=max(self.milli, share), memory=0)

    @property
    def total(self) -> int:
        """Return the thousandths of all devices together."""
        return self.count * self.milli


def demand_of(pod: Pod) -> Demand | None:
    """Return what the pod asks for, None if it asks for no GPU.

    Raises: DemandError: its annotations and its request don't go together.
    """
    total, memory = pod.request(RESOURCE), pod.annotations.get(MEMORY)
    if memory is not None and not total:
        return Demand(_number(pod, COUNT, 1), 0, _models(pod), pod.request("cpu"), _number(pod, MEMORY, 0))
    if not total:
        return None
    if memory is not None:
        raise DemandError(f"annotation {MEMORY} is beside a request of {RESOURCE}; write one of them")
    count = _number(pod, COUNT, 1)
    milli = _number(pod, MILLI, total // count)
    if count * milli != total:
        raise DemandError(f"{count} x {milli} milli-GPU do not make the requested {total}")
    if milli > WHOLE:
        raise DemandError(f"{milli} milli of one GPU: there are {WHOLE}; set {COUNT} for more GPUs")
    return Demand(count, milli, _models(pod), pod.request("cpu"))


def _models(pod: Pod) -> frozenset[str]:
    return frozenset(filter(None, pod.annotations.get(MODELS, "").split("|")))


def devices_of(node: Node) -> int:
    """Return how many GPUs the node has: its label's number, at most what it can allocate.

    Without thousandths they are NVIDIA's, which HAMi's device plugin shows several times: the label says.
    """
    allocatable, count = node.allocatable(RESOURCE) // WHOLE, COUNT
    if not allocatable:
        allocatable, count = node.allocatable(NVIDIA), NVIDIA_COUNT
    label = node.labels.get(count, "")
    return min(int(label), allocatable) if _is_number(label) else allocatable


def memory_of(node: Node) -> int:
    """Return the MiB of each of the node's devices, 0 where no label says it."""
    label = node.labels.get(MEMORY) or node.labels.get(NVIDIA_MEMORY, "")
    return int(label) if _is_number(label) else 0


def model_of(node: Node) -> str:
    """Return the model of the node's devices, empty where no label says it."""
    return node.labels.get(MODEL) or node.labels.get(NVIDIA_MODEL, "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < MAX_DIGITS


def assigned_to(pod: Pod) -> tuple[int, ...] | None:
    """Return the devices written to the pod, None if there are none or they can't be read."""
    parts = pod.annotations.get(DEVICES, "").split(",")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None


def _number(pod: Pod, key: str, default: int) -> int:
    text = pod.annotations.get(key)
    if text is None:
        return default
    if not _is_number(text) or not int(text):
        raise DemandError(f"annotation {key} is not a number above 0: {text[:60]!r}; write one")
    return int(text)
