"""The published JSON schemas of Kubernetes' own types: merge keys, list types, unknown fields, wrong types.

They ship, for offline use, inside the kubernetes-validate package. A checker made of msgspec structs reads a
body at C speed; only a body that fails is walked in Python to say what is wrong.
"""

from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from berth.sandbox.store import Json

_PUBLISHED: Final = ("1.36.0", "1.37.0")
"""The releases whose types are served, oldest first; a release yet to come has those of the last one."""

_REF: Final = "#/$defs/"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
FIELDS_V1: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
# Types that hold any JSON, or that refer to themselves.
OPAQUE: Final = frozenset(
    {
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    }
)


@cache
def definitions() -> dict[str, Json]:
    """Give every type's schema by its full name, as in the OpenAPI document.

    A type has the fields of all releases: every sandbox takes what a newer one adds or an older one had.
    """
    root = resources.files("kubernetes_validate").joinpath("kubernetes-json-schema")
    found: dict[str, Json] = {}
    for version in _PUBLISHED:
        raw = root.joinpath(f"v{version}-local", "_definitions.json").read_bytes()
        for name, schema in msgspec.json.decode(raw)["$defs"].items():
            fields = {**found.get(name, {}).get("properties", {}), **schema.get("properties", {})}
            found[name] = {**schema, "properties": fields} if fields else schema
    return found


def resolve(schema: Json) -> Json:
    """Follow a reference; the keys beside it (merge keys, descriptions) win."""
    name = ref_name(schema)
    if name is None:
        return schema
    return {**definitions().get(name, {}), **schema}


def ref_name(schema: Json) -> str | None:
    """Give the full name of the type that this schema refers to, or None."""
    reference = schema.get("$ref")
    return reference[len(_REF) :] if reference else None


def child(schema: Json | None, key: str) -> Json | None:
    """Give the schema of one property (or map value), or None where nothing is known."""
    if schema is None:
        return None
    resolved = resolve(schema)
    found = resolved.get("properties", {}).get(key)
    if found is None:
        found = resolved.get("additionalProperties")
    return found if isinstance(found, dict) else None


def item(schema: Json | None) -> Json | None:
    """Give the schema of a list's items, or None where nothing is known."""
    found = resolve(schema).get("items") if schema is not None else None
    return found if isinstance(found, dict) else None


def type_of(schema: Json) -> str:
    """Give a schema's type without the null that every optional field also allows."""
    kind = schema.get("type", "")
    if isinstance(kind, list):
        return next((one for one in kind if one != "null"), "")
    return str(kind)


def root(name: str) -> Json:
    """Give a schema that refers to the type of that full name."""
    return {"$ref": _REF + name}


@cache
def checker(name: str) -> msgspec.json.Decoder[Any]:
    """Give a decoder that fails on any unknown field or wrong type of that type of object."""
    return msgspec.json.Decoder(_python_type(name))


_SCALARS: Final[dict[str, Any]] = {"string": str, "integer": int, "boolean": bool, "number": float}


@cache
def _python_type(name: str) -> Any:
    if name in OPAQUE:
        return Any
    if name == QUANTITY:
        return str | int | float
    if name == INT_OR_STRING:
        return int | str
    schema = definitions()[name]
    properties = schema.get("properties")
    if properties is None:
        return _field_type(schema)
    fields = [(f"f{i}", _field_type(sub) | None, None) for i, sub in enumerate(properties.values())]
    rename = {f"f{i}": key for i, key in enumerate(properties)}
    return msgspec.defstruct(name.rpartition(".")[2], fields, rename=rename, forbid_unknown_fields=True)


def _field_type(schema: Json) -> Any:
    name = ref_name(schema)
    if name is not None:
        return _python_type(name)
    kind = type_of(schema)
    if kind == "array":
        return list[_field_type(schema["items"])] if "items" in schema else list  # type: ignore[misc]
    if kind == "object":
        values = schema.get("additionalProperties")
        # A null among a map's values is dropped by the caller before it is stored.
        return dict[str, _field_type(values) | None] if isinstance(values, dict) else dict  # type: ignore[misc]
    return _SCALARS.get(kind, Any)
