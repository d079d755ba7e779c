"""The part of JSONPath that printer columns use: fields, indices, `[?(@.field=="value")]`, `[*]`."""

import re
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>[\w\-/]+(?:\\\.[\w\-/]+)*)
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[['"](?P<quoted>[^'"]+)['"]\]
      | \[\?\(@\.(?P<key>[\w.]+)\s*==\s*['"](?P<value>[^'"]*)['"]\)\]
    """,
    re.VERBOSE,
)


def find(document: Any, path: str) -> list[Any]:
    """Give all values that the path leads to; none when it cannot be read."""
    found = [document]
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return []
        found = [value for node in found for value in _apply(node, match)]
        position = match.end()
    return found


def _apply(node: Any, match: re.Match[str]) -> list[Any]:
    name = match["field"] or match["quoted"]
    if name is not None:
        name = name.replace("\\.", ".")
        return [node[name]] if isinstance(node, dict) and name in node else []
    if not isinstance(node, list):
        return list(node.values()) if match["all"] and isinstance(node, dict) else []
    if match["all"]:
        return node
    if match["index"] is not None:
        index = int(match["index"])
        return [node[index]] if -len(node) <= index < len(node) else []
    return [one for one in node if _value(one, match["key"]) == match["value"]]


def _value(node: Any, dotted: str) -> str:
    for part in dotted.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return "" if node is None else str(node)
