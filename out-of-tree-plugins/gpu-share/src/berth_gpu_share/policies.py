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
        largest_gpu, largest_cpu = _largest(table)
        kept = cpu_left / (2 * largest_cpu) + gpu_left / (2 * largest_gpu)
        return Scores((1e6 * (1 - kept)).astype(np.int64), Normalization.MIN_MAX)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose the fullest device that still has room, or the first untouched ones."""
        return tightest(demand, table.left[index])

    def saw(self, demand: Demand) -> None:
        """Nothing to learn."""


class DotProduct:
    """Prefer the node whose rest is least like what the pod asks for: the smallest product of both.

    CPU and GPU count against the largest node's: 100 * (1 - (rest . demand) / 2).
    Source: section 6 of the paper, after Tetris (Grandl et al., SIGCOMM 2014), GPUs of a node added up.
    """

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score 0 to 100, rounded down as in the artefact: near products are ties."""
        largest_gpu, largest_cpu = _largest(table)
        alike = table.cpu_left / largest_cpu * (demand.cpu / largest_cpu)
        alike += table.free / largest_gpu * (demand.total / largest_gpu)
        return Scores((100 * (1 - alike / 2)).clip(0, 100).astype(np.int64), Normalization.NONE)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose the fullest device that still has room, or the first untouched ones."""
        return tightest(demand, table.left[index])

    def saw(self, demand: Demand) -> None:
        """Nothing to learn."""


class Clustering:
    """Put pods beside pods of their kind: shares, or as many whole GPUs.

    A node that has only this kind comes first, then one that has it among others, then one without GPU pods,
    then the others; of two in the same class the one with less GPU left.
    Source: section 6 of the paper, after Gandiva (Xiao et al., OSDI 2018).
    """

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score 75 to 100, 50 to 75, 25 to 50, 0 to 25 in that order; a pod without GPU 0 everywhere."""
        if not demand.count:
            return Scores(np.zeros(table.size, np.int64), Normalization.NONE)
        kinds = table.kinds
        kind = 0 if demand.milli < WHOLE else min(demand.count, kinds.shape[1] - 1)
        different = np.count_nonzero(kinds, axis=1)
        has = kinds[:, kind] > 0
        class_ = np.where(has, np.where(different == 1, 75, 50), np.where(different == 0, 25, 0))
        largest_gpu, _ = _largest(table)
        return Scores(class_ + 25 * (largest_gpu - table.free) // largest_gpu, Normalization.NONE)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose the fullest device that still has room, or the first untouched ones."""
        return tightest(demand, table.left[index])

    def saw(self, demand: Demand) -> None:
        """Nothing to learn."""


class Random:
    """Choose any node that has room, and for a share any of its devices that has.

    Source: section 6 of the paper; what the others are measured against.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._chance = np.random.default_rng(seed)

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Draw a number for each node."""
        del demand
        return Scores(self._chance.integers(0, 1 << 20, table.size), Normalization.MIN_MAX)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Draw one of the devices with room, or take the first untouched ones."""
        left = table.left[index]
        if demand.milli == WHOLE or demand.count > 1:
            return tightest(demand, left)
        fits = np.flatnonzero(left >= demand.milli)
        return (int(self._chance.choice(fits)),) if fits.size else None

    def saw(self, demand: Demand) -> None:
        """Nothing to learn."""


class Packing:
    """Fill shared devices first, then used nodes, and leave empty nodes for last.

    Source: GpuPackingScore in the artefact of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023).
    """

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score 50 to 100 on shared devices, 33 to 50 on untouched ones, less on nodes that are empty.

        A pod without GPU gets 0 everywhere.
        """
        if not demand.count:
            return Scores(np.zeros(table.size, np.int64), Normalization.NONE)
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
    fits = np.where(left >= demand.milli, left, WHOLE + 1)
    chosen = np.argsort(fits, kind="stable")[: demand.count]
    enough = len(chosen) == demand.count and bool((fits[chosen] <= WHOLE).all())
    return tuple(chosen.tolist()) if enough else None


def in_order(scores: Scores, table: DeviceTable, *, used_first: bool) -> Scores:
    """Return scores without ties: of equal nodes the first in `order`, used ones before the others if wanted.

    The best of them is the only one that is mapped to 100.
    """
    points = (scores.points.astype(np.int64) << 32) | table.order
    if used_first:
        points |= table.used.astype(np.int64) << 31
    return Scores(points, Normalization.MIN_MAX)


def _largest(table: DeviceTable) -> tuple[int, int]:
    """Return the most GPU and the most CPU that a node has, used or not, both at least 1."""
    return max(1, int(table.count.max(initial=1)) * WHOLE), max(1, int(table.cpu.max(initial=1)))


def _fullest_with_room(demand: Demand, table: DeviceTable) -> Int:
    """Return what is left of each node's fullest device that can take the pod.

    Shapes: (n,).
    """
    fits: Int = np.where(table.left >= demand.milli, table.left, WHOLE).min(axis=1)
    return fits
