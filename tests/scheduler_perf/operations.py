"""Upstream's operations: which fields each has, what a workload's parameters make of them.

Source: test/integration/scheduler_perf/operations.go, dra.go, update.go (Kubernetes v1.36.2; groups, template
parameters and multipliers: master, 1.38).
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.scheduler_perf.errors import PerfError

UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|us|µs|ns|m|s)")
STAGES = ("Scheduled", "Attempted")
MODES = ("create", "recreate")

# The type of each field; FILE is a path from the test's own folder, PARAM the name of a parameter after a $.
FILE, FILES, PARAM, SECONDS = "file", "files", "param", "duration"
COUNT = {"count": int, "countParam": PARAM}
CREATE_PODS = {
    **COUNT,
    "countMultiplierParam": PARAM,
    "templateParams": dict,
    "steadyState": bool,
    "steadyStateParam": PARAM,
    "duration": SECONDS,
    "durationParam": PARAM,
    "collectMetrics": bool,
    "namespace": str,
    "podTemplatePath": FILE,
    "skipWaitToCompletion": bool,
    "persistentVolumeTemplatePath": FILE,
    "persistentVolumeClaimTemplatePath": FILE,
}
CREATE_GROUPS = {"namespace": str, "templatePath": FILE, **COUNT, "templateParams": dict}
FIELDS = {
    "createNodes": {
        **COUNT,
        "nodeTemplatePath": FILE,
        "templateParams": dict,
        "nodeAllocatableStrategy": dict,
        "labelNodePrepareStrategy": dict,
        "uniqueNodeLabelStrategy": dict,
    },
    "createNamespaces": {"prefix": str, **COUNT, "namespaceTemplatePath": FILE},
    "createPods": CREATE_PODS,
    "createPodSets": {**COUNT, "namespacePrefix": str, "createPodsOp": CREATE_PODS},
    "createPodGroups": CREATE_GROUPS,
    "createCompositePodGroups": CREATE_GROUPS,
    "waitForPodGroups": {"namespace": str, **COUNT},
    "deletePods": {
        "namespace": str,
        "labelSelector": dict,
        "skipWaitToCompletion": bool,
        "deletePodsPerSecond": int,
    },
    "churn": {
        "mode": str,
        "number": int,
        "intervalMilliseconds": int,
        "namespace": str,
        "templatePaths": FILES,
    },
    "barrier": {"namespaces": list, "labelSelector": dict, "stageRequirement": str},
    "sleep": {"duration": SECONDS, "durationParam": PARAM},
    "createAny": {"namespace": str, "templatePath": FILE, **COUNT, "templateParams": dict},
    "updateAny": {
        "namespace": str,
        "templatePath": FILE,
        **COUNT,
        "updatePerSecond": int,
        "subresources": list,
    },
    "createResourceDriver": {
        "driverName": str,
        "nodes": str,
        "maxClaimsPerNode": int,
        "maxClaimsPerNodeParam": PARAM,
    },
    "createResourceClaims": {"namespace": str, "templatePath": FILE, **COUNT},
    "allocResourceClaims": {"namespace": str},
    "startCollectingMetrics": {"name": str, "namespaces": list, "labelSelector": dict},
    "stopCollectingMetrics": {},
}
NEEDED = {
    "createAny": ("templatePath",),
    "updateAny": ("templatePath",),
    "createResourceDriver": ("driverName", "nodes"),
    "createResourceClaims": ("namespace", "templatePath"),
    "createPodSets": ("createPodsOp", "namespacePrefix"),
    "createPodGroups": ("namespace", "templatePath"),
    "createCompositePodGroups": ("namespace", "templatePath"),
    "waitForPodGroups": ("namespace",),
    "startCollectingMetrics": ("namespaces",),
    "churn": ("mode", "templatePaths"),
}
CHOICES = {"mode": MODES, "stageRequirement": STAGES}
STRATEGIES = {
    "nodeAllocatableStrategy": {"nodeAllocatable", "csiNodeAllocatable", "migratedPlugins"},
    "labelNodePrepareStrategy": {"labelKey", "labelValues"},
    "uniqueNodeLabelStrategy": {"labelKey"},
}
# A parameter that counts these is shortened by --scale, wherever it stands.
SCALED = (
    *("createNodes", "createNamespaces", "createPods", "createPodSets", "createResourceClaims"),
    *("createPodGroups", "createCompositePodGroups"),
)


@dataclass(frozen=True)
class Operation:
    """One operation with its fields, at a place that errors name."""

    opcode: str
    fields: dict
    place: str

    def __getitem__(self, name):
        """The field's value; None where it is not set."""
        return self.fields.get(name)

    @property
    def collects(self):
        """Whether metrics are collected while it runs, or come to their end with it."""
        return self.opcode == "stopCollectingMetrics" or bool(
            self["collectMetrics"] or (self["createPodsOp"] or {}).get("collectMetrics")
        )

    def parameters(self):
        """The names of the workload's parameters that it reads."""
        return {name for fields in self._all_fields() for name in _parameters(fields)}

    def counted_by(self):
        """The names of the parameters that say how many it creates: of groups, those of how many groups."""
        return {fields["countParam"] for fields in self._all_fields() if "countParam" in fields}

    def _all_fields(self):
        return (self.fields, self["createPodsOp"] or {})

    def with_parameters(self, parameters):
        """The operation with its parameters' values in place.

        Raises: PerfError.
        """
        return Operation(self.opcode, _resolved(self.place, self.fields, parameters), self.place)


