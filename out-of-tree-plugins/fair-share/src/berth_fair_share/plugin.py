"""The fair-share plugin: the queue in the order of what namespaces have."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from berth_fair_share.shares import Amounts, Shares, Waiting
from berth_sdk import CycleOutcome, Meta, Node, PlacedPod, Plugin, Pod, PodKey, SortKey, Timer

SYSTEM_CRITICAL = 2_000_000_000
"""The priority from which on pods belong to the cluster itself, and go before all shares."""
REFRESH_SECONDS = 1.0
"""How often keys are sent that became others: no pod waits for them."""
TOLERANCE_PPM = 1000
"""Keys that are off by less than a thousandth of the cluster stay."""

Weight = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Settings:
    """How the cluster is divided."""

    weights: dict[str, Weight] = field(default_factory=dict)
    """By namespace: one of weight 2 is served as if it had half of what it has."""
    weight: Weight = 1.0
    """That of all other namespaces."""
    first: Literal["share", "priority"] = "share"
    """Whether priorities rule over shares, or only within a namespace."""


class FairShare(Plugin):
    """Put pods of the namespace first that has the least of the cluster, for its weight."""

    name = "fair-share"
    version = "0.1.0"
    arguments = Settings
    pods_without_status = True
    uses_clock = True

    def __init__(self) -> None:
        self.shares = Shares()
        self._sent: dict[str, SortKey] = {}
        self._timer: Timer | None = None
        self._rows: list[str] = []

    def configure(self, arguments: Any, profile: str) -> None:
        """Divide the cluster in that way from now on."""
        del arguments, profile
        self.shares.changed |= set(self.shares.used())
        self._refresh_soon()

    # The queue.

    def sort_key(self, pod: Pod) -> SortKey:
        """Put the pod behind those of its namespace, at the share that this comes to."""
        metadata, spec = pod.metadata, pod.spec
        profile, priority = spec.scheduler_name or "default-scheduler", spec.priority or 0
        new = self.shares.wait(metadata.uid, metadata.namespace, profile, priority, requests_of(pod))
        if new is not None:
            self._tell(new, self.shares.share_of(new))
        self._refresh_soon()
        return self._sent[metadata.uid]

    def pods_left(self, uids: Sequence[str]) -> None:
        """Count those pods no more among the waiting."""
        for uid in uids:
            self.shares.leave(uid)
            self._sent.pop(uid, None)
        self._refresh_soon()

    def queue_reset(self, profile: str) -> None:
        """Forget who waits for that profile."""
        for uid in self.shares.leave_profile(profile):
            self._sent.pop(uid, None)

    def cycle_done(self, key: PodKey, outcome: CycleOutcome, node_name: str | None) -> None:
        """Let a pod that fits nowhere hold back no other one."""
        del node_name
        if outcome is CycleOutcome.UNSCHEDULABLE:
            self.shares.tried_in_vain(key.uid)
            self._refresh_soon()

    # The cluster.

    def state_reset(self, *, epoch_changed: bool) -> None:
        """Forget what is placed."""
        del epoch_changed
        self.shares.forget_cluster()
        self._rows.clear()

    def node_upserted(self, index: int, node: Node) -> None:
        """Count what the node offers."""
        self._rows[index : index + 1] = [node.name]
        offered = {name: node.allocatable(name) for name in node.status.allocatable}
        self.shares.put_node(node.name, offered)
        self._refresh_soon()

    def node_removed(self, index: int, last: int) -> None:
        """Count it no more."""
        self.shares.remove_node(self._rows[index])
        self._rows[index] = self._rows[last]
        del self._rows[last]
        self._refresh_soon()

    def pod_upserted(self, placed: PlacedPod) -> None:
        """Count what the pod uses."""
        self.shares.place(placed.uid, placed.pod.metadata.namespace, requests_of(placed.pod))
        self._refresh_soon()

    def pod_removed(self, placed: PlacedPod) -> None:
        """Count it no more."""
        self.shares.remove(placed.uid)
        self._refresh_soon()

    def state(self) -> dict[str, Any]:
        """Show what each namespace has, in millionths of the cluster."""
        return {"shares": self.shares.used()}

    def stopped(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    # Keys.

    def _tell(self, pod: Waiting, share_ppm: int) -> SortKey:
        settings: Settings = self.arguments_for(pod.profile)
        weight = settings.weights.get(pod.namespace, settings.weight)
        first = -pod.priority if settings.first == "priority" else -int(pod.priority >= SYSTEM_CRITICAL)
        key = self._sent[pod.uid] = (first, int(share_ppm / weight))
        return key

    def _refresh_soon(self) -> None:
        if self.shares.changed and self._timer is None:
            self._timer = self.clock.after(REFRESH_SECONDS, self.refresh)

    def refresh(self) -> None:
        """Send the keys that became others."""
        self._timer = None
        changed: dict[str, SortKey] = {}
        namespaces, self.shares.changed = self.shares.changed, set()
        for namespace in namespaces:
            for pod, share in self.shares.shares(namespace):
                old = self._sent.get(pod.uid)
                new = self._tell(pod, share)
                if old is None or old[0] != new[0] or abs(new[1] - old[1]) >= TOLERANCE_PPM:
                    changed[pod.uid] = new
                else:
                    self._sent[pod.uid] = old
        if changed:
            self.requeue.sort_keys(changed, "shares changed")


def requests_of(pod: Pod) -> Amounts:
    """Return what the scheduler counts for a pod, each pod as one of `pods`."""
    spec = pod.spec
    containers = (*spec.containers, *spec.init_containers)
    named = {name for container in containers for name in container.resources.requests}
    return {name: pod.request(name) for name in {*named, *spec.overhead, *spec.resources.requests}} | {
        "pods": 1
    }
