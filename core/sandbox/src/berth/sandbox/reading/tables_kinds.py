"""Which columns each kind has: pods, nodes and events come from tables_scheduling.py, the rest stands here.

Source: pkg/printers/internalversion/printers.go (v1.36).
"""

from typing import Final

from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.reading.tables import AGE, NONE, Cell, PrinterColumn, Table, at, column, table
from berth.sandbox.reading.tables_scheduling import EVENTS, NODES, PODS
from berth.sandbox.store import Json


def _keys(path: str) -> Cell:
    return lambda document, _now: len(at(document, path, {}) or {})


def _selector(document: Json, _now: float) -> str:
    selector = at(document, "spec.selector", {}) or {}
    labels = selector.get("matchLabels", selector if "matchExpressions" not in selector else {})
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def _containers(field: str) -> Cell:
    def cell(document: Json, _now: float) -> str:
        containers = at(document, "spec.template.spec.containers", [])
        return ",".join(str(container.get(field, "")) for container in containers) or NONE

    return cell


_TEMPLATE: Final = (
    PrinterColumn("Containers", _containers("name"), wide=True),
    PrinterColumn("Images", _containers("image"), wide=True),
    PrinterColumn("Selector", _selector, wide=True),
)


def _ratio(have: str, want: str) -> Cell:
    return lambda document, _now: f"{at(document, have, 0)}/{at(document, want, 0)}"


def _claim(document: Json, _now: float) -> str:
    claim = at(document, "spec.claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access(path: str) -> Cell:
    return lambda document, _now: ",".join(_MODES.get(mode, mode) for mode in at(document, path, []))


def _ports(document: Json, _now: float) -> str:
    ports = at(document, "spec.ports", [])
    return ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports) or NONE


def _references(path: str) -> Cell:
    return lambda document, _now: f"{at(document, path + '.kind', '')}/{at(document, path + '.name', '')}"


def _csr_drivers(document: Json, _now: float) -> int:
    return len(at(document, "spec.drivers", []))


def _subjects(document: Json, _now: float) -> str:
    return ",".join(str(subject.get("name", "")) for subject in document.get("subjects") or ()) or ""


