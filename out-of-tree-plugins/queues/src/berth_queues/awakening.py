"""Which refused pods are worth another attempt: in their turn, as many as their queues have room for by now.

    refused --room, or entitled to what others borrowed--> tried again --refused--> ...

A pod that is worth an attempt counts as placed for those behind it: what has become free once is no reason to
try all that wait for it. Where a queue is entitled to a pod for which no plan was found, the next attempt
comes after a pause, each time a longer one.
"""

from collections.abc import Hashable, Iterable

from berth_queues.admission import refusal
from berth_queues.amounts import add
from berth_queues.cluster import Cluster
from berth_queues.entitlement import Entitlement
from berth_queues.order import Turn
from berth_queues.promises import Promise, counted, counting
from berth_queues.waiting import WaitingPod

MAX_PODS = 256
"""Of one root, that are worth an attempt at once."""


class Awakening:
    """Looks through the pods that wait; nothing of what it counts stays counted."""

    def __init__(self, cluster: Cluster, entitlement: Entitlement | None, now: float) -> None:
        """Without an `entitlement` only room counts."""
        self._cluster, self._entitlement, self._now = cluster, entitlement, now

    def pods(self, roots: Iterable[str]) -> set[str]:
        """Return the UIDs of pods below these roots. Cost: O(refused pods of their queues)."""
        held = list(self._cluster.promises.held())
        return {uid for root in roots for uid in self._below(root, held)}

    def _below(self, root: str, held: list[Promise]) -> list[str]:
        registry, left_out, found = self._cluster.registry, set[Hashable](), list[Turn]()
        try:
            for turn in self._cluster.order.refused(root, left_out):
                first = turn.pods[0]
                if self._waits(first):
                    continue
                if self._is_worth(turn, held):
                    registry.use(first.queue, turn.amounts)
                    turn.counts = True
                    found.append(turn)
                elif first.paused.until <= self._now:
                    left_out.add(first.kind)
                if len(found) >= MAX_PODS:
                    break
        finally:
            for turn in found:
                registry.use(turn.pods[0].queue, turn.amounts, -1)
        return [pod.uid for turn in found for pod in turn.pods]

    def _waits(self, pod: WaitingPod) -> bool:
        """Return whether pods are leaving for it already.

        A plan of which no eviction was seen may have been turned down: then the next attempt makes another.
        """
        promise = self._cluster.promises.by_key.get(self._cluster.claim_key(pod.uid, pod.group))
        return promise is not None and promise.begun and bool(promise.victims)

    def _is_worth(self, turn: Turn, held: list[Promise]) -> bool:
        first, books = turn.pods[0], self._cluster
        wanted = books.wanted(first.asked, first.group)
        asked: dict[str, int] = {}
        for each in wanted:
            add(asked, each.requests)
        key = books.claim_key(first.uid, first.group)
        others = list(counting(held, books.ledger, key, first.queue, first.priority))
        with counted(others, books.registry):
            if refusal(books.registry, first.queue, asked, len(wanted)) is None:
                return True
            if self._entitlement is None or first.paused.until > self._now:
                return False
            return self._entitlement.covers(books.registry.queue(first.queue), asked)
