"""The strategies of the kinds other than pods, and which kind has which.

Source: pkg/registry/{core,apps,batch,policy,scheduling,storage,resource}/*/strategy.go (v1.36).
"""

from base64 import b64encode
from typing import Final

from berth.sandbox import meta
from berth.sandbox.errors import Cause, forbidden_field, invalid_value, not_supported, required
from berth.sandbox.kinds import pod_defaults
from berth.sandbox.kinds.claims import ClaimStrategy
from berth.sandbox.kinds.pod_groups import PodGroupStrategy, PodGroupTemplatesStrategy
from berth.sandbox.kinds.pod_validation import check_pod, check_quantities
from berth.sandbox.kinds.pods import PodStrategy
from berth.sandbox.kinds.quantities import canonical_map
from berth.sandbox.kinds.strategy import Context, RestStrategy
from berth.sandbox.store import Json
from berth.sandbox.structural_schemas.cel_definitions import check_definition

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_BY_ADMISSION: Final = ("serviceAccountName", "enableServiceLinks")
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000


class NodeStrategy(RestStrategy):
    """Nodes keep the status they are created with; spec and status are updated apart."""

    keeps_status_on_create = True

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Write quantities in canonical form; allocatable defaults to capacity."""
        document.setdefault("spec", {})
        status = document.setdefault("status", {})
        if status.get("capacity"):
            status.setdefault("allocatable", dict(status["capacity"]))
        _node_quantities(status)

    def prepare_status(self, new: Json, _old: Json, _context: Context) -> None:
        """Write quantities in canonical form."""
        status = new.get("status") or {}
        if status.get("capacity"):
            status.setdefault("allocatable", dict(status["capacity"]))
        _node_quantities(status)

    def validate(self, document: Json) -> list[Cause]:
        """Find taints and quantities that are not allowed."""
        found: list[Cause] = []
        seen: set[tuple[str, str]] = set()
        for index, taint in enumerate(document.get("spec", {}).get("taints") or ()):
            path = f"metadata.taints[{index}]" if "key" not in taint else f"spec.taints[{index}]"
            found += meta.check_label_key(taint.get("key") or "", f"{path}.key")
            if taint.get("effect") not in _EFFECTS:
                found.append(not_supported(f"{path}.effect", taint.get("effect", ""), _EFFECTS))
            pair = (taint.get("key", ""), taint.get("effect", ""))
            if pair in seen:
                text = "taints must be unique by key and effect pair"
                found.append(Cause("FieldValueDuplicate", f"Duplicate value: {text}", path))
            seen.add(pair)
        status = document.get("status") or {}
        for field in ("capacity", "allocatable"):
            found += check_quantities(status.get(field), f"status.{field}")
        return found


def _node_quantities(status: Json) -> None:
    for field in ("capacity", "allocatable"):
        if status.get(field):
            canonical_map(status[field])


class NamespaceStrategy(RestStrategy):
    """A namespace is Active at once, and carries its name as a label."""

    label_name = True

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Set the phase, the finalizer of the kind and the name label."""
        document["spec"] = {"finalizers": ["kubernetes"]}
        document["status"] = {"phase": "Active"}
        labels = document["metadata"].setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = document["metadata"]["name"]

    def prepare_update(self, new: Json, old: Json, _context: Context) -> None:
        """Keep spec and status; only metadata is free."""
        new["spec"], new["status"] = old["spec"], old["status"]


class WorkloadStrategy(RestStrategy):
    """Controllers' objects: replicas and selector defaults, and a valid pod template."""

    def prepare_create(self, document: Json, context: Context) -> None:
        """Set defaults; the status starts empty."""
        self._default(document, context)
        if not context.keep_status:
            document["status"] = {}

    def prepare_update(self, new: Json, old: Json, context: Context) -> None:
        """Set defaults of what was added; keep the status."""
        self._default(new, context)
        new["status"] = old.get("status", {})

    def _default(self, document: Json, context: Context) -> None:
        spec = document.setdefault("spec", {})
        if context.resource.kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
            spec.setdefault("replicas", 1)
        if context.resource.kind == "Deployment":
            spec.setdefault("revisionHistoryLimit", 10)
            spec.setdefault("progressDeadlineSeconds", 600)
            rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
            spec.setdefault("strategy", {"type": "RollingUpdate", "rollingUpdate": rolling})
        if context.resource.kind == "Job":
            for field in ("completions", "parallelism"):
                spec.setdefault(field, 1)
            spec.setdefault("backoffLimit", 6)
        template = spec.get("template") or {}
        if template.get("spec"):
            # Some fields are filled in for pods by admission, which templates do not pass through.
            absent = [name for name in _BY_ADMISSION if name not in template["spec"]]
            pod_defaults.set_defaults(template["spec"])
            for name in absent:
                template["spec"].pop(name, None)

    def validate(self, document: Json) -> list[Cause]:
        """Find the wrong fields of selector and template."""
        spec = document["spec"]
        found: list[Cause] = []
        if document["kind"] in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
            found += _check_selector(spec)
        if (spec.get("replicas") or 0) < 0:
            found.append(
                invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
            )
        template = spec.get("template") or {}
        if template or document["kind"] != "ReplicationController":
            found += check_pod(template.get("spec") or {}, "spec.template.spec")
        return found

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """The selector is fixed at creation."""
        before, after = old["spec"].get("selector"), new["spec"].get("selector")
        if document_group(new) == "apps" and before != after:
            return [invalid_value("spec.selector", after, "field is immutable")]
        return []


