"""Label and field selectors as they stand in a list or watch request.

Source: staging/src/k8s.io/apimachinery/pkg/labels/selector.go and pkg/fields/selector.go (v1.36).
"""

import re
from collections.abc import Callable, Mapping

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]

_SET = re.compile(r"^\s*(?P<key>[^\s!=<>,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)\s*$")
_COMPARE = re.compile(r"^\s*(?P<key>[^\s!=<>,()]+)\s*(?P<op>==|=|!=|>|<)\s*(?P<value>[^\s=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<not>!?)\s*(?P<key>[^\s!=<>,()]+)\s*$")
_FIELD = re.compile(r"^(?P<key>[^=!]+?)(?P<op>==|!=|=)(?P<value>.*)$")


class SelectorError(ValueError):
    """The selector cannot be parsed; the text says where."""


def parse_label_selector(text: str) -> list[LabelTest]:
    """Give one test for each requirement; all have to hold."""
    return [_requirement(part) for part in _split(text) if part.strip()]


def parse_field_selector(text: str) -> list[tuple[str, str, bool]]:
    """Give (field, value, equal) for each requirement; all have to hold."""
    parsed = []
    for part in _split(text):
        if not part.strip():
            continue
        match = _FIELD.match(part.strip())
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        parsed.append((match["key"], match["value"], match["op"] != "!="))
    return parsed


def match_label_selector(selector: Mapping[str, object] | None, labels: Labels) -> bool:
    """Say whether a LabelSelector object (matchLabels, matchExpressions) holds; None matches nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if isinstance(wanted, Mapping) and any(labels.get(key) != value for key, value in wanted.items()):
        return False
    expressions = selector.get("matchExpressions") or []
    return isinstance(expressions, list) and all(_expression(item, labels) for item in expressions)


def _expression(item: Mapping[str, object], labels: Labels) -> bool:
    key, operator, values = str(item["key"]), item["operator"], item.get("values") or []
    if not isinstance(values, list):
        return False
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) == (operator == "Exists")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def _requirement(part: str) -> LabelTest:
    if match := _SET.match(part):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return _in(match["key"], values, inside=match["op"] == "in")
    if match := _COMPARE.match(part):
        return _compare(match["key"], match["op"], match["value"])
    if match := _EXISTS.match(part):
        return _exists(match["key"], present=not match["not"])
    raise SelectorError(f"unable to parse requirement: {part.strip()!r}")


def _in(key: str, values: frozenset[str], *, inside: bool) -> LabelTest:
    if inside:
        return lambda labels: key in labels and labels[key] in values
    return lambda labels: key not in labels or labels[key] not in values


def _exists(key: str, *, present: bool) -> LabelTest:
    return lambda labels: (key in labels) == present


def _compare(key: str, operator: str, value: str) -> LabelTest:
    if operator in ("=", "=="):
        return lambda labels: labels.get(key) == value
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    try:
        bound = int(value)
    except ValueError:
        raise SelectorError(f"for 'Gt', 'Lt' operators, the value must be an integer: {value!r}") from None
    return lambda labels: _ordered(labels.get(key), bound, greater=operator == ">")


def _ordered(value: str | None, bound: int, *, greater: bool) -> bool:
    try:
        number = int(value or "")
    except ValueError:
        return False
    return number > bound if greater else number < bound
