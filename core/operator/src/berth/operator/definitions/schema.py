"""Words for writing OpenAPI schemas: every text and list is bounded, so that rules about it stay cheap."""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]

NAME_LENGTH = 253
TEXT_LENGTH = 1024
INT32 = 2**31 - 1
DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"


def rule(expression: str, message: str, field: str = "", *, computed: str = "") -> Schema:
    """A CEL rule with the message for whom it turns down; `computed` makes the message of the document."""
    made: Schema = {"rule": expression, "message": message}
    if computed:
        made["messageExpression"] = computed
    if field:
        made["fieldPath"] = field
    return made


def of(schema: Schema, about: str = "", *, rules: Sequence[Schema] = (), **more: Any) -> Schema:
    """A schema with a description, rules and whatever else belongs to it."""
    made = {"description": about, **schema} if about else dict(schema)
    made |= {name.replace("__", "-"): value for name, value in more.items()}
    if rules:
        made["x-kubernetes-validations"] = [*made.get("x-kubernetes-validations", ()), *rules]
    return made


def fields(
    properties: Mapping[str, Schema],
    about: str = "",
    *,
    required: Sequence[str] = (),
    rules: Sequence[Schema] = (),
    **more: Any,
) -> Schema:
    """An object with these fields."""
    made: Schema = {"type": "object"}
    if required:
        made["required"] = list(required)
    made["properties"] = dict(properties)
    return of(made, about, rules=rules, **more)


def text(
    about: str = "",
    *,
    longest: int = NAME_LENGTH,
    shortest: int = 0,
    rules: Sequence[Schema] = (),
    **more: Any,
) -> Schema:
    """A text of bounded length."""
    made: Schema = {"type": "string", "maxLength": longest}
    if shortest:
        made["minLength"] = shortest
    return of(made, about, rules=rules, **more)


def choice(values: Sequence[str], about: str = "", **more: Any) -> Schema:
    """One of a few words."""
    return of({"type": "string", "enum": list(values)}, about, **more)


def integer(about: str = "", *, least: int | None = None, most: int = INT32, **more: Any) -> Schema:
    """A whole number of 32 bits."""
    made: Schema = {"type": "integer", "format": "int32"}
    if least is not None:
        made["minimum"] = least
    return of({**made, "maximum": most}, about, **more)


def flag(about: str = "", **more: Any) -> Schema:
    """True or false."""
    return of({"type": "boolean"}, about, **more)


def duration(about: str = "", **more: Any) -> Schema:
    """A duration above zero, as Go writes it."""
    above = rule(
        f"self.matches(r'{DURATION}') && duration(self) > duration('0s')",
        "write a duration above zero with its unit, such as 200ms, 15s or 1m30s",
    )
    return text(about, longest=32, rules=[above], **more)


def keyed(items: Schema, key: str, about: str = "", *, most: int, **more: Any) -> Schema:
    """A list whose items are distinguished by one field, so that patches merge it."""
    made: Schema = {
        "type": "array",
        "maxItems": most,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "items": items,
    }
    return of(made, about, **more)


def listed(items: Schema, about: str = "", *, most: int, kind: str = "atomic", **more: Any) -> Schema:
    """A list that is replaced as a whole; `kind` set for one that merges."""
    return of(
        {"type": "array", "maxItems": most, "x-kubernetes-list-type": kind, "items": items}, about, **more
    )


def mapping(values: Schema, about: str = "", *, most: int, **more: Any) -> Schema:
    """A map from texts to values."""
    return of({"type": "object", "maxProperties": most, "additionalProperties": values}, about, **more)


def free(about: str = "", kind: str = "object", **more: Any) -> Schema:
    """Anything at all; who reads it checks it."""
    return of({"type": kind, "x-kubernetes-preserve-unknown-fields": True}, about, **more)


def free_list(about: str = "", *, most: int = 64) -> Schema:
    """A list of objects of another API, passed on as they are."""
    return listed(free(), about, most=most)


def share(about: str = "", **more: Any) -> Schema:
    """A number of pods, or a percentage of them."""
    return of(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 16,
        },
        about,
        **more,
    )


def resources(about: str) -> Schema:
    """Requests and limits of a container."""
    amount: Schema = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 32,
        "x-kubernetes-validations": [
            rule("isQuantity(string(self))", "write an amount such as 500m, 2 or 1Gi")
        ],
    }
    amounts = mapping(amount, most=32)
    requests = of(amounts, "What has to be free on its node, by resource; none if not given.")
    limits = of(amounts, "What it may use at most, by resource; no limit for what is not given.")
    return fields({"requests": requests, "limits": limits}, about)


def explained(schema: Schema) -> Schema:
    """The same with bounds in the descriptions: `kubectl explain` shows texts, defaults and words alone."""
    made = dict(schema)
    if bounds := _bounds(schema):
        made["description"] = f"{schema['description']} {bounds}"
    if "properties" in schema:
        made["properties"] = {name: explained(field) for name, field in schema["properties"].items()}
    if "description" not in schema.get("items", {"description": ""}):
        made["items"] = explained(schema["items"])
    return made


def _bounds(schema: Schema) -> str:
    if "description" not in schema:
        return ""
    for field, what in (("maxItems", "entries"), ("maxProperties", "entries"), ("maxLength", "characters")):
        if field in schema and "enum" not in schema:
            return f"At most {schema[field]} {what}."
    least, most = schema.get("minimum"), schema.get("maximum", INT32)
    if most != INT32:
        return f"From {least or 0} to {most}."
    return "" if least is None else f"At least {least}."
