"""Whether pods are worth another attempt after pods have left, or their containers want less.

A pod whose turn the plugin does not know, because it does not sort the queue, is worth one where its queue
has room for it.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from berth_queues.awakening import Awakening
from berth_queues.groups import facts_of
from berth_queues.waiting import WaitingPod
from berth_sdk import ClusterEvent, Pod, Timer
from berth_sdk.objects import decode_pod

AGAIN_SECONDS = 1.0
"""After how long it is looked whether room is left."""

if TYPE_CHECKING:
    from berth_queues.plugin import Queues


class Hints:
    """Answers for the plugin, from its books."""

    def __init__(self, plugin: "Queues") -> None:
        self._plugin = plugin
        self._timer: Timer | None = None
        self._roots: set[str] = set()
        """Those of pods that were worth an attempt a moment ago."""

    def after(self, pods: Sequence[Pod], events: Sequence[ClusterEvent]) -> NDArray[np.bool_]:
        """Whether an event is a reason to try a pod. Shapes: (events, pods)."""
        gone = [self._take_off(event) if event.new is None else None for event in events]
        after_removals: list[bool] = []
        if any(gone):
            worth = self.worth({root for root in gone if root is not None})
            after_removals = self._row(pods, worth)
        rows = [
            after_removals if root is not None else self._after_change(pods, event)
            for event, root in zip(events, gone, strict=True)
        ]
        return np.array(rows, np.bool_).reshape(len(events), len(pods))

    def worth(self, roots: set[str]) -> set[str]:
        """Return the UIDs of pods below these roots that are worth an attempt."""
        plugin = self._plugin
        by_quota = plugin.reclaims and not plugin.by_fair_share
        entitlement = plugin.cluster.entitlement(by_fair_share=False) if by_quota else None
        found = Awakening(plugin.cluster, entitlement, plugin.clock.now()).pods(roots)
        if found:
            self._roots |= roots
            if self._timer is None:
                self._timer = plugin.clock.after(AGAIN_SECONDS, self._look_again)
        return found

    def stop(self) -> None:
        """Have no more pods tried."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_again(self) -> None:
        """Have others tried where those that had room did not use it: they are gone, or fit nowhere."""
        roots, self._roots, self._timer = self._roots, set(), None
        if found := self.worth(roots):
            self._plugin.requeue.pods(sorted(found), "their queues have room for them")

    def _take_off(self, event: ClusterEvent) -> str | None:
        """Count a pod no more; return the root of its queue.

        The hint may come before the state's word; for a pod that is gone for good both are the same.
        """
        if event.old is None:
            return None
        cluster, gone = self._plugin.cluster, decode_pod(event.old)
        cluster.remove(gone.uid)
        cluster.withdraw(gone.uid, facts_of(gone).group)
        return cluster.registry.root_of(cluster.registry.name_of(gone.namespace, gone.labels))

    def _row(self, pods: Sequence[Pod], worth: set[str]) -> list[bool]:
        """Return which pods are worth an attempt; of those without a turn, those that have room."""
        waiting, answers = self._plugin.cluster.waiting.by_uid, dict[Hashable, bool]()
        row = []
        for pod in pods:
            known = waiting.get(pod.uid)
            if known is not None and known.awaits_room and not self._is_promised(known):
                row.append(pod.uid in worth)
                continue
            kind = pod.uid if known is None else known.kind
            if kind not in answers:
                answers[kind] = self._plugin.refusal_of(pod) is None
            row.append(answers[kind])
        return row

    def _is_promised(self, pod: WaitingPod) -> bool:
        promises = self._plugin.cluster.promises.by_key
        return pod.uid in promises or pod.group in promises

    def _after_change(self, pods: Sequence[Pod], event: ClusterEvent) -> list[bool]:
        source = event.old or event.new
        if source is None:
            return [True] * len(pods)
        registry, changed = self._plugin.cluster.registry, decode_pod(source)
        mine = registry.queue(registry.name_of(changed.namespace, changed.labels))
        row = []
        for pod in pods:
            queue = registry.queue(registry.name_of(pod.namespace, pod.labels))
            row.append(mine is None or queue is None or mine.root is queue.root)
        return row