def document_group(document: Json) -> str:
    """Give the API group of an object."""
    group, slash, _ = str(document.get("apiVersion", "")).partition("/")
    return group if slash else ""


def _check_selector(spec: Json) -> list[Cause]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    labels = (spec.get("template") or {}).get("metadata", {}).get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        text = "`selector` does not match template `labels`"
        return [invalid_value("spec.template.metadata.labels", labels, text)]
    return []


class PriorityClassStrategy(RestStrategy):
    """Priority classes: value and preemption policy are fixed at creation."""

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Set the preemption policy's default."""
        document.setdefault("value", 0)
        document.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_update(self, new: Json, _old: Json, context: Context) -> None:
        """Set the preemption policy's default."""
        self.prepare_create(new, context)

    def validate(self, document: Json) -> list[Cause]:
        """Find a value that only the system's classes may have."""
        name, value = document["metadata"].get("name", ""), document["value"]
        if value > _HIGHEST_USER_PRIORITY and not name.startswith("system-"):
            text = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            return [forbidden_field("value", text)]
        return []

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """Find changes of what is fixed."""
        return [
            forbidden_field(field, "may not be changed in an update.")
            for field in ("value", "preemptionPolicy")
            if new.get(field) != old.get(field)
        ]


class PhaseStrategy(RestStrategy):
    """Volumes and claims: Pending until a controller says otherwise."""

    def prepare_create(self, document: Json, context: Context) -> None:
        """Start the status."""
        spec = document.setdefault("spec", {})
        spec.setdefault("volumeMode", "Filesystem")
        if context.resource.kind == "PersistentVolume":
            spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
            if spec.get("capacity"):
                canonical_map(spec["capacity"])
        status = document.get("status") if context.keep_status else None
        document["status"] = status or {"phase": "Pending"}

    def prepare_update(self, new: Json, old: Json, _context: Context) -> None:
        """Keep the status."""
        new["status"] = old.get("status", {})


