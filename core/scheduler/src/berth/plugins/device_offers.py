"""Extended resources that devices stand behind, as scoring counts them: devices in place of amounts.

On a node that offers none of such a resource, its devices of the class are what it has, and those that claims
hold are in use. Upstream also counts devices of superseded slices while a driver replaces them. Counts are
kept by class and view, and made again once the use of the view's pools changed.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go (Kubernetes v1.36).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from berth.framework.mirrors.listers import Listers
from berth.objects.devices.devices import DeviceClass
from berth.objects.steps import at_once
from berth.plugins.device_classes import DeviceClassNames, is_device_resource
from berth.plugins.dynamic_resources.devices import Device, DeviceSelectorError
from berth.plugins.dynamic_resources.inventory import Inventory, ReachableDevices
from berth.plugins.dynamic_resources.supply import Features, Supply
from berth.plugins.dynamic_resources.usage import DeviceUsage
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.growing import Ints
from berth.snapshot.snapshot import Snapshot


class Amounts(NamedTuple):
    """What nodes have of a resource, and how much of that is in use. Shapes: both int64 (n,)."""

    offered: Ints
    used: Ints


MAX_BYTES = 8 << 20
"""For the counts of all classes together."""


class _Counts:
    """How many devices of one class each view has, and how many of these are in use.

    Shapes: offered and used int64 (views,).
    """

    def __init__(self, selectors: tuple[str, ...]) -> None:
        self._selectors = selectors
        self._inventory: Inventory | None = None
        self._begin(0)

    def _begin(self, views: int) -> None:
        self.offered: Ints = np.zeros(views, dtype=np.int64)
        self.used: Ints = np.zeros(views, dtype=np.int64)
        self._counted_at: Ints = np.zeros(views, dtype=np.int64)

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        return 3 * self.offered.nbytes

    def refresh(self, supply: Supply) -> None:
        """Count anew what changed. Cost: the devices of the views that changed."""
        changed_at = supply.changed_at()
        if self._inventory is not supply.inventory or self.offered.size != changed_at.size:
            self._inventory = supply.inventory
            self._begin(changed_at.size)
        for view in (changed_at > self._counted_at).nonzero()[0].tolist():
            counted = self._count(supply.inventory.view(view), supply.usage)
            self.offered[view], self.used[view] = counted
            self._counted_at[view] = supply.changes

    def _count(self, view: ReachableDevices, usage: DeviceUsage) -> tuple[int, int]:
        devices = (device for part in view.parts for device in part.devices)
        try:
            found = [device for device in devices if device.matches_all(self._selectors)]
        except DeviceSelectorError:
            return 0, 0
        return len(found), sum(_in_use(device, usage) for device in found)


def _in_use(device: Device, usage: DeviceUsage) -> bool:
    return device.id in usage.holders or device.id in usage.consumed


class DeviceOffers:
    """What devices offer of extended resources; slices are read only where a pod requests one of them."""

    def __init__(self, listers: Listers) -> None:
        self._names = DeviceClassNames(listers.device_classes)
        self._slices = listers.slice_tracker
        self._supply = Supply(Inventory(()), DeviceUsage(listers.claim_tracker), Features())
        self._counts: BoundedCache[tuple[str, ...], _Counts] = BoundedCache(MAX_BYTES)
        """By the selectors of a class."""

    def backed(self, resources: Iterable[str], requests: Mapping[str, int]) -> dict[str, DeviceClass]:
        """The classes that stand behind those of the resources that are requested."""
        if not self._names.any:
            return {}
        wanted = (name for name in resources if requests.get(name, 0) and is_device_resource(name))
        return {name: behind for name in wanted if (behind := self._names.behind(name)) is not None}

    def amounts(self, classes: Mapping[str, DeviceClass], nodes: Snapshot) -> dict[str, Amounts]:
        """What nodes have of these resources: devices where they offer none of it themselves.

        Where a selector fails on a node's devices, these do not count.
        """
        self._supply.refresh(self._slices)
        groups = at_once(self._supply.inventory.groups(nodes))
        return {name: self._amounts(name, behind, nodes, groups) for name, behind in classes.items()}

    def _amounts(self, name: str, behind: DeviceClass, nodes: Snapshot, groups: Ints) -> Amounts:
        itself = nodes.offered(name)
        offered = np.zeros(len(nodes), dtype=np.int64) if itself is None else itself.copy()
        used = np.zeros(len(nodes), dtype=np.int64) if itself is None else nodes.held(name).copy()
        if len(nodes):
            counts = self._counted(behind)
            by_devices = (offered == 0) & (counts.offered[groups] > 0)
            offered[by_devices] = counts.offered[groups][by_devices]
            used[by_devices] = counts.used[groups][by_devices]
        return Amounts(offered, used)

    def _counted(self, behind: DeviceClass) -> _Counts:
        """How many devices of the class there are, and how many of them are in use."""
        selectors = tuple(s.cel.expression for s in behind.spec.selectors if s.cel is not None)
        counts = self._counts.get(selectors) or _Counts(selectors)
        counts.refresh(self._supply)
        self._counts.put(selectors, counts, counts.size_bytes)
        return counts
