"""A kept question as Kubernetes documents."""

import copy

from berth.client import resources

KINDS = {
    "Node": resources.NODES,
    "Pod": resources.PODS,
    "Namespace": resources.NAMESPACES,
    "PriorityClass": resources.Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
    "Service": resources.SERVICES,
    "PodDisruptionBudget": resources.POD_DISRUPTION_BUDGETS,
    "PersistentVolume": resources.PERSISTENT_VOLUMES,
    "PersistentVolumeClaim": resources.PERSISTENT_VOLUME_CLAIMS,
    "StorageClass": resources.STORAGE_CLASSES,
    "CSINode": resources.CSI_NODES,
    "CSIDriver": resources.CSI_DRIVERS,
    "CSIStorageCapacity": resources.CSI_STORAGE_CAPACITIES,
    "ResourceClaim": resources.RESOURCE_CLAIMS,
    "ResourceSlice": resources.RESOURCE_SLICES,
    "DeviceClass": resources.DEVICE_CLASSES,
}
"""The resource of each kind that a question may have."""


def documents_of(scenario):
    """The cluster's objects and the pod that is asked about, each with its kind."""
    objects = [
        {"kind": kind, "apiVersion": resource.api_version, **copy.deepcopy(each)}
        for kind, resource in KINDS.items()
        for each in scenario["objects"][resource.plural]
    ]
    return objects, {"kind": "Pod", "apiVersion": "v1", **copy.deepcopy(scenario["pod"])}
