"""Resource claims as they are once the writes under way have landed.

A claim has up to three versions: what the watch showed, a write's answer that the watch has not shown yet,
and, before any write, the allocation that a pod on its way to a node is going to write.

    Reserve --begin--> in flight --PreBind: written--> assumed --watch: as new--> stored
                          |
                          +-- Unreserve: end

Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go claimTracker; util/assumecache
(Kubernetes v1.36).
"""

from collections.abc import Iterator
from typing import NamedTuple

from berth.framework.mirrors.store import Store
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod import Pod
from berth.snapshot.journal import Journal
from berth.snapshot.pod_group_states import GroupKey, group_of


class ChangedClaim(NamedTuple):
    """What to look at again: a stored or assumed claim by key, or an allocation in flight by UID."""

    name: str
    in_flight: bool


class _InFlight(NamedTuple):
    """A claim with the allocation that is about to be written, and the pods that count on it.

    `group` is the pod group that all of them are of, None for a pod alone.
    """

    claim: ResourceClaim
    group: GroupKey | None
    users: set[str]


class ClaimTracker:
    """The newest version of each claim, and allocations in flight; one for all profiles.

    Pods of one group may share an allocation in flight (kubernetes/kubernetes#137617): it is held until it is
    written, or until the last of them lets go.
    """

    __slots__ = ("_assumed", "_in_flight", "_store", "changes")

    def __init__(self, store: Store[ResourceClaim]) -> None:
        self._store = store
        self._assumed: dict[str, ResourceClaim] = {}
        self._in_flight: dict[str, _InFlight] = {}
        self.changes: Journal[ChangedClaim] = Journal()
        store.followers.append(self._stored)

    def get(self, name: str, namespace: str) -> ResourceClaim | None:
        """The claim of that name, None where there is none."""
        return self.by_key(f"{namespace}/{name}")

    def by_key(self, key: str) -> ResourceClaim | None:
        """The claim of that `namespace/name`, None where there is none."""
        return self._assumed.get(key) or self._store.by_key(key)

    def __iter__(self) -> Iterator[ResourceClaim]:
        for claim in self._store:
            yield self._assumed.get(claim.key, claim)
        yield from (claim for key, claim in self._assumed.items() if self._store.by_key(key) is None)

    def assume(self, claim: ResourceClaim) -> None:
        """Take a write's answer for the claim until the watch shows as much."""
        stored = self._store.by_key(claim.key)
        if stored is None or _version(claim) > _version(stored):
            self._assumed[claim.key] = claim
            self.changes.note(ChangedClaim(claim.key, in_flight=False))

    def begin(self, claim: ResourceClaim, pod: Pod) -> None:
        """Hold the devices of an allocation that is about to be written for that pod."""
        self._in_flight[claim.uid] = _InFlight(claim, group_of(pod), {pod.uid})
        self.changes.note(ChangedClaim(claim.uid, in_flight=True))

    def share(self, uid: str, pod: Pod) -> ResourceClaim | None:
        """The same as `in_flight_for`; the pod counts on it from now on."""
        held = self.in_flight_for(uid, pod)
        if held is not None:
            self._in_flight[uid].users.add(pod.uid)
        return held

    def end(self, uid: str, pod: Pod) -> bool:
        """Let go of an allocation that the pod counts on; False where it counts on none."""
        held = self._in_flight.get(uid)
        if held is None or pod.uid not in held.users:
            return False
        held.users.discard(pod.uid)
        if not held.users:
            self.written(uid)
        return True

    def written(self, uid: str) -> None:
        """The allocation is in the stored or assumed claim: it is in flight for no pod any more."""
        if self._in_flight.pop(uid, None) is not None:
            self.changes.note(ChangedClaim(uid, in_flight=True))

    def in_flight(self, uid: str) -> ResourceClaim | None:
        """The claim of that UID with the allocation that is about to be written."""
        held = self._in_flight.get(uid)
        return None if held is None else held.claim

    def in_flight_for(self, uid: str, pod: Pod) -> ResourceClaim | None:
        """The same, where the pod may count on it: it is of the group for whose pods it is written."""
        held = self._in_flight.get(uid)
        own = group_of(pod)
        return held.claim if held is not None and own is not None and own == held.group else None

    def all_in_flight(self) -> Iterator[ResourceClaim]:
        """Every claim with an allocation in flight."""
        return (held.claim for held in self._in_flight.values())

    def _stored(self, key: str) -> None:
        assumed, stored = self._assumed.get(key), self._store.by_key(key)
        if assumed is not None and (stored is None or _version(stored) >= _version(assumed)):
            del self._assumed[key]
        self.changes.note(ChangedClaim(key, in_flight=False))


def _version(claim: ResourceClaim) -> int:
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() else 0
