"""The rules of a custom resource's schema (x-kubernetes-validations), asked of a document.

A rule that mentions `oldSelf` is a transition rule: it is asked on an update only, where the old value can be
known: through fields, and through lists that are keyed, but not through other lists.

The costs of rules are not estimated.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (v1.36).
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from berth.cel import CELError, program
from berth.cel.values import NONE, OptionalValue
from berth.sandbox.errors import Cause
from berth.sandbox.store import Json
from berth.sandbox.structural_schemas.cel_values import seen

RULES: Final = "x-kubernetes-validations"
NOT_CHECKED: Final = Cause(
    "FieldValueInvalid",
    'Invalid value: "null": some validation rules were not checked because the object was invalid; correct '
    "the existing errors to complete validation",
    "<nil>",
)
# What makes it pointless to ask rules at all.
_BLOCKING: Final = ("FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
_TRANSITION: Final = re.compile(r"\boldSelf\b")
_WORDS: Final = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
_ABSENT: Final = object()


def check_rules(document: Any, old: Any, schema: Json, found: list[Cause]) -> list[Cause]:
    """Give what the rules turn down; `found` is what the schema itself did, `old` None on a creation."""
    if any(cause.reason in _BLOCKING for cause in found):
        return [NOT_CHECKED] if has_rules(schema) else []
    return list(_walk(document, _ABSENT if old is None else old, schema, ""))


def has_rules(schema: Any) -> bool:
    """Say whether there is a rule anywhere in the schema."""
    if isinstance(schema, dict):
        return RULES in schema or any(has_rules(below) for below in schema.values())
    return isinstance(schema, list) and any(has_rules(below) for below in schema)


def _walk(node: Any, old: Any, schema: Json, path: str) -> Iterator[Cause]:
    for rule in schema.get(RULES) or ():
        cause = _ask(rule, node, old, schema, path)
        if cause is not None:
            yield cause
    if isinstance(node, dict):
        yield from _walk_map(node, old if isinstance(old, dict) else {}, schema, path)
    elif isinstance(node, list):
        items = schema.get("items") or {}
        for index, item in enumerate(node):
            yield from _walk(item, _counterpart(item, old, schema), items, f"{path}[{index}]")


def _walk_map(node: Json, old: Json, schema: Json, path: str) -> Iterator[Cause]:
    properties = schema.get("properties") or {}
    values = schema.get("additionalProperties")
    for key, value in node.items():
        below = properties.get(key, values)
        if isinstance(below, dict):
            here = f"{path}.{key}" if key in properties else f"{path}[{key}]"
            yield from _walk(value, old.get(key, _ABSENT), below, here.removeprefix("."))


def _counterpart(item: Any, old: Any, schema: Json) -> Any:
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return _ABSENT
    identity = [item.get(key) for key in keys]
    return next((one for one in old if [one.get(key) for key in keys] == identity), _ABSENT)


def _ask(rule: Json, node: Any, old: Any, schema: Json, path: str) -> Cause | None:
    variables: dict[str, Any] = {"self": seen(node, schema)}
    if _TRANSITION.search(rule["rule"]):
        if rule.get("optionalOldSelf"):
            held = NONE if old is _ABSENT else OptionalValue(present=True, value=seen(old, schema))
            variables["oldSelf"] = held
        elif old is _ABSENT:
            return None
        else:
            variables["oldSelf"] = seen(old, schema)
    try:
        if program(rule["rule"])(variables) is True:
            return None
    except CELError as error:
        return _cause(rule, schema, path, f"{error} evaluating rule: {rule.get('message') or rule['rule']}")
    return _cause(rule, schema, path, _message(rule, variables))


def _message(rule: Json, variables: dict[str, Any]) -> str:
    if rule.get("messageExpression"):
        try:
            text = program(rule["messageExpression"])(variables)
        except CELError:
            text = ""
        if isinstance(text, str) and text.strip() and "\n" not in text:
            return text.strip()
    return str(rule.get("message") or f"failed rule: {rule['rule']}")


def _cause(rule: Json, schema: Json, path: str, detail: str) -> Cause:
    reason = rule.get("reason") or "FieldValueInvalid"
    where = f"{path}{rule.get('fieldPath', '')}".removeprefix(".") or "<nil>"
    if reason in ("FieldValueForbidden", "FieldValueRequired"):
        return Cause(reason, f"{_WORDS[reason]}: {detail}", where)
    return Cause(reason, f'{_WORDS[reason]}: "{schema.get("type", "object")}": {detail}', where)
