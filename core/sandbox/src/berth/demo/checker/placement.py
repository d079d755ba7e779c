"""Each pod is on a node that its own constraints allow.

Cordons are left out, the field and the taint alike: they turn away new pods, and say nothing of those there.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from berth.demo.checker.documents import CheckedPod, Document, NodeFacts
from berth.demo.checker.report import Rule, Violation
from berth.demo.checker.requests import is_sidecar

CORDON_TAINT = "node.kubernetes.io/unschedulable"
HARD = ("NoSchedule", "NoExecute")
ANY_IP = "0.0.0.0"  # noqa: S104  compared with, never bound


def check_selectors(node: NodeFacts, pod: CheckedPod) -> Iterator[Violation]:
    """Check the pod's nodeSelector and required node affinity."""
    for key, value in (pod.spec.get("nodeSelector") or {}).items():
        if node.labels.get(key) != value:
            text = f"wants {key}={value}, node {node.name} has {_shown(node.labels, key)}"
            yield Violation(Rule.NODE_SELECTOR, pod.subject, text)
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None and not any(
        _term_holds(t, node) for t in required.get("nodeSelectorTerms") or ()
    ):
        text = f"no term of its required node affinity holds for node {node.name}"
        yield Violation(Rule.NODE_AFFINITY, pod.subject, text)


def check_taints(node: NodeFacts, pod: CheckedPod) -> Iterator[Violation]:
    """Check that the pod tolerates every hard taint of the node."""
    tolerations = pod.spec.get("tolerations") or ()
    for taint in (node.document.get("spec") or {}).get("taints") or ():
        hard = taint.get("effect") in HARD and taint.get("key") != CORDON_TAINT
        if hard and not any(_tolerates(toleration, taint) for toleration in tolerations):
            name = f"{taint.get('key')}={taint.get('value') or ''}:{taint['effect']}"
            yield Violation(Rule.TAINTS, pod.subject, f"does not tolerate {name} of node {node.name}")


def check_host_ports(node: NodeFacts, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Check that no two pods of a node want the same port of it."""
    users: dict[tuple[str, int], list[tuple[str, CheckedPod]]] = defaultdict(list)
    for pod in pods:
        for ip, protocol, port in sorted(_host_ports(pod.spec)):
            for other_ip, other in users[protocol, port]:
                if other is not pod and (ip == other_ip or ANY_IP in (ip, other_ip)):
                    text = f"port {port}/{protocol} of node {node.name} is taken by {other.key} as well"
                    yield Violation(Rule.HOST_PORTS, pod.subject, text)
            users[protocol, port].append((ip, pod))


def _host_ports(spec: Document) -> set[tuple[str, str, int]]:
    containers = [*(spec.get("containers") or ()), *filter(is_sidecar, spec.get("initContainers") or ())]
    return {
        (port.get("hostIP") or ANY_IP, port.get("protocol") or "TCP", port["hostPort"])
        for container in containers
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    wanted, value = toleration.get("value") or "", taint.get("value") or ""
    match toleration.get("operator") or "Equal":
        case "Equal":
            return bool(wanted == value)
        case "Exists":
            return True
        case "Lt" | "Gt" as operator:
            return _compares(value, operator, wanted)
        case _:
            return False


def _term_holds(term: Document, node: NodeFacts) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    # A term that asks nothing matches nothing.
    return bool(expressions or fields) and (
        all(_holds(requirement, node.labels) for requirement in expressions)
        and all(_holds(requirement, {"metadata.name": node.name}) for requirement in fields)
    )


def _holds(requirement: Document, labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key", ""), list(requirement.get("values") or ())
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt" as operator:
            return len(values) == 1 and _compares(labels.get(key, ""), operator, values[0])
        case _:
            return False


def _compares(left: str, operator: str, right: str) -> bool:
    if not all(re.fullmatch(r"[+-]?[0-9]{1,19}", text) for text in (left, right)):
        return False
    return int(left) > int(right) if operator == "Gt" else int(left) < int(right)


def _shown(labels: Mapping[str, Any], key: str) -> str:
    return f"{key}={labels[key]}" if key in labels else f"no {key}"
