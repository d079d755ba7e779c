"""Upstream's tree is understood as a whole, or an error names file, field and remedy."""

import os
from pathlib import Path

import pytest

from tests.scheduler_perf.errors import PerfError
from tests.scheduler_perf.playing import OPERATIONS
from tests.scheduler_perf.templates import ObjectTemplate
from tests.scheduler_perf.tree import enabled, read_tree
from tests.unit.scheduler_perf.small_tree import CREATE_NODES, CREATE_PODS, a_test, written

TREE = "SCHEDULER_PERF_TREE"


def operation(opcode, **fields):
    return {"opcode": opcode, **fields}


def test_a_workload_has_what_its_test_has(tmp_path):
    """Labels and gates of the test and of the workload, and parameters in their places."""
    workload = {"labels": ["short"], "featureGates": {"B": False}, "threshold": {"misc": 40, "other": 1}}
    tree = written(tmp_path, a_test(featureGates={"A": True, "B": True}, workload=workload))
    (found,) = read_tree(tree)

    assert ("misc", "Basic/2Nodes", {"performance", "short"}) == (found.topic, found.title, found.labels)
    assert ({"A": True, "B": False}, 40.0) == (found.gates, found.threshold)
    assert [("createNodes", 2), ("createPods", 10)] == [(o.opcode, o["count"]) for o in found.resolved()]
    assert tmp_path / "misc" / "pod.yaml" == list(found.resolved())[1]["podTemplatePath"]


def test_pod_sets_are_taken_apart(tmp_path):
    """Each set is an operation that creates pods in a namespace of its own."""
    sets = operation("createPodSets", count=3, namespacePrefix="ns", createPodsOp={"count": 2})
    (found,) = read_tree(written(tmp_path, a_test(CREATE_NODES, sets, CREATE_PODS)))

    assert ["ns-0", "ns-1", "ns-2", None] == [o["namespace"] for o in found.resolved()][1:]


def test_scaled(tmp_path):
    """Nodes are divided and rounded up, pods down; what is on each node stays."""
    driver = operation("createResourceDriver", driverName="d", nodes="*", maxClaimsPerNodeParam="$each")
    test = a_test(
        CREATE_NODES, driver, CREATE_PODS, workload={"params": {"nodes": 25, "pods": 49, "each": 7}}
    )
    (found,) = read_tree(written(tmp_path, test))

    assert {"nodes": 3, "pods": 4, "each": 7} == found.scaled(10).parameters
    assert "1/10" == found.scaled(10).shortened
    assert ({"nodes": 25, "pods": 4, "each": 7}, "at most 4 pods") == (
        found.capped(4).parameters,
        found.capped(4).shortened,
    )
    assert "" == found.capped(49).shortened


GROUPS = operation("createPodGroups", namespace="ns", templatePath="group.yaml", countParam="$groups")
GANG_PODS = {
    **CREATE_PODS,
    "countParam": "$groups",
    "countMultiplierParam": "$each",
    "templateParams": {"podsPerGroup": "$each", "cpu": "100m"},
}


