"""Who holds what: reservations of attempts, and pods in the cluster's state.

(nothing) --hold--> held by (uid, attempt) --confirm--> in the state --drop--> (nothing)
                        |                                        ^
                        +--release (same attempt)--> (nothing)   +--confirm, without a hold: after a restart
"""

from dataclasses import dataclass, field

from berth_gpu_share.devices import Share


@dataclass(frozen=True, slots=True)
class Holding:
    """One pod's share on one node; attempt 0 is a placed pod."""

    uid: str
    attempt: int
    node_name: str
    share: Share


@dataclass
class Ledger:
    """Holdings by pod and by node."""

    by_uid: dict[str, Holding] = field(default_factory=dict)
    by_node: dict[str, dict[str, Holding]] = field(default_factory=dict)

    def on(self, node_name: str) -> list[Share]:
        """Return the shares on a node."""
        return [holding.share for holding in self.by_node.get(node_name, {}).values()]

    def held(self, uid: str, attempt: int, node_name: str) -> Holding | None:
        """Return what this attempt holds on this node already."""
        holding = self.by_uid.get(uid)
        same = holding is not None and (holding.attempt, holding.node_name) == (attempt, node_name)
        return holding if same else None

    def put(self, holding: Holding) -> set[str]:
        """Take over a holding in place of whatever the pod held; return the nodes that changed.

        The same share on the same node changes nothing, though another attempt may hold it now.
        """
        before = self.by_uid.get(holding.uid)
        if before is not None and (before.node_name, before.share) == (holding.node_name, holding.share):
            self.by_uid[holding.uid] = self.by_node[holding.node_name][holding.uid] = holding
            return set()
        changed = self.drop(holding.uid)
        self.by_uid[holding.uid] = holding
        self.by_node.setdefault(holding.node_name, {})[holding.uid] = holding
        return changed | {holding.node_name}

    def release(self, uid: str, attempt: int) -> set[str]:
        """Drop what this attempt holds, and nothing of another; return the nodes that changed."""
        holding = self.by_uid.get(uid)
        return self.drop(uid) if holding is not None and holding.attempt == attempt else set()

    def drop(self, uid: str) -> set[str]:
        """Drop what the pod holds; return the nodes that changed."""
        holding = self.by_uid.pop(uid, None)
        if holding is None:
            return set()
        there = self.by_node[holding.node_name]
        del there[uid]
        if not there:
            del self.by_node[holding.node_name]
        return {holding.node_name}

    def clear(self) -> dict[str, Holding]:
        """Drop everything; return what was held, by pod."""
        held = dict(self.by_uid)
        self.by_uid.clear()
        self.by_node.clear()
        return held
