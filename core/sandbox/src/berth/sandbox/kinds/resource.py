"""A served resource: what discovery, storage and selectors need to know of it.

Source: pkg/registry/*/storage (v1.36).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from berth.sandbox import schemas
from berth.sandbox.store import Json, StoredObject, encode

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
FieldPaths = tuple[tuple[str, str], ...]
BASE_FIELDS: Final = (("metadata.name", "metadata.name"), ("metadata.namespace", "metadata.namespace"))


@dataclass(frozen=True, eq=False)
class ServedResource:
    """One served resource of one group and version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    schema: str = ""
    """Full name of the type in the OpenAPI document; empty for custom resources."""
    generation: bool = False
    """Whether metadata.generation counts the changes of the spec."""
    returns_deleted: bool = False
    """Whether a deletion answers with the object rather than with a Status."""
    fields: FieldPaths = ()
    """Field selectors beyond name and namespace: label as written in the selector, path in the object."""
    collection: str = ""
    """The collection of the store, where that is not the resource's own name."""
    custom: Any = None
    """What a CustomResourceDefinition adds; None for the built-in resources."""

    @property
    def group_version(self) -> str:
        """Give the apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Give the name with its group, as kubectl prints it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def store_name(self) -> str:
        """Give the name of the collection that holds it."""
        return self.collection or self.qualified

    @cached_property
    def envelope(self) -> int:
        """Give how many leading bytes of an object are its kind and apiVersion, which lists leave out."""
        return len(encode({"kind": self.kind, "apiVersion": self.group_version}))

    @property
    def has_status(self) -> bool:
        """Say whether status is written through its own subresource."""
        return "status" in self.subresources

    @property
    def is_described(self) -> bool:
        """Say whether its type is known here; that of an aggregated one is the other server's."""
        return bool(self.schema) or self.custom is not None

    @cached_property
    def root_schema(self) -> Json | None:
        """Give the schema of the whole object, with its merge keys and list types."""
        if self.custom is not None:
            found: Json | None = self.custom.schema
            return found
        return schemas.root(self.schema)

    def key(self, namespace: str, name: str) -> str:
        """Give the key under which the store keeps the object."""
        return f"{namespace}/{name}" if self.namespaced else name

    @cached_property
    def _selectable(self) -> msgspec.json.Decoder[Any]:
        return _selectable_decoder(tuple(path for _, path in self.field_paths))

    @cached_property
    def field_paths(self) -> FieldPaths:
        """Give every field selector with the path it reads."""
        return BASE_FIELDS + self.fields

    def selectable(self, entry: StoredObject) -> Any:
        """Give what selectors can see of a stored object, decoded for the first one that looks."""
        if entry.attributes is None:
            entry.attributes = self._selectable.decode(entry.body)
        return entry.attributes

    def field_reader(self, label: str) -> Callable[[Any], str]:
        """Give the function that reads one field selector's value of what `selectable` gave.

        Raises: KeyError where the field cannot be selected by.
        """
        parts = dict(self.field_paths)[label].split(".")
        return lambda seen: _text(_walk(seen, parts))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _walk(node: Any, parts: Sequence[str]) -> Any:
    for part in parts:
        node = getattr(node, part, None)
    return node


def _selectable_decoder(paths: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    tree: Json = {"metadata": {"labels": dict[str, str] | None}}
    for path in paths:
        *parents, leaf = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = Any
    return msgspec.json.Decoder(_struct("Selectable", tree))


def _struct(name: str, tree: Json) -> Any:
    fields: list[tuple[str, Any, Any]] = [
        (key, _struct(key, kind) | None if isinstance(kind, dict) else kind, None)
        for key, kind in tree.items()
    ]
    return msgspec.defstruct(name, fields)
