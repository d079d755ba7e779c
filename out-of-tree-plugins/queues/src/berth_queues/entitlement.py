"""What a queue may take back, and from whom: quotas, or fair shares, level by level.

A pod may take from a queue where, below the queue that both are under, every queue on its own side stays
within what it is entitled to, and every queue on the other side has more than that. So what was taken back
can't be taken again while shares stay: no two queues evict each other's pods in turn.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from berth_queues.amounts import Amounts
from berth_queues.tree import Queue

TOLERANCE = 1e-6
"""Of one unit: fair shares are computed in double precision."""


@dataclass(frozen=True)
class Entitlement:
    """How much of each resource queues are entitled to; `shares` by queue, None where quotas alone count."""

    shares: Mapping[str, Mapping[str, float]] | None = None

    def of(self, queue: Queue, resource: str) -> float:
        """Return how much of the resource the queue may have back."""
        quota = float(queue.subtree.get(resource, 0))
        if self.shares is None:
            return quota
        return self.shares.get(queue.name, {}).get(resource, quota)

    def levels_within(self, queue: Queue, asked: Amounts) -> int:
        """Return how many queues, from the pod's own upwards, use no more than they are entitled to.

        What the pods ask for counts as used already; only resources that are governed and asked for count.
        """
        governed = self._governed(queue) & asked.keys()
        if not governed:
            return 0
        levels = 0
        for each in queue.path():
            if any(each.used.get(r, 0) > self.of(each, r) + TOLERANCE for r in governed):
                break
            levels += 1
        return levels

    def covers(self, queue: Queue | None, asked: Amounts) -> bool:
        """Return whether the queue would be within what it is entitled to with that on top of its use."""
        if queue is None:
            return False
        queue.use(asked)
        levels = self.levels_within(queue, asked)
        queue.use(asked, -1)
        return levels > 0

    def may_take(self, queue: Queue, levels: int, other: Queue, resources: Amounts) -> bool:
        """Return whether pods of `queue` may take these from `other`; see `levels_within` for `levels`."""
        mine, common = list(queue.path()), None
        at = {each.name: index for index, each in enumerate(mine)}
        for each in other.path():
            if each.name in at:
                common = at[each.name]
                break
            if not self.is_over(each, resources):
                return False
        return common is not None and 0 < common <= levels

    def is_over(self, queue: Queue, resources: Amounts) -> bool:
        """Return whether the queue uses more than it is entitled to of one of these resources."""
        governed = self._governed(queue) & resources.keys()
        return any(queue.used.get(r, 0) > self.of(queue, r) + TOLERANCE for r in governed)

    def _governed(self, queue: Queue) -> AbstractSet[str]:
        """Return the resources that count: those of quotas, or, by shares, all that there are."""
        return queue.root.quoted if self.shares is None else queue.root.subtree.keys()

    def excess(self, queue: Queue) -> float:
        """Return by how much of its parent's resources the queue is over, as a part."""
        total = queue.root.subtree
        over = (
            (queue.used.get(r, 0) - self.of(queue, r)) / total[r] for r in queue.used if total.get(r, 0) > 0
        )
        return max(over, default=0.0)
