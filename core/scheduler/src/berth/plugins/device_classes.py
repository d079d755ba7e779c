"""Which device class stands behind an extended resource.

Source: dynamic-resource-allocation deviceclass/extendedresourcecache/extendedresourcecache.go (Kubernetes
v1.36).
"""

from datetime import UTC, datetime

from berth.framework.mirrors.listers import Store
from berth.objects.devices.devices import DeviceClass
from berth.objects.resource_names import is_extended

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def is_device_resource(name: str) -> bool:
    """Whether devices may stand behind a resource of that name."""
    return is_extended(name) or name.startswith(IMPLICIT_PREFIX)


class DeviceClassNames:
    """Classes by the resources that they back, worked out anew when a class changed."""

    def __init__(self, classes: Store[DeviceClass]) -> None:
        self._classes = classes
        self._generation = -1
        self._explicit: dict[str, DeviceClass] = {}

    @property
    def any(self) -> bool:
        """Whether there are classes at all."""
        return len(self._classes) > 0

    def behind(self, resource: str) -> DeviceClass | None:
        """The class that backs the resource, None where none does.

        Of several classes that name one resource the newest counts, the first by name among equals.
        """
        if self._generation != self._classes.generation:
            self._read()
        if resource in self._explicit:
            return self._explicit[resource]
        if resource.startswith(IMPLICIT_PREFIX):
            return self._classes.get(resource.removeprefix(IMPLICIT_PREFIX))
        return None

    def _read(self) -> None:
        self._generation = self._classes.generation
        oldest_first = sorted(self._classes, key=lambda c: c.name, reverse=True)
        oldest_first.sort(key=lambda c: c.metadata.creation_timestamp or _LONG_AGO)
        self._explicit = {
            c.spec.extended_resource_name: c for c in oldest_first if c.spec.extended_resource_name
        }
