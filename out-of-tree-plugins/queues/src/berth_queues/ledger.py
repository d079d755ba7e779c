"""Who uses what: reservations of attempts, and the pods in the cluster's state.

(nothing) --reserve--> used by (uid, attempt) --the state shows it--> used --it is gone--> (nothing)
                            |
                            +--unreserve (same attempt)--> (nothing)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from berth_queues.amounts import Amounts, add
from berth_queues.groups import GroupKey, facts_of
from berth_queues.registry import Registry
from berth_sdk import Pod

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Holding:
    """What one pod uses on one node; attempt 0 is a placed pod. `created` is its creation's timestamp."""

    uid: str
    attempt: int
    namespace: str
    name: str
    queue: str
    node_name: str
    priority: int
    requests: Amounts
    leaving: bool
    created: str
    labels: Mapping[str, str]
    group: GroupKey | None


@dataclass
class Ledger:
    """Holdings by pod, queue and group, and what they come to on each node; the registry's use follows."""

    registry: Registry
    by_uid: dict[str, Holding] = field(default_factory=dict)
    by_queue: dict[str, dict[str, Holding]] = field(default_factory=dict)
    by_group: dict[GroupKey, dict[str, Holding]] = field(default_factory=dict)
    on_node: dict[str, dict[str, int]] = field(default_factory=dict)
    """What all pods of a node use, those that are leaving included."""
    leaving: set[str] = field(default_factory=set)
    """The pods that were deleted, and are ending."""

    def put(self, pod: Pod, requests: Amounts, node_name: str, attempt: int) -> None:
        """Count the pod there, in place of wherever it counted."""
        self.drop(pod.uid)
        facts = facts_of(pod)
        self._count(
            Holding(
                pod.uid,
                attempt,
                pod.namespace,
                pod.name,
                self.registry.name_of(pod.namespace, pod.labels),
                node_name,
                pod.spec.priority,
                requests,
                facts.is_leaving,
                facts.created,
                pod.labels,
                facts.group,
            )
        )

    def release(self, uid: str, attempt: int) -> None:
        """Drop what this attempt holds, and nothing of another."""
        holding = self.by_uid.get(uid)
        if holding is not None and holding.attempt == attempt:
            self.drop(uid)

    def drop(self, uid: str) -> Holding | None:
        """Count the pod no longer; return what it held."""
        holding = self.by_uid.pop(uid, None)
        if holding is None:
            return None
        self.leaving.discard(uid)
        _drop(self.by_queue, holding.queue, uid)
        self._use_node(holding, -1)
        if holding.group is not None:
            _drop(self.by_group, holding.group, uid)
        self.registry.use(holding.queue, holding.requests, -1)
        return holding

    def recount(self, uid: str, requests: Amounts) -> None:
        """Count other amounts for the pod; nothing happens where it counts on no node."""
        holding = self.by_uid.get(uid)
        if holding is not None and holding.requests != requests:
            self.drop(uid)
            self._count(replace(holding, requests=requests))

    def regroup(self) -> None:
        """Count each pod in the queue that it is in now. Cost: O(pods)."""
        for holding in list(self.by_uid.values()):
            name = self.registry.name_of(holding.namespace, holding.labels)
            if name != holding.queue:
                self.drop(holding.uid)
                self._count(replace(holding, queue=name))

    def clear(self) -> None:
        """Forget everything, queues included."""
        for table in (self.by_uid, self.by_queue, self.by_group, self.on_node):
            table.clear()
        self.leaving.clear()
        self.registry.clear()

    def _count(self, holding: Holding) -> None:
        self.by_uid[holding.uid] = holding
        if holding.leaving:
            self.leaving.add(holding.uid)
        self.by_queue.setdefault(holding.queue, {})[holding.uid] = holding
        self._use_node(holding, 1)
        if holding.group is not None:
            self.by_group.setdefault(holding.group, {})[holding.uid] = holding
        self.registry.use(holding.queue, holding.requests)

    def _use_node(self, holding: Holding, sign: int) -> None:
        used = self.on_node.setdefault(holding.node_name, {})
        add(used, holding.requests, sign)
        if not used:
            del self.on_node[holding.node_name]


def _drop(table: dict[Key, dict[str, Holding]], key: Key, uid: str) -> None:
    there = table[key]
    del there[uid]
    if not there:
        del table[key]
