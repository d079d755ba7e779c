"""Weighted max-min fair division of one amount among claimants, by progressive filling.

Each claimant has a guaranteed part and a limit. Claimants of the highest priority are filled first, each in
proportion to its weight until its limit; what they leave is the next priority's.

The result is the lexicographic maximum of the sorted weighted gains, which is unique. It is computed in
double precision: with whole numbers below 2^53 a result is off by less than 1e-9 of the amount.

Source: Bertsekas and Gallager, Data Networks, 6.5.2; the order of guarantees and priorities is KAI
Scheduler's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Claim:
    """What one claimant may get: `guaranteed` first, then by priority and weight up to `limit`."""

    guaranteed: float
    limit: float
    weight: float = 1.0
    priority: int = 0


def fill(amount: float, claims: Sequence[Claim]) -> list[float]:
    """Return each claimant's part of the amount, in the order of `claims`.

    Where the amount does not cover all guarantees, it is divided in proportion to them. A claimant of
    weight 0 gets its guarantee alone. Cost: O(n log n).
    """
    guarantees = [min(claim.guaranteed, claim.limit) for claim in claims]
    needed = sum(guarantees)
    if needed >= amount:
        return _scaled(guarantees, amount, needed)
    parts, left = guarantees, amount - needed
    order = sorted(range(len(claims)), key=lambda index: -claims[index].priority)
    for _, group in groupby(order, key=lambda index: claims[index].priority):
        left -= _fill_group(left, list(group), claims, parts)
        if left <= 0:
            break
    return parts


def _scaled(guarantees: list[float], amount: float, needed: float) -> list[float]:
    if needed <= 0:
        return guarantees
    return [part * (max(0.0, amount) / needed) for part in guarantees]


def _fill_group(left: float, group: list[int], claims: Sequence[Claim], parts: list[float]) -> float:
    """Divide what is left among claimants of one priority; return how much they took."""
    room = {index: claims[index].limit - parts[index] for index in group if claims[index].weight > 0}
    order = sorted(room, key=lambda index: room[index] / claims[index].weight)
    weights, taken = sum(claims[index].weight for index in order), 0.0
    for position, index in enumerate(order):
        level = (left - taken) / weights if weights > 0 else 0.0
        if room[index] > level * claims[index].weight:
            # The water stands below this limit, and so below those that follow.
            for each in order[position:]:
                parts[each] += level * claims[each].weight
            return left
        parts[index] += room[index]
        taken += room[index]
        weights = _rest_of_weights(weights - claims[index].weight, order, position, claims)
    return taken


def _rest_of_weights(weights: float, order: list[int], position: int, claims: Sequence[Claim]) -> float:
    """Return the weights that are left; added up anew where rounding may have eaten them."""
    heaviest = claims[order[position]].weight
    if weights > heaviest * 1e-6:
        return weights
    return sum(claims[index].weight for index in order[position + 1 :])
