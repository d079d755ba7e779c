"""Who uses what: reservations of attempts, and the pods in the cluster's state.

(nothing) --reserve--> used by (uid, attempt) --the state shows it--> used --it is gone--> (nothing)
                            |
                            +--unreserve (same attempt)--> (nothing)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from berth_capacity_scheduling.amounts import Amounts
from berth_capacity_scheduling.balance import Balance
from berth_sdk import Pod


@dataclass(frozen=True, slots=True)
class Holding:
    """What one pod uses on one node; attempt 0 is a placed pod. `order`: who was heard of first."""

    uid: str
    attempt: int
    namespace: str
    node_name: str
    priority: int
    requests: Amounts
    leaving: bool
    order: int
    name: str
    labels: Mapping[str, str]


@dataclass
class Ledger:
    """Holdings by pod, by namespace and by node; the balance follows."""

    balance: Balance = field(default_factory=Balance)
    by_uid: dict[str, Holding] = field(default_factory=dict)
    by_namespace: dict[str, dict[str, Holding]] = field(default_factory=dict)
    by_node: dict[str, dict[str, Holding]] = field(default_factory=dict)
    _orders: Iterator[int] = field(default_factory=count)

    def put(self, pod: Pod, requests: Amounts, node_name: str, attempt: int) -> None:
        """Count the pod there, in place of wherever it counted."""
        before = self.by_uid.get(pod.uid)
        self.drop(pod.uid)
        order = next(self._orders) if before is None else before.order
        holding = Holding(
            pod.uid,
            attempt,
            pod.namespace,
            node_name,
            pod.spec.priority,
            requests,
            is_leaving(pod),
            order,
            pod.name,
            pod.labels,
        )
        self.by_uid[pod.uid] = holding
        self.by_namespace.setdefault(pod.namespace, {})[pod.uid] = holding
        self.by_node.setdefault(node_name, {})[pod.uid] = holding
        self.balance.use(pod.namespace, requests)

    def release(self, uid: str, attempt: int) -> None:
        """Drop what this attempt holds, and nothing of another."""
        holding = self.by_uid.get(uid)
        if holding is not None and holding.attempt == attempt:
            self.drop(uid)

    def drop(self, uid: str) -> None:
        """Count the pod no longer."""
        holding = self.by_uid.pop(uid, None)
        if holding is not None:
            del self.by_namespace[holding.namespace][uid]
            del self.by_node[holding.node_name][uid]
            self.balance.use(holding.namespace, holding.requests, -1)

    def clear(self) -> None:
        """Forget everything, quotas included."""
        for table in (self.by_uid, self.by_namespace, self.by_node):
            table.clear()
        self.balance.clear()


def is_leaving(pod: Pod) -> bool:
    """Return whether the pod was deleted and is ending."""
    return b'"deletionTimestamp"' in pod.source and bool(pod.raw["metadata"].get("deletionTimestamp"))
