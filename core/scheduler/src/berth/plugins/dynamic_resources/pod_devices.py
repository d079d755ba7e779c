"""What is remembered of a pod with claims during its attempt."""

import msgspec

from berth.objects.devices.resource_claims import ResourceClaim
from berth.plugins.dynamic_resources.binding import Held
from berth.plugins.dynamic_resources.claims import ClaimUsers
from berth.plugins.dynamic_resources.extended_resources import ExtendedResources
from berth.plugins.dynamic_resources.filtering import DeviceQuery


class PodDevices(msgspec.Struct):
    """The pod's claims, what is asked of nodes for them, and what a node was found to have."""

    claims: list[ResourceClaim] = msgspec.field(default_factory=list)
    users: ClaimUsers | None = None
    extended: ExtendedResources | None = None
    question: DeviceQuery | None = None
    held: Held | None = None

    @property
    def empty(self) -> bool:
        """Whether the pod has to do with devices at all."""
        return not self.claims and self.extended is None


NO_DEVICES = PodDevices()
