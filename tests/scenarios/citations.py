"""Which rule of docs/behaviour each scenario is about: the number that its name begins with.

A folder holds the scenarios of a part and `rules.py`, the part's RULES: number -> what the rule says. The
number is the section's, with a further one for a numbered step or, counted from 1, for a bullet or a row of a
table.
`test_2_10_3_and_2_11_1_some_claim` cites two.
"""

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
CITATION = re.compile(r"test_(\d+(?:_\d+)*(?:_and_\d+(?:_\d+)*)*)_[a-zA-Z]")


def parts():
    """The folders that hold scenarios."""
    return sorted(path.parent.name for path in HERE.glob("*/rules.py"))


def rules():
    """All rules by number."""
    found = {}
    for part in parts():
        module = importlib.import_module(f"tests.scenarios.{part}.rules")
        twice = found.keys() & module.RULES.keys()
        assert not twice, f"two parts claim {sorted(twice)}"
        found |= module.RULES
    return found


def citations():
    """The tests that cite each rule: number -> names."""
    found = defaultdict(list)
    for path in sorted(HERE.glob("*/test_*.py")):
        for name in _tests(path):
            for number in _numbers(name):
                found[number].append(f"{path.parent.name}/{path.name}::{name}")
    return dict(found)


def _tests(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [node.name for node in functions if node.name.startswith("test_")]


def _numbers(name):
    cited = CITATION.match(name)
    return [part.replace("_", ".") for part in cited[1].split("_and_")] if cited else []


def order(number):
    """What rules are sorted by."""
    return [int(part) for part in number.split(".")]
