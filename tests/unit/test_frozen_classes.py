"""Classes whose objects do not change are structs: a frozen dataclass costs each start half a millisecond."""

import ast

from tests.benchmarks.imports import ROOT

CACHED_PROPERTIES = {"PodTrial", "ServedResource", "Table"}
FIELDS_APART = {"Trust", "SidecarSpec", "OpenbFigures"}
"""Of which a field is no argument, is not shown, or does not count for equality."""


def frozen_dataclasses():
    for path in ROOT.glob("core/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                decorators = [ast.unparse(each) for each in node.decorator_list]
                if any(each.startswith("dataclass(") and "frozen=True" in each for each in decorators):
                    yield node.name


def test_what_does_not_change_is_a_struct():
    """But for what a struct can't have: a cached property, a field that is treated apart."""
    assert CACHED_PROPERTIES | FIELDS_APART == set(frozen_dataclasses())
