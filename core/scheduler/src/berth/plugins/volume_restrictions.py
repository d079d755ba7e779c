"""VolumeRestrictions: disks that one node mounts for one pod, and claims that only one pod may use.

Source: pkg/scheduler/framework/plugins/volumerestrictions (Kubernetes v1.36).
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    MaybeAwaitable,
    PreFilterResult,
    Reason,
    ReasonCodes,
)
from berth.framework.status import SKIP, unresolvable
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.objects.pods.pod_volumes import (
    Disk,
    claim_names,
    disks,
    has_disks,
    named_claims,
    rivals,
    share_disks,
)
from berth.objects.steps import Steps
from berth.objects.volumes.storage import READ_WRITE_ONCE_POD
from berth.plugins.counted_pods import CountsPods
from berth.plugins.in_tree import InTreePlugin, all_pass
from berth.plugins.pod_volumes import NAMED_CLAIM, claim_not_found, volumes_cache_key, volumes_signature
from berth.plugins.queueing import expected, queue_if
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

NO_DISK, CLAIM_IN_USE = 1, 2


class Restrictions(msgspec.Struct):
    """The pod's own disks, its claims of a single pod by name, and how often those are in use."""

    disks: tuple[Disk, ...]
    claims: frozenset[str]
    conflicts: int
    shift: Ints | int = 0
    """What pods that came and went change, row by row of a table of simulated rows. Shapes: int64 (k,)."""

    def follow(self, other: PodInfo, node: Snapshot, sign: int) -> None:
        """Count the other pod's uses in or out."""
        del node
        self.conflicts += sign * self._uses(other.pod)

    def follow_rows(self, others: Sequence[tuple[int, PodInfo]], nodes: Snapshot, sign: int) -> None:
        """Count the other pods' uses in or out, each on its row."""
        uses = np.zeros(len(nodes), dtype=np.int64)
        np.add.at(uses, [row for row, _ in others], [self._uses(other.pod) for _, other in others])
        self.shift = self.shift + sign * uses

    def _uses(self, other: Pod) -> int:
        # Upstream compares bare names here, so pods of other namespaces count, too.
        return sum(name in self.claims for name in named_claims(other))

    def clone(self) -> "Restrictions":
        """A copy for a simulation."""
        return replace(self, shift=self.shift + 0)


class VolumeRestrictions(InTreePlugin, CountsPods, FilterPlugin, EnqueueExtensions):
    """Turn down nodes where a disk is taken, and all nodes while a claim of a single pod is."""

    concerns = frozenset({PodFeature.VOLUMES})
    counted = Restrictions
    reasons = (
        Reason("node(s) had no available disk"),
        Reason(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod"
        ),
    )

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Count the claims of a single pod that are in use anywhere; every claim has to be there."""
        return paced(state.meter, self.name, self._restricted(state, pod, nodes))

    def _restricted(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Steps[PreFilterResult]:
        claims: set[str] = set()
        for name in named_claims(pod):
            claim = self.handle.listers.persistent_volume_claims.get(name, pod.namespace)
            if claim is None:
                return PreFilterResult(unresolvable(claim_not_found(name)))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                claims.add(name)
            yield
        conflicts = sum(f"{pod.namespace}/{name}" in nodes.claims for name in claims)
        if not conflicts and not has_disks(pod):
            return PreFilterResult(SKIP)
        own = []
        for disk in disks(pod):
            own.append(disk)
            yield
        state.write(Restrictions, Restrictions(tuple(own), frozenset(claims), conflicts))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """Answer 1 where a disk is taken, else 2 while a claim is in use."""
        return paced(state.meter, self.name, self._codes(state.read(Restrictions), pod, nodes))

    def _codes(self, known: Restrictions, pod: Pod, nodes: Snapshot) -> Steps[ReasonCodes]:
        codes = np.where(known.conflicts + known.shift > 0, np.uint8(CLAIM_IN_USE), all_pass(len(nodes)))
        if known.disks:
            codes[(yield from taken(nodes, pod, known.disks))] = NO_DISK
        return codes

    def sign_pod(self, pod: Pod) -> Hashable:
        """The volumes."""
        return volumes_signature(pod)

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """Nothing for pods without claims and disks."""
        del state, nodes
        return volumes_cache_key(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that leave a disk or a claim free, nodes that come, and claims that come."""
        claims = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deletion),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD)),
            ClusterEventWithHint(claims, NAMED_CLAIM),
        ]


def taken(nodes: Snapshot, pod: Pod, wanted: tuple[Disk, ...]) -> Steps[Mask]:
    """Where one of the pod's disks is in use in a way that leaves no room for another pod, in steps.

    Shapes: result bool (n,).
    """
    everywhere = np.zeros(len(nodes.whole), dtype=bool)
    rows: set[int] = set()
    for disk in wanted:
        for rival in rivals(disk):
            held = nodes.volumes.rows(rival)
            if disk.kind != "rbd":
                rows.update(held)
                continue
            for row in held:
                if row not in rows and _mounted(nodes.whole.pods[row].values(), pod):
                    rows.add(row)
                yield
        yield
    everywhere[[*rows]] = True
    here: Mask = everywhere[nodes.rows]
    if nodes.own_pods:
        for i in nodes.unsure(here).tolist():
            here[i] = _mounted(nodes.pods[i].values(), pod)
    return here


def _mounted(infos: Iterable[PodInfo], pod: Pod) -> bool:
    return any(info.volumes and share_disks(pod, info.pod) for info in infos)


def after_pod_deletion(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the deleted pod held a disk that the waiting one wants, or shared a claim with it."""
    del new
    deleted = expected(Pod, old)
    if deleted.namespace != pod.namespace:
        return QueueingHint.SKIP
    ours, theirs = pod.template.derived(claim_names), deleted.template.derived(claim_names)
    return queue_if(not ours.isdisjoint(theirs) or share_disks(pod, deleted))
