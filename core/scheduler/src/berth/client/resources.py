"""Where each kind lives in the API: plain path strings, built from a small table."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import quote

_plain = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*").fullmatch


class Resource(NamedTuple):
    """One kind of object as the API server addresses it."""

    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of its group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str = "") -> str:
        """The path of all its objects, or of those in one namespace."""
        if self.namespaced and namespace:
            return f"{self.root}/namespaces/{_segment(namespace)}/{self.plural}"
        return f"{self.root}/{self.plural}"

    def path(self, namespace: str, name: str, subresource: str = "") -> str:
        """The path of one object, or of a subresource of it."""
        path = f"{self.collection(namespace)}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path


def _segment(name: str) -> str:
    """A name as part of a path; nearly all are DNS names, which need no quoting."""
    return name if _plain(name) else quote(name, safe="")


PODS = Resource("", "v1", "pods", namespaced=True)
NODES = Resource("", "v1", "nodes", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
SERVICES = Resource("", "v1", "services", namespaced=True)
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", namespaced=True)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", namespaced=True)
CONFIG_MAPS = Resource("", "v1", "configmaps", namespaced=True)
REPLICA_SETS = Resource("apps", "v1", "replicasets", namespaced=True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", namespaced=True)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", namespaced=True)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", namespaced=False)
CSI_STORAGE_CAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities", namespaced=True)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", namespaced=True)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1beta2", "devicetaintrules", namespaced=False)
POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", namespaced=True)
COMPOSITE_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha3", "compositepodgroups", namespaced=True)
VERSIONS: Final[Mapping[Resource, tuple[str, ...]]] = MappingProxyType(
    {
        DEVICE_TAINT_RULES: ("v1", "v1beta2", "v1alpha3"),
        POD_GROUPS: ("v1beta1", "v1alpha3", "v1alpha2"),
    }
)
"""Every version that is read of kinds whose version goes by the API server's release, the best first."""


def in_each_version(kind: Resource) -> tuple[Resource, ...]:
    """The kind in each version that is read, the best first."""
    return tuple(kind._replace(version=version) for version in VERSIONS.get(kind, (kind.version,)))


LEASES = Resource("coordination.k8s.io", "v1", "leases", namespaced=True)
EVENTS = Resource("events.k8s.io", "v1", "events", namespaced=True)
SCHEDULERS = Resource("berth.dev", "v1alpha1", "schedulers", namespaced=True)
SCHEDULER_PLUGINS = Resource("berth.dev", "v1alpha1", "schedulerplugins", namespaced=True)
