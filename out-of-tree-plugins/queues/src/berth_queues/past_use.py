"""What queues used in the past, and their weights by it: one that used more than its part weighs less.

A queue's use is its dominant share of what all nodes offer; the past of a queue above is that of all below
it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from berth_queues.decay import DecayedUse, adjusted_weights
from berth_queues.dominant import PPM, dominant_share
from berth_queues.registry import Registry
from berth_queues.tree import NO_AMOUNTS, Queue

LEAST = 1e-6
"""Decayed use below this part of the cluster is forgotten."""


@dataclass
class PastUse:
    """Decayed use by queue; with a half-life of 0 nothing is kept and all weights stay."""

    registry: Registry
    half_life: float = 0.0
    strength: float = 1.0
    _by_queue: dict[str, DecayedUse] = field(default_factory=dict)

    def note(self, name: str, now: float) -> None:
        """Take over what a queue's own pods use from now on."""
        if self.half_life <= 0:
            return
        use = self._by_queue.get(name)
        if use is None:
            use = self._by_queue[name] = DecayedUse(self.half_life, at=now)
        own = self.registry.own.get(name, NO_AMOUNTS)
        use.set(dominant_share(own, NO_AMOUNTS, self.registry.offered, 1.0).in_all / PPM, now)

    def configure(self, half_life: float, strength: float) -> None:
        """Count the past in that way; another half-life begins anew."""
        if half_life != self.half_life:
            self._by_queue.clear()
        self.half_life, self.strength = half_life, strength

    def adjust(self, now: float) -> None:
        """Let siblings weigh what their past makes them weigh. Cost: O(queues)."""
        if self.half_life <= 0:
            self.registry.factors = {}
            return
        for name in [
            name for name, use in self._by_queue.items() if use.value(now) < LEAST and not use.amount
        ]:
            del self._by_queue[name]
        factors: dict[str, float] = {}
        for queue in self.registry.tree.queues.values():
            factors |= self._factors(queue.children, now)
        apart = [
            each for root in self.registry.tree.roots() if root.spec.shares_apart for each in root.children
        ]
        roots = [root for root in self.registry.tree.roots() if not root.spec.shares_apart]
        self.registry.factors = factors | self._factors([*roots, *apart], now)

    def _factors(self, siblings: Iterable[Queue], now: float) -> dict[str, float]:
        weights = {queue.name: queue.spec.weight for queue in siblings}
        use = {queue.name: self._used(queue, now) for queue in siblings}
        adjusted = adjusted_weights(weights, use, self.strength)
        return {name: adjusted[name] / weight for name, weight in weights.items() if weight > 0}

    def _used(self, queue: Queue, now: float) -> float:
        own = self._by_queue.get(queue.name)
        return (0.0 if own is None else own.value(now)) + sum(
            self._used(child, now) for child in queue.children
        )
