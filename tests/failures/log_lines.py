"""The warnings and errors that Berth's processes and the Python SDK log, read from the sources."""

import ast
from typing import NamedTuple

from tests.go_toolchain import ROOT
from tests.sources import TREES

SOURCES = (*TREES, ROOT / "plugin-sdk/python/src")
LEVELS = frozenset({"warning", "error", "exception", "critical"})
LOGGERS = frozenset({"log", "_log", "_LOG", "logger"})


class LogLine(NamedTuple):
    """A call that logs a warning or an error: its file, and its constant text."""

    path: str
    text: str


def log_lines():
    """Each warning and error; a text that is chosen is given once for each choice, one that is made as ""."""
    for root in SOURCES:
        for path in sorted(root.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and (written := _written(call)) is not None:
                    name = str(path.relative_to(ROOT))
                    yield from (LogLine(name, text) for text in _texts(written, tree) or [""])


def _written(call):
    """The expression of what a call logs, None where it logs no warning."""
    function = call.func
    if not isinstance(function, ast.Attribute) or _name(function.value) not in LOGGERS:
        return None
    if function.attr in LEVELS:
        return call.args[0]
    return call.args[1] if function.attr == "log" else None


def _name(value):
    return getattr(value, "attr", getattr(value, "id", ""))


def _texts(written, tree):
    """The constants that an expression may be; those of a name are what its module assigns to it."""
    if isinstance(written, ast.Constant):
        return [written.value]
    if isinstance(written, ast.IfExp):
        return _texts(written.body, tree) + _texts(written.orelse, tree)
    if not isinstance(written, ast.Name):
        return []
    given = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if getattr(target, "id", "") == written.id
    ]
    return [text for value in given for text in _texts(value, tree)]
