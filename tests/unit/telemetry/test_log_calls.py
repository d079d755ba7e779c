"""Logging is structured: a constant message, then pairs of a key and a placeholder, an argument for each."""

import ast
import re

import pytest

from tests import sources
from tests.go_toolchain import ROOT

FORM = re.compile(r"[^%=]*[^%=:.\s](?: [a-z_]+=%(?:s|\.\df))*|[^%=]*\.\.\.")
LOGGER = re.compile(r"\b_*log(ger)?_*\.")
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
ADDS_A_PAIR = "out_of_tree/plugin_log.py"
"""Passes the messages of its callers on, whose calls are held here."""
FILES = {
    **{name: path for name, path in sources.modules().items() if name != ADDS_A_PAIR},
    **{
        str(path.relative_to(ROOT)): path
        for tree in ("plugin-sdk/python/src", "out-of-tree-plugins")
        for path in (ROOT / tree).glob("**/src/**/*.py" if tree == "out-of-tree-plugins" else "**/*.py")
    },
}


def log_calls(text):
    """Line, message and arguments of each call of a logger, which is named `log` wherever there is one."""
    if not LOGGER.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            owner = node.func.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if name.strip("_") in {"log", "logger"}:
                message, *arguments = node.args[node.func.attr == "log" :]
                yield node.lineno, message, arguments


def is_structured(message, arguments):
    """Whether a call has the form; starred arguments would hide how many there are."""
    if not (isinstance(message, ast.Constant) and isinstance(message.value, str)):
        return False
    plain = not any(isinstance(each, ast.Starred) for each in arguments)
    return bool(FORM.fullmatch(message.value)) and plain and message.value.count("%") == len(arguments)


def test_every_call_is_structured():
    calls = [(name, *call) for name, path in FILES.items() for call in log_calls(path.read_text("utf-8"))]

    assert len(calls) > 100
    assert [] == [(name, line) for name, line, *call in calls if not is_structured(*call)]


@pytest.mark.parametrize(
    ("call", "structured"),
    [
        pytest.param('log.info("became leader lease=%s", lease)', True, id="a pair"),
        pytest.param('self._log.log(level, "took seconds=%.3f", seconds)', True, id="a number"),
        pytest.param('log.info("Sync completed")', True, id="no pair"),
        pytest.param('log.info("became leader: lease=%s", lease)', False, id="punctuation"),
        pytest.param('log.info("leads %s", lease)', False, id="text that varies"),
        pytest.param('log.info("leads lease=%s/%s", *names)', False, id="two arguments in one value"),
        pytest.param('log.info("leads lease=%s")', False, id="no argument"),
        pytest.param("log.info(text, lease)", False, id="no constant"),
    ],
)
def test_the_form(call, structured):
    ((_, *found),) = log_calls(call)

    assert structured == is_structured(*found)
