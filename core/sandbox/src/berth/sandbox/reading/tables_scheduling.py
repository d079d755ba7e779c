"""The rows of what scheduling is about: pods, nodes, events.

Source: printPod, printNode, printEvent of pkg/printers/internalversion/printers.go (v1.36).
"""

from typing import Any, Final

from berth.sandbox.reading.tables import AGE, NONE, UNKNOWN, PrinterColumn, Table, at, column, since, table
from berth.sandbox.store import Json

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def _statuses(pod: Json) -> list[Json]:
    found: list[Json] = at(pod, "status.containerStatuses", [])
    return found


def _ready(pod: Json, _now: float) -> str:
    ready = sum(1 for status in _statuses(pod) if status.get("ready"))
    return f"{ready}/{len(at(pod, 'spec.containers', []))}"


def _pod_status(pod: Json, _now: float) -> str:
    reason = at(pod, "status.reason") or at(pod, "status.phase", "")
    for condition in at(pod, "status.conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for status in _statuses(pod):
        state = status.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
        reason = waiting.get("reason") or terminated.get("reason") or reason
    if at(pod, "metadata.deletionTimestamp"):
        return "Unknown" if at(pod, "status.reason") == "NodeLost" else "Terminating"
    return str(reason)


def _restarts(pod: Json, _now: float) -> str:
    return str(sum(status.get("restartCount", 0) for status in _statuses(pod)))


def _readiness_gates(pod: Json, _now: float) -> str:
    gates = at(pod, "spec.readinessGates", [])
    if not gates:
        return NONE
    true = {c["type"] for c in at(pod, "status.conditions", []) if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


PODS: Final = table(
    PrinterColumn("Ready", _ready),
    PrinterColumn("Status", _pod_status),
    PrinterColumn("Restarts", _restarts),
    AGE,
    column("IP", "status.podIP", wide=True),
    column("Node", "spec.nodeName", wide=True),
    column("Nominated Node", "status.nominatedNodeName", wide=True),
    PrinterColumn("Readiness Gates", _readiness_gates, wide=True),
)


def _node_status(node: Json, _now: float) -> str:
    ready = next((c for c in at(node, "status.conditions", []) if c.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if at(node, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Json, _now: float) -> str:
    labels = at(node, "metadata.labels", {})
    roles = {key[len(_ROLE_PREFIX) :] for key in labels if key.startswith(_ROLE_PREFIX)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Any:
    def cell(node: Json, _now: float) -> str:
        addresses = at(node, "status.addresses", [])
        return str(next((one["address"] for one in addresses if one.get("type") == kind), NONE))

    return cell


NODES: Final = table(
    PrinterColumn("Status", _node_status),
    PrinterColumn("Roles", _roles),
    AGE,
    column("Version", "status.nodeInfo.kubeletVersion", ""),
    PrinterColumn("Internal-IP", _address("InternalIP"), wide=True),
    PrinterColumn("External-IP", _address("ExternalIP"), wide=True),
    column("OS-Image", "status.nodeInfo.osImage", UNKNOWN, wide=True),
    column("Kernel-Version", "status.nodeInfo.kernelVersion", UNKNOWN, wide=True),
    column("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", UNKNOWN, wide=True),
)


def _first_seen(event: Json, now: float) -> str:
    return since(at(event, "firstTimestamp") or at(event, "eventTime"), now)


def _last_seen(event: Json, now: float) -> str:
    last = at(event, "series.lastObservedTime") or at(event, "lastTimestamp")
    return since(last, now) if last else _first_seen(event, now)


def _object(event: Json, _now: float) -> str:
    kind, name = at(event, "involvedObject.kind", ""), at(event, "involvedObject.name", "")
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _message(event: Json, _now: float) -> str:
    return str(at(event, "message", "")).strip()


def _source(event: Json, _now: float) -> str:
    component = at(event, "source.component") or at(event, "reportingComponent", "")
    host = at(event, "source.host") or at(event, "reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


def _count(event: Json, _now: float) -> int:
    return int(at(event, "series.count") or at(event, "count") or 1)


EVENTS: Final = Table(
    (
        PrinterColumn("Last Seen", _last_seen),
        column("Type", "type", ""),
        column("Reason", "reason", ""),
        PrinterColumn("Object", _object),
        column("Subobject", "involvedObject.fieldPath", "", wide=True),
        PrinterColumn("Source", _source, wide=True),
        PrinterColumn("Message", _message),
        PrinterColumn("First Seen", _first_seen, wide=True),
        PrinterColumn("Count", _count, wide=True, kind="integer"),
        column("Name", "metadata.name", "", wide=True),
    )
)
