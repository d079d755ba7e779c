"""Use over time, where the past counts less: what is in use now, and what was before, by a half-life.

The decayed use of a constant amount approaches that amount: use that began one half-life ago counts as half
of it. It is kept in closed form, so it does not depend on how often it is looked at.

Source: KAI Scheduler's time-based fair share, and Slurm's priority/multifactor plugin, for the half-life.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class DecayedUse:
    """The use of one resource by one queue. Units: times in seconds, on a clock that never goes back."""

    half_life: float
    at: float = 0.0
    amount: float = 0.0
    _past: float = 0.0

    def set(self, amount: float, now: float) -> None:
        """Use that much from now on."""
        self._past, self.at, self.amount = self.value(now), max(self.at, now), amount

    def value(self, now: float) -> float:
        """Return the decayed use at a time that is no earlier than the last change."""
        passed = max(0.0, now - self.at)
        kept = math.exp(-passed * math.log(2) / self.half_life)
        return self.amount + (self._past - self.amount) * kept


def adjusted_weights(
    weights: Mapping[str, float], use: Mapping[str, float], strength: float
) -> dict[str, float]:
    """Return siblings' weights, lowered where a queue used more than its weight's part and raised where less.

    Both are parts of the siblings' sum: w' = max(0, w + strength * (w - u)). Without any use weights stay.
    """
    whole, used = sum(weights.values()), sum(use.get(name, 0.0) for name in weights)
    if whole <= 0 or used <= 0:
        return dict(weights)
    adjusted = {}
    for name, weight in weights.items():
        part = weight / whole
        adjusted[name] = max(0.0, part + strength * (part - use.get(name, 0.0) / used)) * whole
    return adjusted
