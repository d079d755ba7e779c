"""Which pods the API server turns down, and with which words: the part that scheduling and its tests meet.

Source: pkg/apis/core/validation/validation.go (v1.36).
"""

from typing import Any, Final

from berth.sandbox import meta
from berth.sandbox.errors import Cause, duplicate, forbidden_field, invalid_value, not_supported, required
from berth.sandbox.kinds.quantities import BAD_QUANTITY, value_of
from berth.sandbox.store import Json

_RESTART: Final = ("Always", "OnFailure", "Never")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATES: Final = ("Equal", "Exists")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_MAX_PORT: Final = 65535
_MAX_WEIGHT: Final = 100
_MUTABLE_TEXT: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(spec: Json, path: str = "spec") -> list[Cause]:
    """Find the wrong fields of a pod's spec."""
    found: list[Cause] = []
    if not spec.get("containers"):
        found.append(required(f"{path}.containers"))
    found += _containers(spec, path)
    if spec.get("restartPolicy", "Always") not in _RESTART:
        found.append(not_supported(f"{path}.restartPolicy", spec["restartPolicy"], _RESTART))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        found += _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        found += _spread(constraint, f"{path}.topologySpreadConstraints[{index}]")
    if spec.get("affinity"):
        found += _affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("schedulingGates"):
        found += _gates(spec, path)
    if spec.get("nodeSelector"):
        found += meta.check_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    if spec.get("overhead"):
        found += check_quantities(spec["overhead"], f"{path}.overhead")
    return found


def _containers(spec: Json, path: str) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            found += _container(container, f"{path}.{field}[{index}]", names)
    return found


def check_pod_update(new: Json, old: Json) -> list[Cause]:
    """Find changes of a pod's spec that are not allowed once it exists."""
    found = _gate_changes(new, old)
    before, after = _comparable(old), _comparable(new)
    if old.get("schedulingGates"):
        # A gated pod may still be narrowed down.
        for spec in (before, after):
            spec.pop("nodeSelector", None)
            spec.pop("affinity", None)
    if before != after:
        found.append(forbidden_field("spec", _MUTABLE_TEXT))
    kept = new.get("tolerations") or []
    if any(toleration not in kept for toleration in old.get("tolerations") or ()):
        found.append(
            forbidden_field(
                "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
            )
        )
    return found


def check_quantities(quantities: Any, path: str) -> list[Cause]:
    """Find amounts that are not quantities or negative, and names that are not resource names."""
    found: list[Cause] = []
    for name, quantity in (quantities or {}).items():
        found += meta.check_label_key(name, path)
        try:
            negative = value_of(str(quantity)) < 0
        except ValueError:
            found.append(invalid_value(f"{path}[{name}]", quantity, BAD_QUANTITY))
            continue
        if negative:
            text = "must be greater than or equal to 0"
            found.append(invalid_value(f"{path}[{name}]", quantity, text))
    return found


def _gate_changes(new: Json, old: Json) -> list[Cause]:
    known = {gate["name"] for gate in old.get("schedulingGates") or ()}
    added = [gate["name"] for gate in new.get("schedulingGates") or () if gate.get("name") not in known]
    text = "only deletion is allowed, but found new scheduling gate '{}'"
    return [forbidden_field("spec.schedulingGates", text.format(name)) for name in added]


def _comparable(spec: Json) -> Json:
    free = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
    rest = {key: value for key, value in spec.items() if key not in free}
    for field in ("containers", "initContainers"):
        if field in rest:
            rest[field] = [{**container, "image": ""} for container in rest[field]]
    return rest


def _container(container: Json, path: str, names: set[str]) -> list[Cause]:
    name = container.get("name") or ""
    found = meta.check_name(name, f"{path}.name", label=True)
    if name in names:
        found.append(duplicate(f"{path}.name", name))
    names.add(name)
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    for index, port in enumerate(container.get("ports") or ()):
        found += _port(port, f"{path}.ports[{index}]")
    return found + _resources(container.get("resources") or {}, f"{path}.resources")


def _port(port: Json, path: str) -> list[Cause]:
    found = []
    number = port.get("containerPort") or 0
    if number == 0:
        found.append(required(f"{path}.containerPort"))
    for field in ("containerPort", "hostPort"):
        value = port.get(field) or 0
        if not 0 <= value <= _MAX_PORT:
            found.append(invalid_value(f"{path}.{field}", value, "must be between 1 and 65535, inclusive"))
    if port.get("protocol", "TCP") not in _PROTOCOLS:
        found.append(not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS))
    return found