def read_operation(place, folder, document):
    """The operation that a document describes. Raises: PerfError."""
    if not isinstance(document, dict) or "opcode" not in document:
        raise PerfError(f"{place}: no opcode: one of {', '.join(FIELDS)} is needed")
    opcode = document["opcode"]
    if opcode not in FIELDS:
        raise PerfError(f"{place}: opcode {opcode!r} is not known: {', '.join(FIELDS)} are; see docs")
    given = {name: value for name, value in document.items() if name != "opcode"}
    fields = _read_fields(f"{place} ({opcode})", folder, FIELDS[opcode], given)
    missing = [name for name in NEEDED.get(opcode, ()) if not fields.get(name)]
    if missing:
        raise PerfError(f"{place} ({opcode}): {missing[0]} must be set")
    return Operation(opcode, fields, place)


def _read_fields(place, folder, kinds, given):
    spelled = {name.lower(): name for name in kinds}
    fields = {}
    for written, value in given.items():
        # Go reads the names of fields in any case.
        name = spelled.get(written.lower())
        if name is None:
            raise PerfError(f"{place}: field {written!r} is not known: {', '.join(kinds) or 'none'} are")
        if value is not None:
            fields[name] = _read_field(f"{place}: {name}", folder, name, kinds[name], value)
    return fields


def _read_field(place, folder, name, kind, value):
    if isinstance(kind, dict):
        return _read_fields(place, folder, kind, {k: v for k, v in value.items() if k != "opcode"})
    if kind == FILE:
        return Path(folder, _typed(place, str, value))
    if kind == FILES:
        return [Path(folder, each) for each in _typed(place, list, value)]
    if kind == SECONDS:
        return seconds(place, value)
    if kind == PARAM:
        if not str(value).startswith("$"):
            raise PerfError(f"{place}: {value!r} names no parameter: write $ before its name")
        return value[1:]
    value = _typed(place, kind, value)
    if kind is int and value < 0:
        raise PerfError(f"{place}: {value}: should be non-negative")
    if value not in CHOICES.get(name, (value,)):
        raise PerfError(f"{place}: {value!r}: must be one of {', '.join(CHOICES[name])}")
    unknown = set(value) - STRATEGIES[name] if name in STRATEGIES else ()
    if unknown:
        raise PerfError(f"{place}: field {min(unknown)!r} is not known: {', '.join(STRATEGIES[name])} are")
    return value


def _typed(place, kind, value):
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise PerfError(f"{place}: {value!r} is no {kind.__name__}: give one")
    return value


def _parameters(fields):
    named = (fields.get("templateParams") or {}).values()
    yield from (value[1:] for value in named if _names_parameter(value))
    yield from (value for name, value in fields.items() if name.endswith("Param"))


def _names_parameter(value):
    return isinstance(value, str) and value.startswith("$")


def _resolved(place, fields, parameters):
    found = {name: value for name, value in fields.items() if not name.endswith("Param")}
    if "templateParams" in found:
        found["templateParams"] = {
            name: _value(f"{place}: templateParams", value[1:], parameters)
            if _names_parameter(value)
            else value
            for name, value in found["templateParams"].items()
        }
    if isinstance(nested := fields.get("createPodsOp"), dict):
        found["createPodsOp"] = _resolved(place, nested, parameters)
    for written in fields.keys() - found.keys():
        name, parameter = written.removesuffix("Param"), fields[written]
        value = _value(f"{place}: {written}", parameter, parameters)
        if name == "duration":
            value = seconds(f"{place}: {written}", value)
        found[name] = _typed(f"{place}: parameter {parameter}", _kind(name), value)
    multiplier = found.pop("countMultiplier", None)
    if multiplier is not None:
        found["count"] = (found.get("count") or 0) * multiplier
    return found


def _value(place, parameter, parameters):
    if parameter not in parameters:
        raise PerfError(f"{place}: parameter {parameter} is undefined: add it to the workload")
    return parameters[parameter]


def _kind(name):
    return {"steadyState": bool, "duration": float}.get(name, int)


def seconds(place, text):
    """Seconds of a Go duration, such as 1m30s. Raises: PerfError."""
    parts = DURATION.findall(str(text))
    if "".join(number + unit for number, unit in parts) != str(text):
        raise PerfError(f"{place}: {text!r} is no duration: write it as 10s or 1m30s")
    return sum(float(number) * UNITS[unit] for number, unit in parts)
