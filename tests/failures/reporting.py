"""`@reports` on a test says which failure it brings about, and where it finds that reported.

The page is made of these marks (page.py), read from the sources: no test module is imported for it.
"""

import ast
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
PLACES = ("condition", "event", "metric", "log", "answer")
"""Where a failure can be reported; an answer is what a command, a page or an API call says."""


class Mark(NamedTuple):
    """A test's mark: the failure, the texts by place, and the test as pytest names it."""

    failure: str
    texts: dict[str, str]
    test: str


def reports(failure, **texts):
    """Mark a test that brings the failure about and asserts what these places then say.

    Raises: ValueError for a place that there is not, or where none is given.
    """
    if not texts or not texts.keys() <= set(PLACES):
        raise ValueError(f"{failure}: give some of {', '.join(PLACES)}, not {', '.join(texts) or 'none'}")
    return lambda test: test


def marks():
    """The marks of all tests, by failure."""
    found = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "@reports(" in source:
            for mark in _marks(path, source):
                found[mark.failure].append(mark)
    return dict(found)


def reported(decorator):
    """Whether a decorator in the sources is a mark."""
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "reports"


def _marks(path, source):
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in node.decorator_list:
                if reported(call):
                    texts = {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}
                    test = f"{path.relative_to(TESTS.parent)}::{node.name}"
                    yield Mark(ast.literal_eval(call.args[0]), texts, test)
