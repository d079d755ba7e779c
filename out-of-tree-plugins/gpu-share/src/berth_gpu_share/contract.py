"""The names that nodes and pods use, and what a pod asks for."""

from dataclasses import dataclass

from berth_sdk import Node, Pod

DOMAIN = "gpu-share.berth.dev"
RESOURCE = f"{DOMAIN}/milli-gpu"
MODEL = f"{DOMAIN}/model"
COUNT = f"{DOMAIN}/count"
MILLI = f"{DOMAIN}/milli"
MODELS = f"{DOMAIN}/models"
DEVICES = f"{DOMAIN}/devices"

WHOLE = 1000
"""One GPU in thousandths."""


class DemandError(ValueError):
    """What the pod asks for makes no sense; the text says why."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod asks for: `count` devices with `milli` thousandths of each, of one of the models.

    No models means any. `cpu` is in thousandths of a core. Several devices are whole ones. A pod that asks
    for CPU alone has 0 devices with 0 thousandths.
    """

    count: int
    milli: int
    models: frozenset[str] = frozenset()
    cpu: int = 0

    @property
    def total(self) -> int:
        """Return the thousandths of all devices together."""
        return self.count * self.milli


def demand_of(pod: Pod) -> Demand | None:
    """Return what the pod asks for, None if it asks for no GPU.

    Raises: DemandError: its annotations and its request don't go together.
    """
    total = pod.request(RESOURCE)
    if not total:
        return None
    count = _number(pod, COUNT, 1)
    milli = _number(pod, MILLI, total // count)
    if count * milli != total:
        raise DemandError(f"{count} x {milli} milli-GPU do not make the requested {total}")
    if count > 1 and milli != WHOLE:
        raise DemandError(f"{count} GPUs of {milli} milli: only whole GPUs can be taken in numbers")
    if milli > WHOLE:
        raise DemandError(f"{milli} milli of one GPU: there are {WHOLE}; set {COUNT} for more GPUs")
    models = pod.annotations.get(MODELS, "")
    return Demand(count, milli, frozenset(filter(None, models.split("|"))), pod.request("cpu"))


def devices_of(node: Node) -> int:
    """Return how many GPUs the node has: its label's number, at most what it can allocate."""
    allocatable = node.allocatable(RESOURCE) // WHOLE
    label = node.labels.get(COUNT, "")
    return min(int(label), allocatable) if label.isdecimal() else allocatable


def assigned_to(pod: Pod) -> tuple[int, ...] | None:
    """Return the devices written to the pod, None if there are none or they can't be read."""
    parts = pod.annotations.get(DEVICES, "").split(",")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None


def _number(pod: Pod, key: str, default: int) -> int:
    text = pod.annotations.get(key)
    if text is None:
        return default
    if not text.isdecimal() or not int(text):
        raise DemandError(f"annotation {key} is not a number above 0: {text!r}")
    return int(text)
