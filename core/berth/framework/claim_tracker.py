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

from berth.framework.store import Store
from berth.objects.resource_claims import ResourceClaim
from berth.snapshot.journal import Journal


class ChangedClaim(NamedTuple):
    """What to look at again: a stored or assumed claim by key, or an allocation in flight by UID."""

    name: str
    in_flight: bool


class ClaimTracker:
    """The newest version of each claim, and allocations in flight; one for all profiles."""

    __slots__ = ("_assumed", "_in_flight", "_store", "changes")

    def __init__(self, store: Store[ResourceClaim]) -> None:
        self._store = store
        self._assumed: dict[str, ResourceClaim] = {}
        self._in_flight: dict[str, ResourceClaim] = {}
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

    def begin(self, claim: ResourceClaim) -> None:
        """Hold the devices of an allocation that is about to be written."""
        self._in_flight[claim.uid] = claim
        self.changes.note(ChangedClaim(claim.uid, in_flight=True))

    def end(self, uid: str) -> bool:
        """Let go of them; False where nothing was held for the claim of that UID."""
        if self._in_flight.pop(uid, None) is None:
            return False
        self.changes.note(ChangedClaim(uid, in_flight=True))
        return True

    def in_flight(self, uid: str) -> ResourceClaim | None:
        """The claim of that UID with the allocation that is about to be written."""
        return self._in_flight.get(uid)

    def all_in_flight(self) -> Iterator[ResourceClaim]:
        """Every claim with an allocation in flight."""
        return iter(self._in_flight.values())

    def _stored(self, key: str) -> None:
        assumed, stored = self._assumed.get(key), self._store.by_key(key)
        if assumed is not None and (stored is None or _version(stored) >= _version(assumed)):
            del self._assumed[key]
        self.changes.note(ChangedClaim(key, in_flight=False))


def _version(claim: ResourceClaim) -> int:
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() else 0
