"""Devices that keep a pod from the nodes it would fit on, given up for it.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go PostFilter (Kubernetes v1.36).
"""

from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.handle import Handle
from berth.framework.status import Status, unresolvable, unschedulable
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod import Pod
from berth.plugins.dynamic_resources.binding import ClaimBinder
from berth.plugins.dynamic_resources.filtering import NOT_ON_NODE
from berth.plugins.dynamic_resources.pod_devices import PodDevices
from berth.plugins.dynamic_resources.searching import PLUGIN
from berth.snapshot.pod_group_states import group_of

STILL_NOT = "still not schedulable"
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
UNRESERVED = "ResourceClaim unreserved for PodGroup"


class ClaimReleaser:
    """Frees the devices of claims that no other pod uses, and reservations of groups without a node."""

    def __init__(self, handle: Handle, binder: ClaimBinder) -> None:
        self.gives_group_claims_back = handle.rules.idle_groups_give_claims_back
        """Whether a group without a node gives its claims up (from 1.37 on)."""
        self._pod_groups = handle.pod_groups
        self._claims = handle.listers.claim_tracker
        self._binder = binder

    async def make_room(self, devices: PodDevices, pod: Pod, diagnosis: Diagnosis) -> Status:
        """Give devices up, or, up to 1.36, a group's reservation. Raises: ClaimWriteError, PluginError."""
        given_up = await self.give_up(devices, pod, diagnosis)
        if given_up:
            return unschedulable(given_up)
        return await self._without_group(devices, pod) or unschedulable(STILL_NOT)

    async def give_up(self, devices: PodDevices, pod: Pod, diagnosis: Diagnosis) -> str:
        """Free the devices of one claim that no other pod uses; "" where there is none."""
        for claim in self._unavailable(devices, diagnosis):
            latest = self._claims.by_key(claim.key) or claim
            if latest.allocation is not None and self._given_up(latest, devices, pod):
                self._claims.assume(await self._binder.writer.deallocate(latest))
                return DEALLOCATED
        if devices.extended is not None and devices.extended.made_before:
            await self._binder.writer.delete(devices.extended.claim)
            return DELETED
        return ""

    def _given_up(self, claim: ResourceClaim, devices: PodDevices, pod: Pod) -> bool:
        """Whether no other pod uses the claim."""
        group = devices.users.group if devices.users is not None and self.group_is_idle(pod) else None
        users = {pod.uid, group.uid} if group is not None and self.gives_group_claims_back else {pod.uid}
        return all(consumer.uid in users for consumer in claim.status.reserved_for)

    async def _without_group(self, devices: PodDevices, pod: Pod) -> Status | None:
        """Up to 1.36: reserve one claim of a group none of whose pods has a node for it no more."""
        users = devices.users
        if self.gives_group_claims_back or users is None or users.group is None:
            return None
        for claim in devices.claims:
            shared = claim.uid in users.of_group and claim.reserved_for_any((users.group.uid,))
            if shared and claim.allocation is not None and self.group_is_idle(pod):
                self._claims.assume(await self._binder.writer.unreserve(claim, users.group))
                return unresolvable(UNRESERVED)
        return None

    def group_is_idle(self, pod: Pod) -> bool:
        """Whether no other pod of the pod's group has a node."""
        key = group_of(pod)
        if key is None:
            return False
        known = self._pod_groups.known(key)
        return not (known.assigned | known.assumed.keys()) - {pod.uid}

    def _unavailable(self, devices: PodDevices, diagnosis: Diagnosis) -> list[ResourceClaim]:
        """The allocated claims that this plugin turned some node down for."""
        if devices.question is None:
            return []
        names = {
            diagnosis.node_names[row]
            for row, status in diagnosis.statuses().items()
            if status.plugin == PLUGIN and NOT_ON_NODE in status.own_reasons
        }
        away = devices.question.unavailable
        return [devices.claims[index] for index in sorted(away) if away[index] & names]
