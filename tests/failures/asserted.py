"""What a marked test can assert: the texts and names of it and of what it uses of its module."""

import ast
import re
from functools import cache

from tests.failures.reporting import TESTS, reported

COMMAND = re.compile(r"berth |/")
"""What a command or a path is called is not asserted where the test asks what is behind it."""


def unasserted(mark):
    """What a mark quotes that its test does not have, in the order of its places."""
    path, _, name = mark.test.partition("::")
    known = _known(path, name)
    return [
        quoted
        for place, text in mark.texts.items()
        for quoted in re.findall(r"`([^`]+)`", text)
        if not (place == "answer" and COMMAND.match(quoted))
        if not all(any(part in one for one in known) for part in quoted.split("="))
    ]


@cache
def _tree(path):
    return ast.parse((TESTS.parent / path).read_text(encoding="utf-8"))


@cache
def _known(path, name):
    """Constants and names in the test and in what it names of its module, and of what that names."""
    defined = dict(_defined(_tree(path)))
    found, seen, names = set(), set(), {name}
    while names := {one for one in names if one in defined} - seen:
        seen |= names
        used = {one for each in names for node in defined[each] for one in _used(node)}
        found |= used
        names = used
    return found


def _defined(tree):
    """Names of a module, and what defines each."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            others = [each for each in node.decorator_list if not reported(each)]
            yield node.name, [node.args, *others, *_body(node)]
        elif isinstance(node, ast.ClassDef):
            yield node.name, [*node.bases, *_body(node)]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name):
                        yield each.id, [node]


def _body(node):
    """The statements without the docstring: what is only said there is not asserted."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def _used(node):
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes):
            yield each.value if isinstance(each.value, str) else each.value.decode("utf-8", "replace")
        elif isinstance(each, ast.Constant):
            yield str(each.value)
        elif isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.arg | ast.keyword) and each.arg:
            yield each.arg
