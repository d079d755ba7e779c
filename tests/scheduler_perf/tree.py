"""Upstream's tests and workloads, read from its folder.

Source: test/integration/scheduler_perf/scheduler_perf.go testCase, Workload (Kubernetes v1.36.2).
"""

from dataclasses import dataclass, field, replace
from math import ceil, floor
from pathlib import Path

import yaml

from tests.scheduler_perf.errors import PerfError
from tests.scheduler_perf.operations import SCALED, Operation, read_operation
from tests.scheduler_perf.templates import safe_loader

CONFIG = "performance-config.yaml"
TEST_FIELDS = {
    *("name", "featureGates", "metricsCollectorConfig", "workloadTemplate", "workloads"),
    *("schedulerConfigPath", "defaultPodTemplatePath", "labels", "defaultThresholdMetricSelector"),
}
WORKLOAD_FIELDS = {
    *("name", "params", "labels", "threshold", "thresholdMetricSelector", "featureGates"),
}
SELECTOR_FIELDS = {"name", "labels", "dataBucket", "expectLower"}
# Parameters that upstream's Go code reads itself: nodedeclaredfeatures/node_declared_features_test.go.
READ_BY_CODE = {"numNodeDeclaredFeatures"}


@dataclass(frozen=True)
class Selector:
    """Which figure a threshold is compared with."""

    name: str = "SchedulingThroughput"
    labels: dict = field(default_factory=dict)
    bucket: str = "Average"
    expect_lower: bool = False


