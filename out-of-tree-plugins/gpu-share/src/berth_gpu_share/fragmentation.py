"""FGD: put a pod where it makes the least of the free GPUs useless to the pods that usually come.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent" (USENIX ATC 2023), sections 4 and 5.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from berth_gpu_share.contract import WHOLE, Demand
from berth_gpu_share.devices import DeviceTable, Int, Mask
from berth_gpu_share.policies import tightest
from berth_sdk import Normalization, Scores

Real = NDArray[np.float64]

COVERED = 0.95
MAX_TYPES = 64
GROWTH = 2.0
STEEPEST = 20.0 * WHOLE
"""Beyond this the sigmoid is 0 to the last digit that counts."""


@dataclass(frozen=True)
class Workload:
    """The pods that usually come.

    Shapes: cpu, milli, count int64 (t,); share float64 (t,), sums to 1; models (t,).
    """

    cpu: Int
    milli: Int
    count: Int
    share: Real
    models: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, seen: Counter[Demand]) -> "Workload":
        """Return the most frequent demands that together make 95 % of those seen."""
        total, covered, typical = seen.total(), 0, []
        for demand, number in seen.most_common(MAX_TYPES):
            if covered >= COVERED * total:
                break
            covered += number
            typical.append((demand, number))
        return cls(
            np.array([demand.cpu for demand, _ in typical], np.int64),
            np.array([demand.milli for demand, _ in typical], np.int64),
            np.array([demand.count for demand, _ in typical], np.int64),
            np.array([number / covered for _, number in typical], np.float64),
            tuple(demand.models for demand, _ in typical),
        )


def fragments(left: Int, cpu_left: Int, allowed: Mask, workload: Workload) -> Real:
    """Return how much of each row's free GPU the usual pods can't use, on average over them.

    A pod that can't run on the node at all makes all of it useless, and so does one that wants no GPU; one
    that can run makes those devices useless that have too little left for it.

    Shapes: left (m, d), cpu_left (m,), allowed (m, t); result float64 (m,).
    Units: thousandths of a GPU.
    """
    free = left.clip(min=0)
    lacks = free[:, :, None] < workload.milli
    hosts = _runs(cpu_left, allowed, workload) & ((~lacks).sum(axis=1) >= workload.count)
    lacking = (free[:, :, None] * lacks).sum(axis=1)
    useless: Real = np.where(hosts, lacking, free.sum(axis=1)[:, None]) @ workload.share
    return useless


def fragments_after(left: Int, cpu_left: Int, allowed: Mask, workload: Workload, milli: int) -> Real:
    """Return what `fragments` would be if a share of this size came, for each device that it might come to.

    Only one device changes, so its part in the sums is taken out and put in anew.

    Shapes: as in `fragments`; result float64 (m, d), without meaning where the device lacks room.
    """
    free = left.clip(min=0)[:, :, None]
    then = free - milli
    lacks, lacks_then = free < workload.milli, then < workload.milli
    enough = (~lacks).sum(axis=1, keepdims=True) + lacks - lacks_then
    lacking = free * lacks
    lacking = lacking.sum(axis=1, keepdims=True) - lacking + then * lacks_then
    hosts = _runs(cpu_left, allowed, workload)[:, None, :] & (enough >= workload.count)
    total = free.sum(axis=1, keepdims=True) - milli
    useless: Real = np.where(hosts, lacking, total) @ workload.share
    return useless


def _runs(cpu_left: Int, allowed: Mask, workload: Workload) -> Mask:
    """Return where a usual pod uses a GPU if the devices have enough left for it.

    Shapes: result (m, t).
    """
    runs: Mask = allowed & (cpu_left[:, None] >= workload.cpu) & (workload.count > 0)
    return runs


@dataclass
class Remembered:
    """One demand's outcome on every row, and the version of the row it was computed from.

    Shapes: points, device, version int64 (n,).
    """

    points: Int
    device: Int
    version: Int


@dataclass
class FragmentationGradientDescent:
    """Score nodes by the fragmentation that a pod adds or removes to the usual pods, configured or learnt.

    Cost: a row with room is computed once for each demand and change of the row, so a cycle pays for the rows
        that changed since the same demand was seen last: some 10 us each.
    """

    seen: Counter[Demand] = field(default_factory=Counter)
    workload: Workload = field(default_factory=lambda: Workload.of(Counter()))
    learns: bool = True
    learnt_at: int = 0
    remembered: dict[Demand, Remembered] = field(default_factory=dict)

    @classmethod
    def knowing(cls, usual: Counter[Demand]) -> "FragmentationGradientDescent":
        """Return the policy for a workload that is known beforehand; it learns nothing."""
        return cls(workload=Workload.of(usual), learns=False)

    def saw(self, demand: Demand) -> None:
        """Count a demand; the usual pods are chosen anew when twice as many have been seen."""
        if not self.learns:
            return
        self.seen[demand] += 1
        if self.seen.total() >= GROWTH * self.learnt_at:
            self.learnt_at = self.seen.total()
            self.workload = Workload.of(self.seen)
            self.remembered.clear()

    def score(self, demand: Demand, table: DeviceTable) -> Scores:
        """Score 50 where fragmentation stays, more where it shrinks."""
        return Scores(self._outcome(demand, table).points, Normalization.NONE)

    def pick(self, demand: Demand, table: DeviceTable, index: int) -> tuple[int, ...] | None:
        """Choose the device that leaves least fragmentation, or the first untouched ones."""
        if demand.milli == WHOLE or demand.count > 1:
            return tightest(demand, table.left[index])
        if table.largest[index] < demand.milli:
            return None
        return (int(self._outcome(demand, table).device[index]),)

    def _outcome(self, demand: Demand, table: DeviceTable) -> Remembered:
        known = self.remembered.get(demand)
        if known is None or len(known.points) < table.size:
            blank = np.zeros(2 * table.size, np.int64)
            known = self.remembered[demand] = Remembered(blank, blank.copy(), blank.copy())
        stale = np.flatnonzero((known.version[: table.size] != table.version) & table.room(demand))
        if len(stale):
            known.points[stale], known.device[stale] = self._compute(demand, table, stale)
            known.version[stale] = table.version[stale]
        return replace(known, points=known.points[: table.size])

    def _compute(self, demand: Demand, table: DeviceTable, rows: Int) -> tuple[Int, Int]:
        """Return points and best device of these rows.

        Shapes: both (len(rows),).
        """
        left = table.left[rows]
        cpu_left = table.cpu_left[rows]
        models = [table.allowed(each)[rows] for each in self.workload.models]
        allowed = np.array(models, np.bool_).reshape(len(models), len(rows)).T
        before = fragments(left, cpu_left, allowed, self.workload)
        cpu_left = cpu_left - demand.cpu
        if not demand.count:
            gained = (before - fragments(left, cpu_left, allowed, self.workload))[:, None]
        elif demand.milli == WHOLE or demand.count > 1:
            possible, after = _without(demand, left)
            gained = before - fragments(after, cpu_left, allowed, self.workload)
            gained = np.where(possible, gained, -STEEPEST)[:, None]
        else:
            useless = fragments_after(left, cpu_left, allowed, self.workload, demand.milli)
            gained = np.where(left >= demand.milli, before[:, None] - useless, -STEEPEST)
        device = gained.argmax(axis=1)
        best = gained.max(axis=1)
        points = 100 / (1 + np.exp(-best / WHOLE))
        return points.astype(np.int64), device


def _without(demand: Demand, left: Int) -> tuple[Mask, Int]:
    """Return where that many devices have room, and what is left once the tightest of them are taken.

    Shapes: left (m, d); results (m,) and (m, d).
    """
    fits = left >= demand.milli
    order = np.argsort(np.where(fits, left, WHOLE + 1), axis=1, kind="stable")[:, : demand.count]
    taken = np.zeros_like(fits)
    np.put_along_axis(taken, order, values=True, axis=1)
    taken &= fits
    return taken.sum(axis=1) == demand.count, left - demand.milli * taken