class StorageClassStrategy(RestStrategy):
    """Storage classes: bind at once and delete, unless they say otherwise."""

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Set defaults."""
        document.setdefault("reclaimPolicy", "Delete")
        document.setdefault("volumeBindingMode", "Immediate")

    def prepare_update(self, new: Json, _old: Json, context: Context) -> None:
        """Set defaults."""
        self.prepare_create(new, context)


class CSIDriverStrategy(RestStrategy):
    """CSI drivers: attach required, capacity not tracked, unless they say otherwise."""

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Set defaults."""
        spec = document.setdefault("spec", {})
        for field, value in (("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False)):
            spec.setdefault(field, value)
        spec.setdefault("volumeLifecycleModes", ["Persistent"])


class ServiceStrategy(RestStrategy):
    """Services: a type, a protocol for each port; no cluster IP is given out here."""

    label_name = True

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Set defaults."""
        spec = document.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))
        document.setdefault("status", {"loadBalancer": {}})


class ConfigMapStrategy(RestStrategy):
    """Config maps: what one holds is fixed once it says that it is immutable."""

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """Find changes of what is fixed."""
        if not old.get("immutable"):
            return []
        return [
            forbidden_field(field, "field is immutable when `immutable` is set")
            for field in ("immutable", "data", "binaryData")
            if new.get(field) != old.get(field)
        ]


class SecretStrategy(ConfigMapStrategy):
    """Secrets: plain text in stringData is stored encoded."""

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Encode stringData into data."""
        document.setdefault("type", "Opaque")
        for key, value in (document.pop("stringData", None) or {}).items():
            document.setdefault("data", {})[key] = b64encode(value.encode()).decode()

    def prepare_update(self, new: Json, _old: Json, context: Context) -> None:
        """Encode stringData into data."""
        self.prepare_create(new, context)


class RoleStrategy(RestStrategy):
    """Roles and bindings: names are path segments, `system:` and all; a binding keeps its role."""

    any_name = True

    def validate_update(self, new: Json, old: Json) -> list[Cause]:
        """Find a binding that would give another role to its subjects."""
        if new.get("roleRef") == old.get("roleRef"):
            return []
        return [invalid_value("roleRef", new.get("roleRef"), "cannot change roleRef")]


class DefinitionStrategy(RestStrategy):
    """CustomResourceDefinitions: names that default, a name that follows from them."""

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Set defaults."""
        spec = document.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", f"{names['kind']}List")
        spec.setdefault("conversion", {"strategy": "None"})

    def prepare_update(self, new: Json, _old: Json, context: Context) -> None:
        """Set defaults."""
        self.prepare_create(new, context)

    def validate(self, document: Json) -> list[Cause]:
        """Find what keeps a definition from being served."""
        spec = document["spec"]
        names = spec.get("names") or {}
        found = [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
        if not spec.get("group"):
            found.append(required("spec.group"))
        if spec.get("scope") not in _SCOPES:
            found.append(not_supported("spec.scope", spec.get("scope", ""), _SCOPES))
        expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
        if not found and document["metadata"].get("name") != expected:
            text = 'must be spec.names.plural+"."+spec.group'
            found.append(invalid_value("metadata.name", document["metadata"].get("name"), text))
        return found + _check_versions(spec)


def _check_versions(spec: Json) -> list[Cause]:
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        return [invalid_value("spec.versions", [version.get("name") for version in versions], text)]
    found: list[Cause] = []
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        found += check_definition(schema, path) if schema else [required(path, "schemas are required")]
    return found


_SCOPES: Final = ("Cluster", "Namespaced")
_WORKLOADS: Final = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "replicationcontrollers",
)
_ROLES: Final = tuple(
    f"{plural}.rbac.authorization.k8s.io"
    for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
)
DEFAULT: Final = RestStrategy()


class APIServiceStrategy(RestStrategy):
    """An APIService is named by its version and group, and verifies the server behind it or says not to."""

    def prepare_create(self, document: Json, _context: Context) -> None:
        """Requests go to port 443 of the Service, where it names none."""
        service = document["spec"].get("service")
        if service is not None:
            service.setdefault("port", 443)

    def validate(self, document: Json) -> list[Cause]:
        """Find a wrong name, and what contradicts itself."""
        spec, name = document["spec"], document["metadata"].get("name", "")
        expected = f"{spec.get('version', '')}.{spec.get('group', '')}"
        found = []
        if name != expected:
            found.append(
                invalid_value("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected}"')
            )
        if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
            text = "may not be true if caBundle is present"
            found.append(invalid_value("spec.insecureSkipTLSVerify", value=True, detail=text))
        priorities = ("groupPriorityMinimum", "versionPriority")
        return found + [required(f"spec.{field}") for field in priorities if not spec.get(field)]


STRATEGIES: Final[dict[str, RestStrategy]] = {
    "pods": PodStrategy(),
    "nodes": NodeStrategy(),
    "namespaces": NamespaceStrategy(),
    "customresourcedefinitions.apiextensions.k8s.io": DefinitionStrategy(),
    "services": ServiceStrategy(),
    "apiservices.apiregistration.k8s.io": APIServiceStrategy(),
    "configmaps": ConfigMapStrategy(),
    "secrets": SecretStrategy(),
    "persistentvolumes": PhaseStrategy(),
    "persistentvolumeclaims": PhaseStrategy(),
    "priorityclasses.scheduling.k8s.io": PriorityClassStrategy(),
    "podgroups.scheduling.k8s.io": PodGroupStrategy(),
    "workloads.scheduling.k8s.io": PodGroupTemplatesStrategy(),
    "storageclasses.storage.k8s.io": StorageClassStrategy(),
    "csidrivers.storage.k8s.io": CSIDriverStrategy(),
    "resourceclaims.resource.k8s.io": ClaimStrategy(),
    "resourceclaimtemplates.resource.k8s.io": ClaimStrategy(),
    **dict.fromkeys(_WORKLOADS, WorkloadStrategy()),
    **dict.fromkeys(_ROLES, RoleStrategy()),
}