def test_pods_of_groups(tmp_path):
    """There are this many of each group; a smaller workload has fewer groups, each as large as before."""
    waiting = operation("waitForPodGroups", namespace="ns", countParam="$groups")
    test = a_test(GROUPS, waiting, GANG_PODS, workload={"params": {"groups": 20, "each": 4}})
    (found,) = read_tree(written(tmp_path, test))

    assert [20, 20, 80] == [each["count"] for each in found.resolved()]
    assert {"podsPerGroup": 4, "cpu": "100m"} == list(found.resolved())[-1]["templateParams"]
    assert {"groups": 2, "each": 4} == found.scaled(10).parameters
    assert {"groups": 2, "each": 4} == found.capped(10).parameters
    assert "" == found.capped(80).shortened


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param(
            a_test(operation("boil"), CREATE_PODS),
            "Basic: workloadTemplate[0]: opcode 'boil' is not known: createNodes, ",
            id="opcode",
        ),
        pytest.param(
            a_test({**CREATE_NODES, "colour": 1}, CREATE_PODS),
            "workloadTemplate[0] (createNodes): field 'colour' is not known: count, countParam, ",
            id="field of an operation",
        ),
        pytest.param(
            a_test(colour=1),
            "misc/performance-config.yaml: Basic: field 'colour' is not",
            id="field of a test",
        ),
        pytest.param(
            a_test(workload={"colour": 1}), "Basic/2Nodes: field 'colour' is not", id="field of a workload"
        ),
        pytest.param(
            a_test(workload={"params": {"pods": 1}}),
            "countParam: parameter nodes is undefined: add it to the workload",
            id="undefined parameter",
        ),
        pytest.param(
            a_test(workload={"params": {"pods": 1, "nodes": 1, "nods": 1}}),
            "params: nods is used by no operation",
            id="unused parameter",
        ),
        pytest.param(
            a_test(workload={"params": {"pods": "many", "nodes": 1}}),
            "parameter pods: 'many' is no int: give one",
            id="type of a parameter",
        ),
        pytest.param(
            a_test(operation("sleep", duration="5 minutes"), CREATE_PODS),
            "duration: '5 minutes' is no duration: write it as 10s or 1m30s",
            id="duration",
        ),
        pytest.param(
            a_test(operation("barrier", stageRequirement="Bound"), CREATE_PODS),
            "stageRequirement: 'Bound': must be one of Scheduled, Attempted",
            id="choice",
        ),
        pytest.param(
            a_test({**CREATE_NODES, "labelNodePrepareStrategy": {"key": "a"}}, CREATE_PODS),
            "labelNodePrepareStrategy: field 'key' is not known",
            id="field of a strategy",
        ),
        pytest.param(
            a_test(operation("createAny"), CREATE_PODS), "(createAny): templatePath must be set", id="missing"
        ),
        pytest.param(
            a_test(GROUPS, GANG_PODS, workload={"params": {"groups": 1}}),
            "parameter each is undefined: add it to the workload",
            id="undefined parameter of a template",
        ),
        pytest.param(a_test(CREATE_NODES), "Basic: no operation collects metrics", id="collects nothing"),
        pytest.param(
            a_test(thresholdMetricSelector={}), "field 'thresholdMetricSelector' is not", id="misplaced"
        ),
        pytest.param(
            a_test(workload={"thresholdMetricSelector": {"name": "x"}}),
            "Basic/2Nodes: thresholdMetricSelector: dataBucket should be set",
            id="selector",
        ),
    ],
)
def test_an_error_names_the_place(tmp_path, changed, words):
    """What is not understood ends the reading, and says where it stands and what is possible."""
    with pytest.raises(PerfError) as raised:
        read_tree(written(tmp_path, changed))

    assert words in str(raised.value)
    assert str(tmp_path / "misc" / "performance-config.yaml") in str(raised.value)


def test_a_folder_without_tests(tmp_path):
    """It is not upstream's folder."""
    with pytest.raises(PerfError, match=r"--tree takes upstream's folder test/integration/scheduler_perf"):
        read_tree(tmp_path)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [("", True), ("performance", True), ("+performance,-short", False), ("-fast", True), ("fast", False)],
)
def test_labels(filters, expected):
    """A label must be there, or with a minus must not."""
    assert expected == enabled(filters, {"performance", "short"})


@pytest.mark.skipif(TREE not in os.environ, reason=f"{TREE} names no tree of upstream's")
def test_upstreams_tree_is_understood():
    """Every workload has operations that can be played, and every file that they name can be read."""
    workloads = read_tree(os.environ[TREE])
    operations = [each for workload in workloads for each in workload.resolved()]
    files = {value for each in operations for value in each.fields.values() if isinstance(value, Path)}
    files |= {path for each in operations for path in each["templatePaths"] or ()}

    assert sum(enabled("performance", workload.labels) for workload in workloads) >= 100
    assert set() == {each.opcode for each in operations} - set(OPERATIONS)
    assert all("kind" in ObjectTemplate(path).document(3, 10) for path in files)
