"""The claims of a pod: found by name or by what was made from a template for it, or for its pod group.

With the gate DRAWorkloadResourceClaims a pod's entry that its pod group has, too (the same name, the same
claim or template), is the group's: all pods of the group share one claim, which is reserved for the group.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go PreEnqueue,
foreachPodResourceClaim; k8s.io/dynamic-resource-allocation/resourceclaim (Kubernetes v1.36); KEP-5729.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from berth.framework.mirrors.claim_tracker import ClaimTracker
from berth.framework.mirrors.store import Store
from berth.objects.devices.resource_claims import Consumer, ResourceClaim
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.snapshot.pod_group_states import GroupKey, group_of

SCHEDULING: Final = "scheduling.k8s.io"
POD_GROUPS: Final = "podgroups"


class UnresolvedClaimError(Exception):
    """A claim of the pod that is not there, or not for it; the text is upstream's."""


class ClaimUsers(msgspec.Struct, frozen=True):
    """A pod, and its group where that may share claims, as claims are reserved for them.

    `of_group` are the UIDs of the pod's claims that are the group's; all others are reserved for the pod.
    """

    pod: Consumer
    group: Consumer | None = None
    of_group: frozenset[str] = frozenset()

    def of(self, claim: ResourceClaim) -> Consumer:
        """What the claim is to be reserved for."""
        return self.group if self.group is not None and claim.uid in self.of_group else self.pod

    def have(self, claim: ResourceClaim) -> bool:
        """Whether the pod may use the claim: it is reserved for the pod, or for its group."""
        return claim.reserved_for_any([one.uid for one in (self.pod, self.group) if one is not None])


class PodClaims(msgspec.Struct, frozen=True):
    """Resolves the claims of pods; `groups` is None where groups share none (DRAWorkloadResourceClaims)."""

    tracker: ClaimTracker
    groups: Store[PodGroup] | None = None

    def of(self, pod: Pod) -> list[ResourceClaim]:
        """The pod's claims, in the order of its spec; entries that need none are left out.

        Raises: UnresolvedClaimError.
        """
        return [claim for _, claim in self._found(pod)]

    def resolvable(self, pod: Pod) -> bool:
        """Whether all of the pod's claims are there."""
        try:
            self.of(pod)
        except UnresolvedClaimError:
            return False
        return True

    def users(self, pod: Pod) -> "ClaimUsers":
        """What each of the pod's claims is to be reserved for: the pod, or its group.

        Raises: UnresolvedClaimError, also where the pod's group is not there.
        """
        group, of_group = self._group(pod), set[str]()
        if group is None:
            return ClaimUsers(pod_consumer(pod))
        seen = set[str]()
        for entry, claim in self._found(pod):
            if claim.uid not in seen and _shares(group, entry):
                of_group.add(claim.uid)
            seen.add(claim.uid)
        return ClaimUsers(pod_consumer(pod), group_consumer(group), frozenset(of_group))

    def _found(self, pod: Pod) -> Iterator[tuple[PodResourceClaim, ResourceClaim]]:
        made = generated_claims(pod)
        for entry in pod.spec.resource_claims:
            name = claim_name(pod, entry, made)
            if name is not None:
                yield entry, self._claim(pod, name, must_own=entry.resource_claim_name is None)

    def _claim(self, pod: Pod, name: str, *, must_own: bool) -> ResourceClaim:
        claim = self.tracker.get(name, pod.namespace)
        if claim is None:
            raise UnresolvedClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise UnresolvedClaimError(f'resourceclaim "{name}" is being deleted')
        group = group_of(pod) if self.groups is not None else None
        if must_own and not _owned(claim, pod, group):
            owner = (
                "Pod is not owner" if group is None else f"neither Pod nor PodGroup {group.name} is the owner"
            )
            raise UnresolvedClaimError(
                f"ResourceClaim {claim.key} was not created for Pod {pod.key} ({owner})"
            )
        return claim

    def _group(self, pod: Pod) -> PodGroup | None:
        key = group_of(pod)
        if self.groups is None or key is None:
            return None
        group = self.groups.get(key.name, key.namespace)
        if group is None:
            raise UnresolvedClaimError(f'podgroup.scheduling.k8s.io "{key.name}" not found')
        return group


def generated_claims(pod: Pod) -> Mapping[str, str | None]:
    """The claims that were made for the pod's entries, by the entry's name; None for one that needs none."""
    made: dict[str, str | None] = {}
    for status in pod.status.resource_claim_statuses:
        name = status.get("resourceClaimName")
        made.setdefault(str(status.get("name")), None if name is None else str(name))
    return made


def claim_name(pod: Pod, entry: PodResourceClaim, made: Mapping[str, str | None]) -> str | None:
    """The claim that the pod names or that was made for it (`generated_claims`); None where it needs none.

    Raises: UnresolvedClaimError.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    if entry.resource_claim_template_name is None:
        raise UnresolvedClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    if entry.name in made:
        return made[entry.name]
    raise UnresolvedClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def pod_consumer(pod: Pod) -> Consumer:
    """The pod, as a claim is reserved for it."""
    return Consumer(resource="pods", name=pod.name, uid=pod.uid)


def group_consumer(group: PodGroup) -> Consumer:
    """All pods of the group, as a claim is reserved for them."""
    return Consumer(SCHEDULING, POD_GROUPS, group.name, group.uid)


def _shares(group: PodGroup, entry: PodResourceClaim) -> bool:
    """Whether the pod's entry is one of the group's."""
    return any(
        (own.name, own.resource_claim_name, own.resource_claim_template_name)
        == (entry.name, entry.resource_claim_name, entry.resource_claim_template_name)
        for own in group.spec.resource_claims
    )


def _owned(claim: ResourceClaim, pod: Pod, group: GroupKey | None) -> bool:
    """Whether the claim was made for the pod, or for its group, of which a pod knows the name alone."""
    for owner in claim.metadata.owner_references:
        if owner.controller:
            of_group = owner.kind == "PodGroup" and owner.api_version.startswith(f"{SCHEDULING}/")
            return owner.uid == pod.uid or (of_group and group is not None and owner.name == group.name)
    return False


def reserved_for_alone(claims: Iterable[ResourceClaim], users: AbstractSet[str]) -> Iterator[str]:
    """Yield the keys of allocated claims that these have, by UID, and no others."""
    for claim in claims:
        reserved_for = claim.status.reserved_for
        if claim.allocation is not None and reserved_for and all(each.uid in users for each in reserved_for):
            yield claim.key
