"""Classes of fields are structs: a dataclass costs each start a third of a millisecond, a frozen one half."""

import ast

from tests.benchmarks.imports import ROOT

CACHED_PROPERTIES = {"PodTrial", "ServedResource", "Table"}
FIELDS_APART = {"Trust", "SidecarSpec", "OpenbFigures"}
"""Of which a field is no argument, is not shown, or does not count for equality."""
CHANGING = {
    *(
        "CycleBudgets",
        "DeviceQuery",
        "Diagnosis",
        "EventRecorder",
        "Feasible",
        "GroupPlacementTrial",
        "Handle",
    ),
    *("History", "Listers", "NodeSearch", "PlanningStage", "ProposalSearch", "QueuedGroupInfo", "Rejections"),
    *("QueuedPodInfo", "Rotation", "TreeTrial"),
    *("Branch", "GroupResult", "MemberResult"),
}
"""Those of the scheduler that change: most have such a field or others than their arguments, too."""


def dataclasses(sources):
    """The name of each with how it is decorated."""
    for path in ROOT.glob(f"core/{sources}/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                decorators = map(ast.unparse, node.decorator_list)
                yield from ((node.name, each) for each in decorators if each.startswith("dataclass"))


def test_what_does_not_change_is_a_struct():
    """But for what a struct can't have: a cached property, a field that is treated apart."""
    found = {name for name, decorator in dataclasses("*") if "frozen=True" in decorator}

    assert CACHED_PROPERTIES | FIELDS_APART == found


def test_a_scheduler_has_few_dataclasses():
    found = {name for name, _ in dataclasses("scheduler")}

    assert CHANGING == found - CACHED_PROPERTIES - FIELDS_APART