def _resources(resources: Json, path: str) -> list[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found = check_quantities(limits, f"{path}.limits") + check_quantities(requests, f"{path}.requests")
    if found:
        return found
    for name, quantity in requests.items():
        if name not in limits:
            continue
        asked, limit = value_of(str(quantity)), value_of(str(limits[name]))
        if "/" in name and asked != limit:
            text = f"must be equal to {name} limit of {limits[name]}"
            found.append(invalid_value(f"{path}.requests", quantity, text))
        elif asked > limit:
            text = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(invalid_value(f"{path}.requests", quantity, text))
    return found


def _toleration(toleration: Json, path: str) -> list[Cause]:
    found = meta.check_label_key(toleration["key"], f"{path}.key") if toleration.get("key") else []
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid_value(f"{path}.operator", operator, text))
    if operator not in (*_TOLERATES, "Lt", "Gt"):
        found.append(not_supported(f"{path}.operator", operator, _TOLERATES))
    if operator == "Exists" and toleration.get("value"):
        text = "value must be empty when `operator` is 'Exists'"
        found.append(invalid_value(f"{path}.operator", toleration.get("value"), text))
    if toleration.get("effect") and toleration["effect"] not in _EFFECTS:
        found.append(not_supported(f"{path}.effect", toleration["effect"], _EFFECTS))
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid_value(f"{path}.effect", toleration.get("effect", ""), text))
    return found


def _spread(constraint: Json, path: str) -> list[Cause]:
    found = []
    if (constraint.get("maxSkew") or 0) <= 0:
        found.append(
            invalid_value(f"{path}.maxSkew", constraint.get("maxSkew") or 0, "must be greater than zero")
        )
    if not constraint.get("topologyKey"):
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    if constraint.get("whenUnsatisfiable") not in _UNSATISFIABLE:
        found.append(
            not_supported(
                f"{path}.whenUnsatisfiable", constraint.get("whenUnsatisfiable", ""), _UNSATISFIABLE
            )
        )
    domains = constraint.get("minDomains")
    if domains is not None and domains <= 0:
        found.append(invalid_value(f"{path}.minDomains", domains, "must be greater than 0"))
    if domains is not None and constraint.get("whenUnsatisfiable") != "DoNotSchedule":
        mode = constraint.get("whenUnsatisfiable", "")
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {mode}"
        found.append(invalid_value(f"{path}.minDomains", domains, text))
    return found


def _affinity(affinity: Json, path: str) -> list[Cause]:
    found: list[Cause] = []
    hard, soft = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get(hard) or ()):
            found += _topology_key(term, f"{path}.{kind}.{hard}[{index}]")
        for index, weighted in enumerate(rules.get(soft) or ()):
            here = f"{path}.{kind}.{soft}[{index}]"
            found += _weight(weighted, here) + _topology_key(
                weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm"
            )
    node = affinity.get("nodeAffinity") or {}
    if hard in node and not (node[hard] or {}).get("nodeSelectorTerms"):
        found.append(
            required(
                f"{path}.nodeAffinity.{hard}.nodeSelectorTerms", "must have at least one node selector term"
            )
        )
    for index, weighted in enumerate(node.get(soft) or ()):
        found += _weight(weighted, f"{path}.nodeAffinity.{soft}[{index}]")
    return found


def _weight(weighted: Json, path: str) -> list[Cause]:
    weight = weighted.get("weight") or 0
    if 1 <= weight <= _MAX_WEIGHT:
        return []
    return [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _topology_key(term: Json, path: str) -> list[Cause]:
    if not term.get("topologyKey"):
        return [required(f"{path}.topologyKey", "can not be empty")]
    return meta.check_label_key(term["topologyKey"], f"{path}.topologyKey")


def _gates(spec: Json, path: str) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(spec["schedulingGates"]):
        name = gate.get("name") or ""
        found += meta.check_label_key(name, f"{path}.schedulingGates[{index}]")
        if name in seen:
            found.append(duplicate(f"{path}.schedulingGates[{index}].name", name))
        seen.add(name)
    return found
