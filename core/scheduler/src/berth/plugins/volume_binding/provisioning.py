"""New volumes: on which nodes a claim's class can make one, and has the room to.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go checkVolumeProvisions, hasEnoughCapacity
(Kubernetes v1.36).
"""

import msgspec
import numpy as np

from berth.framework.mirrors.listers import Listers
from berth.framework.status import PluginError
from berth.objects.quantity import whole
from berth.objects.steps import Steps
from berth.objects.volumes.storage import STORAGE, PersistentVolumeClaim, StorageClass
from berth.plugins.volume_binding.node_places import NodePlaces
from berth.snapshot.columns.growing import Ints, Mask

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
UNKNOWN = -1


class Provision(msgspec.Struct, frozen=True):
    """Where a volume would be made for the claim, and what its part of the cluster has left.

    Shapes: wanted bool (n,); capacity int64 (n,), bytes, UNKNOWN where nothing is reported.
    """

    claim: PersistentVolumeClaim
    wanted: Mask
    capacity: Ints


class Provisioner(msgspec.Struct, frozen=True):
    """Answers for one claim after another, all nodes at once."""

    listers: Listers
    places: NodePlaces

    def makes(self, claim: PersistentVolumeClaim, n: int) -> Steps[Mask]:
        """Where the claim's class makes volumes, in steps.

        Shapes: result bool (n,). Raises: PluginError where the class is gone.
        """
        storage_class = self._class(claim)
        mask = np.zeros(n, dtype=bool)
        if storage_class.provisioner not in NO_PROVISIONER:
            mask[(yield from self.places.topology(storage_class.allowed_topologies))] = True
        return mask

    def room(self, claim: PersistentVolumeClaim, n: int) -> Steps[tuple[Mask, Ints]]:
        """Where there is room for the claim, and how much is left there, in steps.

        Shapes: bool (n,); int64 (n,), as in Provision.
        """
        left = np.full(n, UNKNOWN, dtype=np.int64)
        storage_class = self._class(claim)
        driver = self.listers.csi_drivers.get(storage_class.provisioner)
        if STORAGE not in claim.spec.resources.requests or driver is None or not driver.spec.storage_capacity:
            return np.ones(n, dtype=bool), left
        enough = np.zeros(n, dtype=bool)
        size = whole(claim.requested_nanos)
        # A copy, for capacities come and go while others have their turn.
        for capacity in list(self.listers.csi_storage_capacities):
            limit = capacity.limit_nanos
            if (
                capacity.storage_class_name == storage_class.name
                and limit is not None
                and whole(limit) >= size
            ):
                rows = yield from self.places.segment(capacity)
                new = rows[~enough[rows]]
                left[new] = capacity.capacity_bytes
                enough[new] = True
                yield
        return enough, left

    def _class(self, claim: PersistentVolumeClaim) -> StorageClass:
        if not claim.storage_class:
            raise PluginError(f'no class for claim "{claim.key}"')
        storage_class = self.listers.storage_classes.get(claim.storage_class)
        if storage_class is None:
            raise PluginError(f'failed to find storage class "{claim.storage_class}"')
        return storage_class
