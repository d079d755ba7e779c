"""The table of built-in resources: one row a resource, the same facts that discovery gives to clients.

Source: staging/src/k8s.io/api and pkg/registry/*/storage (v1.36, v1.37).
"""

from typing import Any, Final

from berth.sandbox.kinds.resource import FieldPaths, ServedResource
from berth.sandbox.kinds.shapes import ReleaseShape
from berth.sandbox.store import Json

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


def _core(plural: str, kind: str, **more: Any) -> ServedResource:
    return ServedResource("", "v1", plural, kind, schema=f"io.k8s.api.core.v1.{kind}", **more)


def _of(group: str, plural: str, kind: str, version: str = "v1", **more: Any) -> ServedResource:
    package = {"rbac.authorization.k8s.io": "rbac", "networking.k8s.io": "networking"}.get(
        group, group.split(".", maxsplit=1)[0]
    )
    schema = f"io.k8s.api.{package}.{version}.{kind}"
    return ServedResource(group, version, plural, kind, schema=schema, **more)


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> ServedResource:
    return _of(group, plural, kind, namespaced=namespaced, verbs=("create",))


_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_DRA = "resource.k8s.io"
_SCALED = ("status", "scale")
_CLUSTER: Json = {"namespaced": False}

_ALWAYS_ALIKE: Final[tuple[ServedResource, ...]] = (
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
    _of("coordination.k8s.io", "leases", "Lease"),
    _of("events.k8s.io", "events", "Event", short_names=("ev",), collection="events", fields=_EVENT_FIELDS),
    _of(_DRA, "deviceclasses", "DeviceClass", generation=True, **_CLUSTER),
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
    ServedResource(
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
    ServedResource(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "APIService",
        namespaced=False,
        categories=("api-extensions",),
        subresources=("status",),
        schema="io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
    ),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    _review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
)


def built_in(shape: ReleaseShape) -> tuple[ServedResource, ...]:
    """Give what a server has before any definition is added to it."""
    version, status = shape.trees_of_groups, ("status",)
    trees = _of("scheduling.k8s.io", "compositepodgroups", "CompositePodGroup", version, subresources=status)
    return (
        *((trees,) if version else ()),
        *_ALWAYS_ALIKE,
        _of("scheduling.k8s.io", "podgroups", "PodGroup", shape.pod_groups, subresources=("status",)),
        _of("scheduling.k8s.io", "workloads", "Workload", shape.pod_groups),
        _of(
            _DRA,
            "devicetaintrules",
            "DeviceTaintRule",
            shape.device_taint_rules,
            subresources=("status",),
            generation=True,
            **_CLUSTER,
        ),
    )
