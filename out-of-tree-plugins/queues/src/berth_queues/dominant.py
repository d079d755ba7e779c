"""How much of its parent's resources a queue uses: the largest part of any one (dominant resource fairness).

Source: Ghodsi et al., Dominant Resource Fairness, NSDI 2011; Kueue's fair sharing (KEP-1714) for the part
over quota.
"""

from collections.abc import Mapping
from typing import NamedTuple

from berth_queues.amounts import Amounts

PPM = 1_000_000
MAX_PPM = 1 << 53
"""The share of a queue of weight 0 that uses anything: behind all others."""


class DominantShare(NamedTuple):
    """What orders siblings, the lowest first. Units: millionths of what can be shared."""

    over_quota: int
    in_all: int


def dominant_share(
    used: Amounts, quota: Amounts, total: Mapping[str, float] | Amounts, weight: float
) -> DominantShare:
    """Return the largest part, of any resource, that is used over quota, and that is used at all.

    `total` is what the siblings share; resources of which there is none do not count. Cost: O(resources).
    """
    over = in_all = 0.0
    for resource, amount in used.items():
        whole = total.get(resource, 0)
        if whole > 0 and amount > 0:
            in_all = max(in_all, amount / whole)
            over = max(over, (amount - quota.get(resource, 0)) / whole)
    return DominantShare(_weighted(over, weight), _weighted(in_all, weight))


def _weighted(part: float, weight: float) -> int:
    if part <= 0:
        return 0
    return MAX_PPM if weight <= 0 else min(MAX_PPM, int(part * PPM / weight))
