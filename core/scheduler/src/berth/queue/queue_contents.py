"""What is in the scheduling queue, for those who look: pods that wait, where, and how many.

Called by: the scheduling loop, explanations, pages and metrics.

Source: pkg/scheduler/backend/queue/scheduling_queue.go PendingPods, GetPod (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from berth.framework.mirrors.group_trees import COMPOSITE, PODGROUP, kind_of
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.objects.pods.pod import Pod
from berth.queue.moves.queued_groups import QueuedGroups
from berth.queue.pools.in_flight import InFlight
from berth.queue.sub_queues import BACKOFF, GATED, QueuePosition, QueueSizes, SubQueues


class GatedBy(NamedTuple):
    """What holds a pod back: the plugin, its message, and the pod of the group that it is about.

    The plugin is empty where the pod waits for its group to be seen.
    """

    plugin: str
    message: str
    pod: Pod


class QueueContents:
    """The side of a queue that is read; `groups` are those that wait as one, where the release has it so."""

    _sub_queues: SubQueues
    _in_flight: InFlight
    groups: QueuedGroups | None
    _pop_from_backoff: bool

    def ready(self, shard: str = "") -> bool:
        """Whether `pop(shard)` has a pod to give."""
        sub_queues = self._sub_queues
        return sub_queues.active.peek(shard) is not None or (
            self._pop_from_backoff and sub_queues.backoff.normal.peek(shard) is not None
        )

    def upcoming(self, most: int) -> Iterator[Pod]:
        """The pods that are popped next, as far as can be said now: about so many of each shard."""
        return (each.pod for record in self._sub_queues.active.upcoming(most) for each in record.members)

    def sizes(self) -> QueueSizes:
        """How many pods wait where."""
        return self._sub_queues.sizes()

    def pods_by_queue(self) -> dict[str, int]:
        """How many pods wait where: the values of pending_pods, those of groups included that wait apart."""
        sizes = self.sizes()._asdict()
        if self.groups is not None:
            sizes["incomplete"], sizes["pending"] = self.groups.counts()
        return sizes

    def entities_by_queue(self) -> dict[tuple[str, str], int]:
        """How many pods on their own, and how many groups, wait where, by queue and type."""
        members = [each.group for each in self._sub_queues.grouped.copy().values() if each.group is not None]
        groups = Counter((_part(group), kind_of(group.group_key)) for group in set(members))
        alone = self.sizes()._asdict()
        for group in members:
            alone[_part(group)] -= 1
        kinds = (
            (PODGROUP, COMPOSITE) if self.groups is not None and self.groups.follows_trees else (PODGROUP,)
        )
        of_groups = {(part, kind): groups[part, kind] for part in alone for kind in kinds}
        return {(part, "pod"): max(0, count) for part, count in alone.items()} | of_groups

    def pending_pods(self) -> tuple[list[Pod], str]:
        """All waiting pods, and a summary of their numbers."""
        sub_queues = self._sub_queues
        summary = (
            f"activeQ:{len(sub_queues.active)}; backoffQ:{len(sub_queues.backoff)}; "
            f"unschedulablePods:{len(sub_queues.pool)}"
        )
        if self.groups is not None:
            incomplete, pending = self.groups.counts()
            summary += f"; pendingPodGroupMemberPods:{pending}; incompletePodGroupPods:{incomplete}"
        return [record.pod for record in self.records()], summary

    def in_flight(self) -> Iterator[str]:
        """The UIDs of the pods that were popped and are not done, in the order they were popped."""
        return iter(self._in_flight)

    def record(self, namespace: str, name: str) -> QueuedPodInfo | None:
        """The record of a waiting pod, None where it does not wait."""
        return self._record(f"{namespace}/{name}" if namespace else name)

    def _record(self, key: str) -> QueuedPodInfo | None:
        return self._sub_queues.get(key) or self._sub_queues.grouped.get(key)

    def position_of(self, record: QueuedPodInfo) -> QueuePosition:
        """Where a waiting pod is, alone or with its group, for people. Cost: O(what is in activeQ)."""
        sub_queues, entity = self._sub_queues, record.group or record
        place = sub_queues.place_of(entity)
        expiry = sub_queues.backoff.policy.expiry(entity) if place == BACKOFF else 0.0
        # The last second of a backoff counts in full.
        return QueuePosition(
            place, sub_queues.active.position(entity.key), expiry + 1.0 if expiry > 0 else 0.0
        )

    def place_of(self, record: QueuedPodInfo) -> str:
        """The place that a waiting pod is in, alone or with its group."""
        return self._sub_queues.place_of(record.group or record)

    def gate_of(self, record: QueuedPodInfo) -> GatedBy | None:
        """What keeps a waiting pod out of activeQ and backoffQ; None for one that nothing does.

        A pod waits with its group for what holds any pod of the group back, and for its group to be seen.
        """
        lacks = self.groups.lacks(record) if record.group is None and self.groups is not None else ""
        if lacks:
            return GatedBy("", lacks, record.pod)
        entity = record.group or record
        if not entity.gated:
            return None
        held = (each for each in entity.members if each.gating_plugin == entity.gating_plugin)
        return GatedBy(entity.gating_plugin, entity.gating_message, next(held, entity).pod)

    def records(self) -> Iterator[QueuedPodInfo]:
        """The records of all waiting pods: in activeQ in no order, then in backoffQ, then in the pool."""
        for record in self._sub_queues:
            yield from record.members
        if self.groups is not None:
            yield from self.groups.apart()


def _part(group: QueuedGroupInfo) -> str:
    """The part of the queue that the group counts in."""
    return GATED if group.gated else group.place
