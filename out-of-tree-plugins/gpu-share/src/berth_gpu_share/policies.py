"""Which node, and which device on it, a pod should get.

A policy scores all nodes, and picks devices on the one that was chosen.
"""

from typing import Protocol

import numpy as np

from berth_gpu_share.contract import WHOLE, Demand
from berth_gpu_share.devices import DeviceTable, Int
from berth_sdk import Normalization, Scores


class Policy(Protocol):
    """What the plugin asks a policy."""

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score all nodes; only those with room matter."""

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose devices of a node, None if there is no room."""

    def saw(self, demand: Demand) -> None:
        """Hear of a pod that is asked about or was placed."""


class BestFit:
    """Prefer the node that keeps least: half by CPU, half by GPU, each against the largest node's.

    Source: BestFitScore in the artefact of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023).
    """

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score by what would be left, finer than 0 to 100 so that the scheduler's normalization can tell.

        The largest nodes are so by what they have, not by what is left: pods on one change no other's score.
        """
        gpu_left = table.free - demand.total
        cpu_left = table.cpu_left - demand.cpu
        largest_gpu = max(1, int(table.count.max(initial=1)) * WHOLE)
        largest_cpu = max(1, int(table.cpu.max(initial=1)))
        kept = cpu_left / (2 * largest_cpu) + gpu_left / (2 * largest_gpu)
        return Scores((1e6 * (1 - kept)).astype(np.int64), Normalization.MIN_MAX)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose the fullest device that still has room, or the first untouched ones."""
        return tightest(demand, table.left[index])

    def saw(self, demand: Demand) -> None:
        """Nothing to learn."""


class Packing:
    """Fill shared devices first, then used nodes, and leave empty nodes for last.

    Source: GpuPackingScore in the artefact of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023).
    """

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score 50 to 100 on shared devices, 33 to 50 on untouched ones, less on nodes that are empty."""
        best = _fullest_with_room(demand, table)
        fresh = 50 - np.minimum(demand.count, 17)
        empty = np.maximum(33 - table.untouched, table.untouched)
        points = np.where(best < WHOLE, 100 - best // 100, fresh)
        points = np.where(table.untouched == table.count, empty, points)
        return Scores(points.clip(0, 100), Normalization.NONE)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose the fullest device that still has room, or the first untouched ones."""
        return tightest(demand, table.left[index])

    def saw(self, demand: Demand) -> None:
        """Nothing to learn."""


def tightest(demand: Demand, left: Int) -> tuple[int, ...] | None:
    """Return the devices that keep least, the first ones among equals; None if there is no room.

    Shapes: left (d,).
    """
    if demand.milli == WHOLE:
        untouched = np.flatnonzero(left == WHOLE)[: demand.count]
        return tuple(untouched.tolist()) if len(untouched) == demand.count else None
    fits = np.where(left >= demand.milli, left, WHOLE + 1)
    device = int(fits.argmin())
    return (device,) if fits[device] <= WHOLE else None


def _fullest_with_room(demand: Demand, table: DeviceTable) -> Int:
    """Return what is left of each node's fullest device that can take the pod.

    Shapes: (n,).
    """
    fits: Int = np.where(table.left >= demand.milli, table.left, WHOLE).min(axis=1)
    return fits
