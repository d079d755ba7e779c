"""What pods ask for in the words of HAMi and KAI: resources and annotations that name shares of GPUs.

    HAMi   nvidia.com/gpu, gpumem (MiB), gpumem-percentage, gpucores (percent), of one container
    KAI    annotations gpu-fraction, gpu-memory (MiB), gpu-fraction-num-devices; or nvidia.com/gpu

Source: pkg/device/nvidia/device.go GenerateResourceRequests (HAMi, 4707fb02); docs/gpu-sharing and
pkg/common/constants (KAI Scheduler, 72de64fc).
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from berth_gpu_share.contract import MAX_DIGITS, NVIDIA, WHOLE, Demand, DemandError, demand_of
from berth_sdk import Pod

Reading = Callable[[Pod], Demand | None]

FRACTION: Final = "gpu-fraction"
GPU_MEMORY: Final = "gpu-memory"
FRACTION_DEVICES: Final = "gpu-fraction-num-devices"
ANNOTATIONS: Final = (FRACTION, GPU_MEMORY, FRACTION_DEVICES)
FIELDS: Final = ("count", "memory", "memoryPercentage", "cores")
_FRACTION = re.compile(r"0?\.[0-9]{1,9}\Z")
_NAME = re.compile(r"[a-z0-9.-]{1,253}/[A-Za-z0-9._-]{1,63}\Z")
MAX_DEVICES: Final = 64


@dataclass(frozen=True, slots=True)
class Hami:
    """HAMi's resources, under the names that its chart gives them or others.

    Memory and cores are of each device; without any word on memory all of it is asked for.
    """

    count: str = NVIDIA
    memory: str = f"{NVIDIA}mem"
    memory_percentage: str = f"{NVIDIA}mem-percentage"
    cores: str = f"{NVIDIA}cores"

    def __call__(self, pod: Pod) -> Demand | None:
        """The demand of the container that asks. Raises: DemandError."""
        shares = (self.memory, self.memory_percentage, self.cores)
        asking = [
            each for each in pod.spec.containers if {self.count, *shares} & each.resources.requests.keys()
        ]
        asking += [
            each
            for each in pod.spec.init_containers
            if {self.count, *shares} & each.resources.requests.keys()
        ]
        if not asking:
            return None
        if len(asking) > 1:
            raise DemandError(f"requests: {len(asking)} containers ask for {self.count}; ask for it in one")
        count = _whole(pod, self.count, MAX_DEVICES) or 1
        memory, percentage = _whole(pod, self.memory), _whole(pod, self.memory_percentage, 100)
        cores = _whole(pod, self.cores, 100)
        if memory and percentage:
            raise DemandError(
                f"requests[{self.memory_percentage}]: found beside {self.memory}; write one of them"
            )
        if not memory:
            percentage = percentage or 100
        return Demand(count, 10 * max(percentage, cores), cpu=pod.request("cpu"), memory=memory)


def kai(pod: Pod) -> Demand | None:
    """The demand of KAI's annotations, or of whole GPUs. Raises: DemandError."""
    fraction, memory = (pod.annotations.get(name) for name in (FRACTION, GPU_MEMORY))
    whole = _whole(pod, NVIDIA, MAX_DEVICES)
    cpu = pod.request("cpu")
    if fraction is None and memory is None:
        return Demand(whole, WHOLE, cpu=cpu) if whole else None
    if whole:
        raise DemandError(f"requests[{NVIDIA}]: found beside a share by annotation; write one of them")
    if fraction is not None and memory is not None:
        raise DemandError(f"annotations[{GPU_MEMORY}]: found beside {FRACTION}; write one of them")
    count = _annotated(pod, FRACTION_DEVICES, "1", MAX_DEVICES)
    if memory is not None:
        return Demand(count, 0, cpu=cpu, memory=_annotated(pod, GPU_MEMORY, memory, 1 << 24))
    assert fraction is not None, "one of them is there"
    if not _FRACTION.match(fraction) or not Decimal(fraction):
        remedy = f"write more than 0 and less than 1, such as 0.5, or request {NVIDIA}"
        raise DemandError(f"annotations[{FRACTION}]: found {fraction[:60]!r}; {remedy}")
    return Demand(count, math.ceil(Decimal(fraction) * WHOLE), cpu=cpu)


PRESETS: Final[Mapping[str, Reading]] = {"berth": demand_of, "hami": Hami(), "kai": kai}
"""By the value of the argument `names`."""


def vocabulary(names: Any) -> Reading:
    """The reading that the argument `names` says: a preset, or HAMi's under other names of resources.

    Raises: ValueError, whose text says what to write.
    """
    if isinstance(names, str) and names in PRESETS:
        return PRESETS[names]
    if not isinstance(names, dict) or not names:
        raise ValueError(
            f"{names!r} is none of {', '.join(PRESETS)}, and no resources by {', '.join(FIELDS)}"
        )
    for field, name in names.items():
        if field not in FIELDS:
            raise ValueError(f"{field[:60]}: there are {', '.join(FIELDS)}")
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f"{field}: {name!r} is no resource; write it as nvidia.com/gpu")
    own = {
        ("memory_percentage" if field == "memoryPercentage" else field): name for field, name in names.items()
    }
    return replace(Hami(), **own)


def _whole(pod: Pod, resource: str, most: int = 1 << 24) -> int:
    found = pod.request(resource)
    if not 0 <= found <= most:
        raise DemandError(f"requests[{resource}]: found {found}; write 1 to {most}")
    return found


def _annotated(pod: Pod, name: str, default: str, most: int) -> int:
    text = pod.annotations.get(name, default)
    if not (text.isascii() and text.isdecimal() and len(text) < MAX_DIGITS and 0 < int(text) <= most):
        raise DemandError(f"annotations[{name}]: found {text[:60]!r}; write a number from 1 to {most}")
    return int(text)