@dataclass(frozen=True)
class Workload:
    """One workload of a test, with all that it needs to be played."""

    topic: str
    test: str
    name: str
    labels: frozenset
    gates: dict
    parameters: dict
    operations: tuple[Operation, ...]
    threshold: float | None = None
    selector: Selector = Selector()
    scheduler_config: Path | None = None
    pod_template: Path | None = None
    shortened: str = ""
    """How it is smaller than upstream's, in the table's words; nothing where it is not."""

    @property
    def title(self):
        """Upstream's name of it."""
        return f"{self.test}/{self.name}"

    def resolved(self):
        """Its operations in order, with parameters in place and pod sets taken apart.

        Raises: PerfError.
        """
        for operation in self.operations:
            each = operation.with_parameters(self.parameters)
            if each.opcode != "createPodSets":
                yield each
                continue
            for i in range(each["count"] or 0):
                fields = {**each["createPodsOp"], "namespace": f"{each['namespacePrefix']}-{i}"}
                yield Operation("createPods", fields, each.place)

    def scaled(self, divisor):
        """The workload with counts of nodes, namespaces, pods and claims divided, none below 1 but 0."""
        if divisor == 1:
            return self
        smaller = {}
        for operation in self.operations:
            # Nodes are rounded up and what is to fit on them down.
            rounding = ceil if operation.opcode == "createNodes" else floor
            if operation.opcode in SCALED or (operation.opcode == "createAny" and operation["namespace"]):
                for name in operation.counted_by():
                    if isinstance(value := self.parameters.get(name), int) and value:
                        smaller.setdefault(name, max(rounding(value / divisor), 1))
        return replace(self, parameters={**self.parameters, **smaller}, shortened=f"1/{divisor:g}")

    def capped(self, pods):
        """The workload with at most this many pods by one operation, in whole groups."""
        counts = {}
        for operation in self.operations:
            name, per_group = operation["countParam"], operation["countMultiplierParam"]
            most = max(pods // self.parameters.get(per_group, 1), 1)
            if operation.opcode == "createPods" and self.parameters.get(name, 0) > most:
                counts[name] = min(most, counts.get(name, most))
        if not counts:
            return self
        words = " ".join(filter(None, (self.shortened, f"at most {pods:,} pods")))
        return replace(self, parameters={**self.parameters, **counts}, shortened=words)


def read_tree(folder):
    """All workloads of the tree, in order of their files. Raises: PerfError."""
    files = sorted(Path(folder).glob(f"**/{CONFIG}"))
    if not files:
        raise PerfError(
            f"{folder}: no {CONFIG} in it: --tree takes upstream's folder test/integration/scheduler_perf"
        )
    return [workload for path in files for workload in _read_file(Path(folder), path)]


def _read_file(root, path):
    try:
        tests = yaml.load(path.read_text(encoding="utf-8"), Loader=safe_loader())
    except yaml.YAMLError as error:
        raise PerfError(f"{path}: not YAML ({error}): mend the file") from None
    if not isinstance(tests, list) or not tests:
        raise PerfError(f"{path}: no list of tests: give it one")
    topic = str(path.parent.relative_to(root))
    for test in tests:
        yield from _read_test(topic, path, test)


def _read_test(topic, path, test):
    place = f"{path}: {test.get('name')}"
    _known(place, test, TEST_FIELDS)
    operations = tuple(
        read_operation(f"{place}: workloadTemplate[{i}]", path.parent, each)
        for i, each in enumerate(test.get("workloadTemplate") or ())
    )
    if not any(operation.collects for operation in operations):
        raise PerfError(f"{place}: no operation collects metrics: set collectMetrics in one")
    names = [workload.get("name") for workload in test.get("workloads") or ()]
    if not names or len(set(names)) < len(names):
        raise PerfError(f"{place}: workloads: needs some, each with a name of its own")
    for workload in test["workloads"]:
        yield _read_workload(topic, path, test, workload, operations)


def _read_workload(topic, path, test, workload, operations):
    place = f"{path}: {test['name']}/{workload['name']}"
    _known(place, workload, WORKLOAD_FIELDS)
    parameters = workload.get("params") or {}
    used = {name for operation in operations for name in operation.parameters()}
    if spare := set(parameters) - used - READ_BY_CODE:
        raise PerfError(f"{place}: params: {min(spare)} is used by no operation: look for a typing error")
    selector = workload.get("thresholdMetricSelector") or test.get("defaultThresholdMetricSelector")
    found = Workload(
        topic=topic,
        test=test["name"],
        name=workload["name"],
        labels=frozenset([*(test.get("labels") or ()), *(workload.get("labels") or ())]),
        gates={**(test.get("featureGates") or {}), **(workload.get("featureGates") or {})},
        parameters=parameters,
        operations=operations,
        threshold=_threshold(place, workload.get("threshold"), topic),
        selector=_selector(place, selector) if selector else Selector(),
        scheduler_config=_file(path, test.get("schedulerConfigPath")),
        pod_template=_file(path, test.get("defaultPodTemplatePath")),
    )
    list(found.resolved())
    return found


def _file(path, name):
    return path.parent / name if name else None


def _threshold(place, given, topic):
    """The threshold of a topic: one number, or a number for each topic; none where it is 0."""
    value = given.get(topic.partition("/")[0], 0) if isinstance(given, dict) else given or 0
    if not isinstance(value, int | float) or value < 0:
        raise PerfError(f"{place}: threshold: {value!r}: should be a non-negative number")
    return float(value) or None


def _selector(place, given):
    _known(f"{place}: thresholdMetricSelector", given, SELECTOR_FIELDS)
    if not given.get("dataBucket"):
        raise PerfError(f"{place}: thresholdMetricSelector: dataBucket should be set")
    return Selector(
        given["name"], given.get("labels") or {}, given["dataBucket"], bool(given.get("expectLower"))
    )


def _known(place, given, names):
    if unknown := {name for name in given if name.lower() not in {each.lower() for each in names}}:
        raise PerfError(f"{place}: field {min(unknown)!r} is not known: {', '.join(sorted(names))} are")
    if "name" in names and not given.get("name"):
        raise PerfError(f"{place}: name: must be set")


def enabled(filters, labels):
    """Whether a filter as -perf-scheduling-label-filter has it lets these labels through.

    Source: test/integration/scheduler_perf/label_selector.go (Kubernetes v1.36.2).
    """
    wanted = [each for each in filters.split(",") if each]
    return all((each.lstrip("+-") in labels) is not each.startswith("-") for each in wanted)
