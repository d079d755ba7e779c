"""Who set which field: objects as sets of paths, and metadata.managedFields.

A path is a tuple of the steps that FieldsV1 writes: `f:name` into a map, `k:{"name":"c"}` to an item of a
keyed list, `v:"x"` to an item of a set, and `.` for a keyed item itself. Atomic lists and maps are leaves.
Source: sigs.k8s.io/structured-merge-diff/v6/fieldpath, apimachinery/pkg/util/managedfields (v1.36).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from berth.sandbox import schemas
from berth.sandbox.kinds.quantities import canonical
from berth.sandbox.store import Json, decode, encode

Path = tuple[str, ...]
Fields = dict[Path, Any]
ITEM: Final = "."
# What the server owns, so that no field set has it.
_SERVERS_TOP: Final = frozenset({"f:apiVersion", "f:kind"})
_SERVERS_METADATA: Final = frozenset(
    f"f:{name}"
    for name in (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
        "generateName",
    )
)
# Keys of keyed lists that clients leave out and the server defaults.
_KEY_DEFAULTS: Final = {"protocol": "TCP"}


def flatten(document: Json, schema: Json | None) -> Fields:
    """Give every field that can be owned, with its value."""
    return {path: value for path, value in _leaves(document, schema, ()) if not _is_servers(path)}


def _is_servers(path: Path) -> bool:
    if path[0] in _SERVERS_TOP or path == ("f:metadata",):
        return True
    return path[0] == "f:metadata" and path[1] in _SERVERS_METADATA


def _leaves(node: Any, schema: Json | None, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, dict) and node and not is_atomic_map(schema):
        for key, value in node.items():
            yield from _leaves(value, schemas.child(schema, key), (*path, f"f:{key}"))
        return
    kind = list_type(schema) if isinstance(node, list) else ""
    if kind == "map":
        keys = list_keys(schema)
        for item in node:
            here = (*path, key_step(item, keys))
            yield (*here, ITEM), True
            yield from _leaves(item, schemas.item(schema), here)
    elif kind == "set":
        for item in node:
            yield (*path, value_step(item)), item
    elif schema is not None and schemas.ref_name(schema) == schemas.QUANTITY:
        yield path, _quantity(node)
    else:
        yield path, node


def _quantity(value: Any) -> Any:
    # 1, "1" and "1000m" are one amount, so there is no conflict over them.
    try:
        return canonical(str(value))
    except ValueError:
        return value


def is_atomic_map(schema: Json | None) -> bool:
    """Say whether a map is owned as a whole."""
    return schema is not None and schemas.resolve(schema).get("x-kubernetes-map-type") == "atomic"


def list_type(schema: Json | None) -> str:
    """Give map, set or atomic."""
    return str((schema or {}).get("x-kubernetes-list-type", "atomic"))


def list_keys(schema: Json | None) -> list[str]:
    """Give the keys of a keyed list's items."""
    found: list[str] = (schema or {}).get("x-kubernetes-list-map-keys", [])
    return found


def key_step(item: Any, keys: list[str]) -> str:
    """Write the step to an item of a keyed list."""
    found = (
        {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(keys)} if isinstance(item, dict) else {}
    )
    return "k:" + encode({key: value for key, value in found.items() if value is not None}).decode()


def value_step(item: Any) -> str:
    """Write the step to an item of a set."""
    return "v:" + encode(item).decode()


def to_fields_v1(paths: Iterator[Path] | set[Path]) -> Json:
    """Write paths as FieldsV1."""
    tree: Json = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def from_fields_v1(tree: Mapping[str, Any], path: Path = ()) -> set[Path]:
    """Read FieldsV1 as paths to leaves."""
    found: set[Path] = set()
    for step, below in tree.items():
        found |= from_fields_v1(below, (*path, step)) if below else {(*path, step)}
    return found


def dotted(path: Path) -> str:
    """Write a path as conflict messages do: .spec.containers[name="c"].image."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            pairs = decode(rest)
            text += "[" + ",".join(f"{key}={encode(value).decode()}" for key, value in pairs.items()) + "]"
        elif kind == "v":
            text += f"[={rest}]"
    return text
