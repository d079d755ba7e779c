"""All resources that a sandbox serves now."""

from typing import Final

from berth.config.releases.release import DEFAULT, Release, shown
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.kinds.resources import built_in
from berth.sandbox.kinds.shapes import SHAPES

# Groups as a real server orders them: kubectl resolves a short name to the first group that has it.
GROUP_ORDER: Final = (
    "",
    "apiregistration.k8s.io",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "apps",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
)


class Catalogue:
    """All resources that are served now: the built-in ones and those that definitions added."""

    def __init__(self, release: Release = DEFAULT) -> None:
        self.release = release
        """The Kubernetes release that the sandbox presents itself as."""
        self.shape = SHAPES[release]
        self._by_path: dict[tuple[str, str, str], ServedResource] = {}
        self.generation = 0
        for resource in built_in(self.shape):
            self.add(resource)

    @property
    def version(self) -> str:
        """The version of that release, such as 1.37.0."""
        return f"{shown(self.release)}.0"

    def add(self, resource: ServedResource) -> None:
        """Serve the resource, instead of an earlier one of the same name."""
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, resource: ServedResource) -> None:
        """Serve it no longer."""
        self._by_path.pop((resource.group, resource.version, resource.plural), None)
        self.generation += 1

    def get(self, group: str, version: str, plural: str) -> ServedResource | None:
        """Give the resource under that path, or None."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> ServedResource | None:
        """Give the resource of which this is the kind, or None."""
        for resource in self._by_path.values():
            if resource.kind == kind and resource.group_version == api_version:
                return resource
        return None

    def all(self) -> list[ServedResource]:
        """Give all resources, by group in the order of a real server, then by name."""
        return sorted(
            self._by_path.values(), key=lambda r: (_group_rank(r.group), r.group, r.version, r.plural)
        )

    def groups(self) -> dict[str, list[str]]:
        """Give the versions of every group, in order."""
        found: dict[str, list[str]] = {}
        for resource in self.all():
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return found


def _group_rank(group: str) -> int:
    return GROUP_ORDER.index(group) if group in GROUP_ORDER else len(GROUP_ORDER)
