"""Documents as the rules of their schema see them: field names escaped, formats turned into types.

Source: staging/src/k8s.io/apiserver/pkg/cel/escaping.go and
apiextensions-apiserver/pkg/apiserver/schema/cel/values.go (v1.36).
"""

import re
from typing import Any, Final

from berth.cel.values import CelDuration
from berth.sandbox.store import Json

_RESERVED: Final = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function"),
        *("if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_MARKS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TO_MARK: Final = re.compile("__|[./-]")


def escaped(name: str) -> str:
    """Give the name by which a rule calls a field."""
    if name in _RESERVED:
        return f"__{name}__"
    return _TO_MARK.sub(lambda found: _MARKS[found[0]], name)


def seen(node: Any, schema: Json) -> Any:
    """Give what a rule sees of a value."""
    if isinstance(node, list):
        items = schema.get("items") or {}
        return [seen(item, items) for item in node]
    if isinstance(node, dict):
        return _seen_map(node, schema)
    if isinstance(node, str) and schema.get("format") == "duration":
        return CelDuration.parse(node)
    if isinstance(node, int) and not isinstance(node, bool) and schema.get("type") == "number":
        return float(node)
    return node


def _seen_map(node: Json, schema: Json) -> Json:
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    found: Json = {}
    for key, value in node.items():
        if key in properties:
            found[escaped(key)] = seen(value, properties[key])
        else:
            found[key] = seen(value, values if isinstance(values, dict) else {})
    return found