def _default_mark(document: Json, _now: float) -> str:
    name = str(at(document, "metadata.name", ""))
    marked = (
        at(document, "metadata.annotations", {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    )
    return f"{name} (default)" if marked else name


def _claim_state(document: Json, _now: float) -> str:
    states = []
    if at(document, "metadata.deletionTimestamp"):
        states.append("deleted")
    if at(document, "status.allocation"):
        states.append("allocated")
    if at(document, "status.reservedFor"):
        states.append("reserved")
    return ",".join(states) if at(document, "status.allocation") else ",".join([*states, "pending"])


def _group_policy(document: Json, _now: float) -> str:
    return "Basic" if at(document, "spec.schedulingPolicy.gang") is None else "Gang"


def _group_status(document: Json, _now: float) -> str:
    conditions = {one.get("type"): one for one in at(document, "status.conditions", [])}
    disrupted = conditions.get("DisruptionTarget", {})
    if disrupted.get("status") == "True":
        return str(disrupted.get("reason"))
    return str(conditions.get("PodGroupScheduled", {}).get("reason", "Pending"))


_TABLES: Final[dict[str, Table]] = {
    "pods": PODS,
    "nodes": NODES,
    "events": EVENTS,
    "namespaces": table(column("Status", "status.phase"), AGE),
    "configmaps": table(PrinterColumn("Data", _keys("data"), kind="integer"), AGE),
    "secrets": table(column("Type", "type"), PrinterColumn("Data", _keys("data"), kind="integer"), AGE),
    "serviceaccounts": table(PrinterColumn("Secrets", _keys("secrets"), kind="integer"), AGE),
    "services": table(
        column("Type", "spec.type"),
        column("Cluster-IP", "spec.clusterIP"),
        column("External-IP", "spec.externalName"),
        PrinterColumn("Port(s)", _ports),
        AGE,
        PrinterColumn("Selector", _selector, wide=True),
    ),
    "replicationcontrollers": table(
        column("Desired", "spec.replicas", 0, kind="integer"),
        column("Current", "status.replicas", 0, kind="integer"),
        column("Ready", "status.readyReplicas", 0, kind="integer"),
        AGE,
        *_TEMPLATE,
    ),
    "deployments.apps": table(
        PrinterColumn("Ready", _ratio("status.readyReplicas", "spec.replicas")),
        column("Up-to-date", "status.updatedReplicas", 0, kind="integer"),
        column("Available", "status.availableReplicas", 0, kind="integer"),
        AGE,
        *_TEMPLATE,
    ),
    "replicasets.apps": table(
        column("Desired", "spec.replicas", 0, kind="integer"),
        column("Current", "status.replicas", 0, kind="integer"),
        column("Ready", "status.readyReplicas", 0, kind="integer"),
        AGE,
        *_TEMPLATE,
    ),
    "statefulsets.apps": table(
        PrinterColumn("Ready", _ratio("status.readyReplicas", "spec.replicas")), AGE, *_TEMPLATE[:2]
    ),
    "daemonsets.apps": table(
        column("Desired", "status.desiredNumberScheduled", 0, kind="integer"),
        column("Current", "status.currentNumberScheduled", 0, kind="integer"),
        column("Ready", "status.numberReady", 0, kind="integer"),
        column("Up-to-date", "status.updatedNumberScheduled", 0, kind="integer"),
        column("Available", "status.numberAvailable", 0, kind="integer"),
        AGE,
        *_TEMPLATE,
    ),
    "jobs.batch": table(
        PrinterColumn("Completions", _ratio("status.succeeded", "spec.completions")), AGE, *_TEMPLATE
    ),
    "poddisruptionbudgets.policy": table(
        column("Min Available", "spec.minAvailable", "N/A"),
        column("Max Unavailable", "spec.maxUnavailable", "N/A"),
        column("Allowed Disruptions", "status.disruptionsAllowed", 0, kind="integer"),
        AGE,
    ),
    "persistentvolumes": table(
        column("Capacity", "spec.capacity.storage", ""),
        PrinterColumn("Access Modes", _access("spec.accessModes")),
        column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
        column("Status", "status.phase", ""),
        PrinterColumn("Claim", _claim),
        column("StorageClass", "spec.storageClassName", ""),
        column("Reason", "status.reason", ""),
        AGE,
        column("VolumeMode", "spec.volumeMode", "", wide=True),
    ),
    "persistentvolumeclaims": table(
        column("Status", "status.phase", ""),
        column("Volume", "spec.volumeName", ""),
        column("Capacity", "status.capacity.storage", ""),
        PrinterColumn("Access Modes", _access("status.accessModes")),
        column("StorageClass", "spec.storageClassName", ""),
        AGE,
        column("VolumeMode", "spec.volumeMode", "", wide=True),
    ),
    "storageclasses.storage.k8s.io": Table(
        (
            PrinterColumn("Name", _default_mark),
            column("Provisioner", "provisioner"),
            column("ReclaimPolicy", "reclaimPolicy"),
            column("VolumeBindingMode", "volumeBindingMode"),
            column("AllowVolumeExpansion", "allowVolumeExpansion", "false"),
            AGE,
        )
    ),
    "csinodes.storage.k8s.io": table(PrinterColumn("Drivers", _csr_drivers, kind="integer"), AGE),
    "csidrivers.storage.k8s.io": table(
        column("AttachRequired", "spec.attachRequired", "true"),
        column("PodInfoOnMount", "spec.podInfoOnMount", "false"),
        column("StorageCapacity", "spec.storageCapacity", "false"),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": table(
        column("Value", "value", 0, kind="integer"),
        column("Global-Default", "globalDefault", "false"),
        AGE,
        column("PreemptionPolicy", "preemptionPolicy"),
    ),
    "podgroups.scheduling.k8s.io": table(
        PrinterColumn("Policy", _group_policy),
        column("Workload", "spec.podGroupTemplateRef.workload.workloadName"),
        PrinterColumn("Status", _group_status),
        AGE,
    ),
    "workloads.scheduling.k8s.io": table(AGE),
    "leases.coordination.k8s.io": table(column("Holder", "spec.holderIdentity", ""), AGE),
    "resourceclaims.resource.k8s.io": table(PrinterColumn("State", _claim_state), AGE),
    "resourceslices.resource.k8s.io": table(
        column("Node", "spec.nodeName", ""),
        column("Driver", "spec.driver", ""),
        column("Pool", "spec.pool.name", ""),
        AGE,
    ),
    "networkpolicies.networking.k8s.io": table(AGE),
    "roles.rbac.authorization.k8s.io": table(column("Created At", "metadata.creationTimestamp")),
    "clusterroles.rbac.authorization.k8s.io": table(column("Created At", "metadata.creationTimestamp")),
    "rolebindings.rbac.authorization.k8s.io": table(
        PrinterColumn("Role", _references("roleRef")), AGE, PrinterColumn("Subjects", _subjects, wide=True)
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": table(
        PrinterColumn("Role", _references("roleRef")), AGE, PrinterColumn("Subjects", _subjects, wide=True)
    ),
    "customresourcedefinitions.apiextensions.k8s.io": table(
        column("Created At", "metadata.creationTimestamp")
    ),
}
_GENERIC: Final = table(AGE)


def table_for(resource: ServedResource) -> Table:
    """Give the columns of a resource; name and age where nothing better is known."""
    if resource.custom is not None:
        found: Table = resource.custom.table
        return found
    return _TABLES.get(resource.store_name, _GENERIC)
