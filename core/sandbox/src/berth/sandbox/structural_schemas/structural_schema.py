"""Structural schemas of custom resources: pruning, defaulting and validation.

The rules among them (x-kubernetes-validations) are in cel_rules.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/{schema,validation} (v1.36).
"""

import copy
from typing import Any, Final

from berth.cel.patterns import compiled
from berth.sandbox.errors import Cause, duplicate, not_supported, required, shown
from berth.sandbox.store import Json

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_NAMES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_EMBEDDED_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(node: Any, schema: Json, path: str, unknown: list[str]) -> None:
    """Remove, and note, the fields that the schema does not know; in place."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            prune(item, schema.get("items") or {}, f"{path}[{index}]", unknown)
        return
    if not isinstance(node, dict):
        return
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    keeps = bool(schema.get(_PRESERVE)) or values is True
    for key in list(node):
        here = f"{path}.{key}" if path else key
        if schema.get(_EMBEDDED) and key in _EMBEDDED_FIELDS:
            continue
        if key in properties:
            prune(node[key], properties[key], here, unknown)
        elif isinstance(values, dict):
            prune(node[key], values, here, unknown)
        elif not keeps:
            unknown.append(here)
            del node[key]


def set_defaults(node: Any, schema: Json) -> None:
    """Fill in defaults wherever their parent is there; in place."""
    if isinstance(node, list):
        for item in node:
            set_defaults(item, schema.get("items") or {})
        return
    if not isinstance(node, dict):
        return
    for key, below in (schema.get("properties") or {}).items():
        missing = key not in node or (node[key] is None and not below.get("nullable"))
        if missing and "default" in below:
            node[key] = copy.deepcopy(below["default"])
        if key in node:
            set_defaults(node[key], below)
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        for value in node.values():
            set_defaults(value, values)


def validate(node: Any, schema: Json, path: str) -> list[Cause]:
    """Find what the schema does not allow."""
    if node is None:
        return (
            []
            if schema.get("nullable") or not schema.get("type")
            else [_wrong_type(node, schema["type"], path)]
        )
    if schema.get(_INT_OR_STRING):
        wrong = not isinstance(node, int | str) or isinstance(node, bool)
        if wrong:
            return [_wrong_type(node, "integer,string", path)]
        return _string(node, schema, path) if isinstance(node, str) else []
    kind = schema.get("type")
    if kind and not _is(node, kind):
        return [_wrong_type(node, kind, path)]
    found: list[Cause] = []
    if "enum" in schema and node not in schema["enum"]:
        found.append(not_supported(path, node, tuple(str(one) for one in schema["enum"])))
    if isinstance(node, dict):
        found += _map(node, schema, path)
    elif isinstance(node, list):
        found += _list(node, schema, path)
    elif isinstance(node, str):
        found += _string(node, schema, path)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        found += _number(node, schema, path)
    return found + _combined(node, schema, path)


def _map(node: Json, schema: Json, path: str) -> list[Cause]:
    found = [required(_join(path, key)) for key in schema.get("required") or () if key not in node]
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    for key, value in node.items():
        below = properties.get(key, values)
        if isinstance(below, dict):
            found += validate(value, below, _join(path, key))
    found += _bounds(len(node), schema, path, ("minProperties", "maxProperties"), "properties")
    return found


def _list(node: list[Any], schema: Json, path: str) -> list[Cause]:
    found = []
    for index, item in enumerate(node):
        found += validate(item, schema.get("items") or {}, f"{path}[{index}]")
    found += _bounds(len(node), schema, path, ("minItems", "maxItems"), "items")
    keys = schema.get("x-kubernetes-list-map-keys")
    seen: list[Any] = []
    if keys or schema.get("x-kubernetes-list-type") == "set" or schema.get("uniqueItems"):
        for index, item in enumerate(node):
            identity = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
            if identity in seen:
                found.append(duplicate(f"{path}[{index}]", identity))
            seen.append(identity)
    return found


def _string(node: str, schema: Json, path: str) -> list[Cause]:
    found = _bounds(len(node), schema, path, ("minLength", "maxLength"), "chars long")
    pattern = schema.get("pattern")
    if pattern:
        found += _matching(node, pattern, path)
    return found


def _matching(node: str, pattern: str, path: str) -> list[Cause]:
    program = compiled(pattern)
    if program.problem:
        return [_invalid(path, node, f"should match '{pattern}, but pattern is invalid: {program.problem}'")]
    found = program.find(node.encode())
    return [_invalid(path, node, f"should match '{pattern}'")] if found is None else []


def _number(node: float, schema: Json, path: str) -> list[Cause]:
    found = []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (node < low or (schema.get("exclusiveMinimum") and node == low)):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        found.append(_invalid(path, node, f"should be {word} {low}"))
    if high is not None and (node > high or (schema.get("exclusiveMaximum") and node == high)):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        found.append(_invalid(path, node, f"should be {word} {high}"))
    step = schema.get("multipleOf")
    if step and node % step:
        found.append(_invalid(path, node, f"should be a multiple of {step}"))
    return found


def _combined(node: Any, schema: Json, path: str) -> list[Cause]:
    found = []
    for below in schema.get("allOf") or ():
        found += validate(node, below, path)
    choices = schema.get("anyOf")
    if choices and all(validate(node, below, path) for below in choices):
        found.append(_invalid(path, node, "must validate at least one schema (anyOf)"))
    ones = schema.get("oneOf")
    if ones and sum(not validate(node, below, path) for below in ones) != 1:
        found.append(_invalid(path, node, "must validate one and only one schema (oneOf)"))
    if "not" in schema and not validate(node, schema["not"], path):
        found.append(_invalid(path, node, "must not validate the schema (not)"))
    return found


def _bounds(size: int, schema: Json, path: str, names: tuple[str, str], what: str) -> list[Cause]:
    low, high = schema.get(names[0]), schema.get(names[1])
    if low is not None and size < low:
        return [
            Cause(
                "FieldValueInvalid",
                f"Invalid value: {size}: {path} in body should have at least {low} {what}",
                path,
            )
        ]
    if high is not None and size > high:
        reason = {"items": "FieldValueTooMany", "chars long": "FieldValueTooLong"}.get(
            what, "FieldValueInvalid"
        )
        return [
            Cause(reason, f"Invalid value: {size}: {path} in body should have at most {high} {what}", path)
        ]
    return []


def _invalid(path: str, value: Any, rule: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {path} in body {rule}", path)


def _wrong_type(node: Any, kind: str, path: str) -> Cause:
    name = "null" if node is None else _NAMES.get(type(node), "object")
    text = f'Invalid value: "{name}": {path} in body must be of type {kind}: "{name}"'
    return Cause("FieldValueTypeInvalid", text, path)


def _is(node: Any, kind: str) -> bool:
    if kind == "integer":
        return (isinstance(node, int) and not isinstance(node, bool)) or (
            isinstance(node, float) and node.is_integer()
        )
    if kind == "number":
        return isinstance(node, int | float) and not isinstance(node, bool)
    return isinstance(node, {"string": str, "boolean": bool, "array": list, "object": dict}[kind])


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
