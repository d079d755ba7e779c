"""Defaults that an API server sets in new objects: for pods and nodes written by hand.

Source: pkg/apis/core/v1/defaults.go; plugin/pkg/admission/priority (Kubernetes v1.36).
"""

from collections.abc import Mapping
from typing import Any, Final

from berth.sandbox.kinds import pod_defaults
from berth.simulation.errors import InputError
from berth.simulation.reading.kinds import PriorityClass

Document = dict[str, Any]

BUILT_IN: Final = (
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
)


class Admission:
    """Completes objects; `classes` are the priority classes of the cluster."""

    def __init__(self, classes: Mapping[str, PriorityClass]) -> None:
        self._values = dict(BUILT_IN) | {name: each.value for name, each in classes.items()}
        self._policies = {name: each.preemption_policy for name, each in classes.items()}
        defaults = [(each.value, each.name) for each in classes.values() if each.global_default]
        self._default = min(defaults)[1] if defaults else ""

    def pod(self, document: Document, where: str) -> None:
        """Fill in the pod's defaults, priority and tolerations. Raises: InputError."""
        spec, metadata = document["spec"], document["metadata"]
        pod_defaults.set_defaults(spec)
        self._set_priority(spec, where)
        pod_defaults.set_tolerations(spec)
        pod_defaults.merge_match_label_keys(spec, metadata.get("labels") or {})

    def _set_priority(self, spec: Document, where: str) -> None:
        name = spec.get("priorityClassName") or ""
        if spec.get("priority") is None:
            name = name or self._default
            if name and name not in self._values:
                remedy = "add the PriorityClass to the input, or set spec.priority"
                raise InputError(f"{where}: spec.priorityClassName: found {name!r}, of no class; {remedy}")
            spec["priority"] = self._values.get(name, 0)
        spec.setdefault("preemptionPolicy", self._policies.get(name) or "PreemptLowerPriority")


def complete_node(document: Document) -> None:
    """Set a node's allocatable from its capacity where it has none."""
    status = document.setdefault("status", {})
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))
