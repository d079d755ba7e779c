"""Extended resources that devices stand behind, as scoring counts them: devices in place of amounts.

On a node that offers none of such a resource, its devices of the class are what it has, and those that claims
hold are in use. Upstream also counts devices of superseded slices while a driver replaces them.

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
from berth.plugins.dynamic_resources.usage import DeviceUsage
from berth.snapshot.columns.growing import Ints
from berth.snapshot.snapshot import Snapshot


class Amounts(NamedTuple):
    """What nodes have of a resource, and how much of that is in use. Shapes: both int64 (n,)."""

    offered: Ints
    used: Ints


class DeviceOffers:
    """What devices offer of extended resources; slices are read only where a pod requests one of them."""

    def __init__(self, listers: Listers) -> None:
        self._names = DeviceClassNames(listers.device_classes)
        self._slices = listers.slice_tracker
        self._usage = DeviceUsage(listers.claim_tracker)
        self._inventory = Inventory(())
        self._inventory_of = 0

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
        if self._inventory_of != self._slices.generation:
            self._inventory = Inventory(self._slices, self._inventory)
            self._inventory_of = self._slices.generation
        self._usage.refresh()
        groups = at_once(self._inventory.groups(nodes))
        return {name: self._amounts(name, behind, nodes, groups) for name, behind in classes.items()}

    def _amounts(self, name: str, behind: DeviceClass, nodes: Snapshot, groups: Ints) -> Amounts:
        itself = nodes.offered(name)
        offered = np.zeros(len(nodes), dtype=np.int64) if itself is None else itself.copy()
        used = np.zeros(len(nodes), dtype=np.int64) if itself is None else nodes.held(name).copy()
        if len(nodes):
            views, numbers = np.unique(groups, return_inverse=True)
            counted = np.array([self._counted(behind, self._inventory.view(int(view))) for view in views])
            by_devices = (offered == 0) & (counted[numbers, 0] > 0)
            offered[by_devices] = counted[numbers, 0][by_devices]
            used[by_devices] = counted[numbers, 1][by_devices]
        return Amounts(offered, used)

    def _counted(self, behind: DeviceClass, view: ReachableDevices) -> tuple[int, int]:
        """How many devices of the class there are, and how many of them are in use."""
        selectors = [s.cel.expression for s in behind.spec.selectors if s.cel is not None]
        devices = (device for part in view.parts for device in part.devices)
        try:
            found = [device for device in devices if device.matches_all(selectors)]
        except DeviceSelectorError:
            return 0, 0
        return len(found), sum(self._in_use(device) for device in found)

    def _in_use(self, device: Device) -> bool:
        return device.id in self._usage.holders or device.id in self._usage.consumed
