"""The table of served resources: one row a resource, the same facts discovery tells to clients.

Source: staging/src/k8s.io/api and pkg/registry/*/storage (v1.36).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from berth.sandbox import schemas
from berth.sandbox.store import Entry, Json, encode

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
FieldPaths = tuple[tuple[str, str], ...]
BASE_FIELDS: Final = (("metadata.name", "metadata.name"), ("metadata.namespace", "metadata.namespace"))


@dataclass(frozen=True, eq=False)
class Resource:
    """One served resource of one group and version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    schema: str = ""
    """Full name of the type in the OpenAPI document; empty for custom resources."""
    generation: bool = False
    """Whether metadata.generation counts the changes of the spec."""
    returns_deleted: bool = False
    """Whether a deletion answers with the object rather than with a Status."""
    fields: FieldPaths = ()
    """Field selectors beyond name and namespace: label as written in the selector, path in the object."""
    collection: str = ""
    """The collection of the store, where that is not the resource's own name."""
    custom: Any = None
    """What a CustomResourceDefinition adds; None for the built-in resources."""

    @property
    def group_version(self) -> str:
        """Give the apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Give the name with its group, as kubectl prints it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def store_name(self) -> str:
        """Give the name of the collection that holds it."""
        return self.collection or self.qualified

    @cached_property
    def envelope(self) -> int:
        """Give how many leading bytes of an object are its kind and apiVersion, which lists leave out."""
        return len(encode({"kind": self.kind, "apiVersion": self.group_version}))

    @property
    def has_status(self) -> bool:
        """Say whether status is written through its own subresource."""
        return "status" in self.subresources

    @cached_property
    def root_schema(self) -> Json | None:
        """Give the schema of the whole object, with its merge keys and list types."""
        if self.custom is not None:
            found: Json | None = self.custom.schema
            return found
        return schemas.root(self.schema)

    def key(self, namespace: str, name: str) -> str:
        """Give the key under which the store keeps the object."""
        return f"{namespace}/{name}" if self.namespaced else name

    @cached_property
    def _selectable(self) -> msgspec.json.Decoder[Any]:
        return _selectable_decoder(tuple(path for _, path in self.field_paths))

    @cached_property
    def field_paths(self) -> FieldPaths:
        """Give every field selector with the path it reads."""
        return BASE_FIELDS + self.fields

    def selectable(self, entry: Entry) -> Any:
        """Give what selectors can see of a stored object, decoded for the first one that looks."""
        if entry.attributes is None:
            entry.attributes = self._selectable.decode(entry.body)
        return entry.attributes

    def field_reader(self, label: str) -> Callable[[Any], str]:
        """Give the function that reads one field selector's value of what `selectable` gave.

        Raises: KeyError where the field cannot be selected by.
        """
        parts = dict(self.field_paths)[label].split(".")
        return lambda seen: _text(_walk(seen, parts))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _walk(node: Any, parts: Sequence[str]) -> Any:
    for part in parts:
        node = getattr(node, part, None)
    return node


def _selectable_decoder(paths: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    tree: Json = {"metadata": {"labels": dict[str, str] | None}}
    for path in paths:
        *parents, leaf = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = Any
    return msgspec.json.Decoder(_struct("Selectable", tree))


def _struct(name: str, tree: Json) -> Any:
    fields: list[tuple[str, Any, Any]] = [
        (key, _struct(key, kind) | None if isinstance(kind, dict) else kind, None)
        for key, kind in tree.items()
    ]
    return msgspec.defstruct(name, fields)


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EVENT_FIELDS: FieldPaths = (
    *(
        (f"{label}.{part}", f"involvedObject.{part}")
        for label in ("involvedObject", "regarding")
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    ("reason", "reason"),
    ("type", "type"),
    ("source", "source.component"),
    ("reportingComponent", "reportingComponent"),
    ("reportingController", "reportingComponent"),
)
_POD_FIELDS: FieldPaths = tuple(
    (path, path)
    for path in (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )
)


def _core(plural: str, kind: str, **more: Any) -> Resource:
    return Resource("", "v1", plural, kind, schema=f"io.k8s.api.core.v1.{kind}", **more)


def _of(group: str, plural: str, kind: str, version: str = "v1", **more: Any) -> Resource:
    package = {"rbac.authorization.k8s.io": "rbac", "networking.k8s.io": "networking"}.get(
        group, group.split(".", maxsplit=1)[0]
    )
    schema = f"io.k8s.api.{package}.{version}.{kind}"
    return Resource(group, version, plural, kind, schema=schema, **more)


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> Resource:
    return _of(group, plural, kind, namespaced=namespaced, verbs=("create",))


_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_DRA = "resource.k8s.io"
_SCALED = ("status", "scale")
_CLUSTER: Json = {"namespaced": False}

BUILT_IN: Final[tuple[Resource, ...]] = (
    _core("bindings", "Binding", verbs=("create",)),
    _core("configmaps", "ConfigMap", short_names=("cm",)),
    _core("endpoints", "Endpoints", singular="endpoints", short_names=("ep",)),
    _core("events", "Event", short_names=("ev",), fields=_EVENT_FIELDS),
    _core("limitranges", "LimitRange", short_names=("limits",)),
    _core(
        "namespaces",
        "Namespace",
        short_names=("ns",),
        subresources=("status", "finalize"),
        returns_deleted=True,
        fields=(("status.phase", "status.phase"),),
        **_CLUSTER,
    ),
    _core(
        "nodes",
        "Node",
        short_names=("no",),
        subresources=("status",),
        fields=(("spec.unschedulable", "spec.unschedulable"),),
        **_CLUSTER,
    ),
    _core(
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=("status",),
        returns_deleted=True,
    ),
    _core(
        "persistentvolumes",
        "PersistentVolume",
        short_names=("pv",),
        subresources=("status",),
        returns_deleted=True,
        **_CLUSTER,
    ),
    _core(
        "pods",
        "Pod",
        short_names=("po",),
        categories=("all",),
        subresources=("status", "binding", "eviction", "ephemeralcontainers", "log", "resize"),
        returns_deleted=True,
        generation=True,
        fields=_POD_FIELDS,
    ),
    _core(
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=("all",),
        subresources=_SCALED,
        generation=True,
        fields=(("status.replicas", "status.replicas"),),
    ),
    _core(
        "resourcequotas",
        "ResourceQuota",
        short_names=("quota",),
        subresources=("status",),
        returns_deleted=True,
    ),
    _core("secrets", "Secret", fields=(("type", "type"),)),
    _core(
        "serviceaccounts",
        "ServiceAccount",
        short_names=("sa",),
        subresources=("token",),
        returns_deleted=True,
    ),
    _core("services", "Service", short_names=("svc",), categories=("all",), subresources=("status",)),
    _of(
        "apps",
        "daemonsets",
        "DaemonSet",
        short_names=("ds",),
        categories=("all",),
        subresources=("status",),
        generation=True,
    ),
    _of(
        "apps",
        "deployments",
        "Deployment",
        short_names=("deploy",),
        categories=("all",),
        subresources=_SCALED,
        generation=True,
    ),
    _of(
        "apps",
        "replicasets",
        "ReplicaSet",
        short_names=("rs",),
        categories=("all",),
        subresources=_SCALED,
        generation=True,
        fields=(("status.replicas", "status.replicas"),),
    ),
    _of(
        "apps",
        "statefulsets",
        "StatefulSet",
        short_names=("sts",),
        categories=("all",),
        subresources=_SCALED,
        generation=True,
    ),
    _of("batch", "cronjobs", "CronJob", short_names=("cj",), categories=("all",), subresources=("status",)),
    _of("batch", "jobs", "Job", categories=("all",), subresources=("status",), generation=True),
    _of(
        "policy",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        short_names=("pdb",),
        subresources=("status",),
        generation=True,
    ),
    _of(_STORAGE, "csidrivers", "CSIDriver", returns_deleted=True, **_CLUSTER),
    _of(_STORAGE, "csinodes", "CSINode", returns_deleted=True, **_CLUSTER),
    _of(_STORAGE, "csistoragecapacities", "CSIStorageCapacity"),
    _of(_STORAGE, "storageclasses", "StorageClass", short_names=("sc",), returns_deleted=True, **_CLUSTER),
    _of(
        _STORAGE,
        "volumeattachments",
        "VolumeAttachment",
        subresources=("status",),
        returns_deleted=True,
        **_CLUSTER,
    ),
    _of(
        "scheduling.k8s.io",
        "priorityclasses",
        "PriorityClass",
        short_names=("pc",),
        generation=True,
        **_CLUSTER,
    ),
    _of("scheduling.k8s.io", "podgroups", "PodGroup", "v1alpha2", subresources=("status",)),
    _of("scheduling.k8s.io", "workloads", "Workload", "v1alpha2"),
    _of("coordination.k8s.io", "leases", "Lease"),
    _of("events.k8s.io", "events", "Event", short_names=("ev",), collection="events", fields=_EVENT_FIELDS),
    _of(_DRA, "deviceclasses", "DeviceClass", generation=True, **_CLUSTER),
    _of(
        _DRA,
        "devicetaintrules",
        "DeviceTaintRule",
        "v1beta2",
        subresources=("status",),
        generation=True,
        **_CLUSTER,
    ),
    _of(_DRA, "resourceclaims", "ResourceClaim", subresources=("status",), returns_deleted=True),
    _of(_DRA, "resourceclaimtemplates", "ResourceClaimTemplate", returns_deleted=True),
    _of(
        _DRA,
        "resourceslices",
        "ResourceSlice",
        returns_deleted=True,
        generation=True,
        fields=(("spec.nodeName", "spec.nodeName"), ("spec.driver", "spec.driver")),
        **_CLUSTER,
    ),
    _of(_RBAC, "clusterrolebindings", "ClusterRoleBinding", **_CLUSTER),
    _of(_RBAC, "clusterroles", "ClusterRole", **_CLUSTER),
    _of(_RBAC, "rolebindings", "RoleBinding"),
    _of(_RBAC, "roles", "Role"),
    _of("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    _of("networking.k8s.io", "ingresses", "Ingress", short_names=("ing",), subresources=("status",)),
    _of("networking.k8s.io", "networkpolicies", "NetworkPolicy", short_names=("netpol",), generation=True),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=("status",),
        generation=True,
        schema="io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    ),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    _review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
)

# Groups as a real server orders them: kubectl resolves a short name to the first group that has it.
GROUP_ORDER: Final = (
    "",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "apps",
    "batch",
    "networking.k8s.io",
    "policy",
    _RBAC,
    _STORAGE,
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    _DRA,
)


class Catalogue:
    """All resources that are served now: the built-in ones and those that definitions added."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0
        for resource in BUILT_IN:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Serve the resource, instead of an earlier one of the same name."""
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, resource: Resource) -> None:
        """Serve it no longer."""
        self._by_path.pop((resource.group, resource.version, resource.plural), None)
        self.generation += 1

    def get(self, group: str, version: str, plural: str) -> Resource | None:
        """Give the resource under that path, or None."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Give the resource of which this is the kind, or None."""
        for resource in self._by_path.values():
            if resource.kind == kind and resource.group_version == api_version:
                return resource
        return None

    def all(self) -> list[Resource]:
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
