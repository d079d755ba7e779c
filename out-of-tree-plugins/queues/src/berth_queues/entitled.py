"""Queues that came to be entitled to more than before, without an event that tries their pods again.

A fair share grows when others want less: no pod ended, so no hint was asked for.
"""

from collections.abc import Iterator

from berth_queues.cluster import Cluster

MAX_PODS = 64
"""Of one queue that are tried again at once."""


class NewlyEntitled:
    """Remembers which queues could not have their next pod by their fair share."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._short: set[str] = set()

    def pods(self) -> list[str]:
        """Return pods tried in vain of queues whose share has room for them since. Cost: O(queues)."""
        lines = self._cluster.waiting.lines
        waiting = {name for name, line in lines.items() if any(pod.in_vain for pod in line.pods.values())}
        if not waiting:
            self._short.clear()
            return []
        short = set(self._without_room(waiting))
        gained = (self._short - short) & waiting
        self._short = short
        found = ([pod.uid for pod in lines[name].pods.values() if pod.in_vain] for name in sorted(gained))
        return [uid for several in found for uid in several[:MAX_PODS]]

    def _without_room(self, names: set[str]) -> Iterator[str]:
        entitled = self._cluster.entitlement(by_fair_share=True)
        for name in names:
            queue = self._cluster.registry.queue(name)
            if queue is None:
                continue
            pods = self._cluster.waiting.lines[name].pods.values()
            asked = next(pod.amounts for pod in pods if pod.in_vain)
            if not entitled.covers(queue, asked):
                yield name
