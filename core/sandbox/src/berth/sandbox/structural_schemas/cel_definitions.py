"""Rules when they are defined: whether they parse, and name fields that the schema has.

An API server types every rule in full; here types are followed through fields, indices and macros, which is
where a rule's author slips.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation (v1.36).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from berth.cel import CELError, program
from berth.cel.syntax import CallExpr, IdentExpr, Index, Listing, Mapped, Node, Select, parse
from berth.sandbox.errors import Cause, invalid_value
from berth.sandbox.store import Json
from berth.sandbox.structural_schemas import structural_schema
from berth.sandbox.structural_schemas.cel_rules import RULES
from berth.sandbox.structural_schemas.cel_values import escaped

_MACROS: Final = ("all", "exists", "exists_one", "existsOne", "map", "filter", "transformList")
_METADATA: Final[Json] = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {}}}


def check_definition(schema: Json, path: str) -> list[Cause]:
    """Find the rules and defaults of a version's schema that cannot work."""
    root = {**schema, "properties": {**(schema.get("properties") or {}), "metadata": _METADATA}}
    for name in ("apiVersion", "kind"):
        root["properties"].setdefault(name, {"type": "string"})
    return [*_rules(root, path), *_defaults(schema, path)]


def _below(schema: Json, path: str) -> Iterator[tuple[Json, str]]:
    for name, below in (schema.get("properties") or {}).items():
        yield below, f"{path}.properties[{name}]"
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield schema[name], f"{path}.{name}"


def _rules(schema: Json, path: str) -> Iterator[Cause]:
    for index, rule in enumerate(schema.get(RULES) or ()):
        for name in ("rule", "messageExpression"):
            problem = _problem(rule[name], schema) if name in rule else ""
            if problem:
                where = f"{path}.{RULES}[{index}].{name}"
                yield invalid_value(where, rule[name], f"compilation failed: {problem}")
    for below, here in _below(schema, path):
        yield from _rules(below, here)


def _problem(text: str, schema: Json) -> str:
    try:
        program(text)
        reading = _Reading()
        reading.kind(parse(text), {"self": schema, "oldSelf": schema})
    except CELError as error:
        return str(error)
    return reading.problems[0] if reading.problems else ""


def _defaults(schema: Json, path: str) -> Iterator[Cause]:
    for below, here in _below(schema, path):
        if "default" in below:
            for cause in structural_schema.validate(below["default"], below, f"{here}.default"):
                yield Cause(cause.reason, cause.message, cause.field)
        yield from _defaults(below, here)


@dataclass
class _Reading:
    """One rule's walk along its schema."""

    problems: list[str] = field(default_factory=list)

    def kind(self, node: Node, known: Mapping[str, Json]) -> Json | None:
        """Give the schema of what an expression stands for, None where that is not known."""
        match node:
            case IdentExpr(name):
                if name not in known:
                    self.problems.append(f"undeclared reference to '{name}'")
                return known.get(name)
            case Select(operand, name, _):
                return self._field(self.kind(operand, known), name)
            case Index(operand, index, _):
                self.kind(index, known)
                return _element(self.kind(operand, known))
            case Listing(elements):
                for _, element in elements:
                    self.kind(element, known)
            case Mapped(entries):
                for _, key, value in entries:
                    self.kind(key, known)
                    self.kind(value, known)
            case CallExpr():
                return self._call(node, known)
        return None

    def _field(self, schema: Json | None, name: str) -> Json | None:
        properties = (schema or {}).get("properties")
        if not properties or not schema or schema.get("x-kubernetes-preserve-unknown-fields"):
            return _element(schema)
        found = next((below for key, below in properties.items() if escaped(key) == name), None)
        if found is None:
            self.problems.append(f"undefined field '{name}'")
        return found

    def _call(self, node: CallExpr, known: Mapping[str, Json]) -> Json | None:
        if node.target is None:
            for argument in node.arguments:
                self.kind(argument, known)
            return None
        if isinstance(node.target, IdentExpr) and node.target.name in ("cel", "optional", "sets"):
            return self._namespaced(node, known)
        target = self.kind(node.target, known)
        if node.function in _MACROS:
            return self._macro(node, target, known)
        if node.function in ("optMap", "optFlatMap") and isinstance(node.arguments[0], IdentExpr):
            self.kind(node.arguments[1], {**known, node.arguments[0].name: {}})
            return None
        for argument in node.arguments:
            self.kind(argument, known)
        return target if node.function in ("orValue", "value") else None

    def _macro(self, node: CallExpr, target: Json | None, known: Mapping[str, Json]) -> Json | None:
        leading = node.arguments[: max(1, len(node.arguments) - 1)]
        names = [one.name for one in leading if isinstance(one, IdentExpr) and one.name not in known]
        for argument in node.arguments[len(names) :]:
            self.kind(argument, {**known, **self._bound(names, target)})
        return target if node.function == "filter" else None

    def _bound(self, names: list[str], target: Json | None) -> dict[str, Json]:
        element = _element(target) or {}
        if len(names) == 1:
            return {names[0]: {} if (target or {}).get("type") == "object" else element}
        return dict(zip(names, ({}, element), strict=False))

    def _namespaced(self, node: CallExpr, known: Mapping[str, Json]) -> Json | None:
        if node.function == "bind" and isinstance(node.arguments[0], IdentExpr):
            value = self.kind(node.arguments[1], known) or {}
            return self.kind(node.arguments[2], {**known, node.arguments[0].name: value})
        for argument in node.arguments:
            self.kind(argument, known)
        return None


def _element(schema: Any) -> Json | None:
    if not isinstance(schema, dict):
        return None
    below = schema.get("items") or schema.get("additionalProperties")
    return below if isinstance(below, dict) else None
