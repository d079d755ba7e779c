"""Who schedules what: GPU pods go to the gpu-share profile, the others to two profiles in equal parts."""

import random
from collections.abc import Iterator, Sequence

from berth.demo.dataset.shapes import Assignment, PodShape

GPU_PROFILE = "gpu-share"
OTHER_PROFILES = ("default-scheduler", "bin-packing")


def by_gpu(seed: int = 0) -> Assignment:
    """Send GPU pods to `gpu-share` and deal the rest to the other two profiles."""

    def assign(shapes: Sequence[PodShape]) -> list[str]:
        others = _dealt(random.Random(seed))
        return [GPU_PROFILE if shape.gpus else next(others) for shape in shapes]

    return assign


def _dealt(chance: random.Random) -> Iterator[str]:
    # Pair by pair in a drawn order: the halves stay equal, and no rhythm of the trace falls on one profile.
    while True:
        first, second = OTHER_PROFILES
        yield from (first, second) if chance.random() < 0.5 else (second, first)  # noqa: PLR2004  a fair coin
