"""What a struct's fields look like in a file, derived from its annotations."""

import types
from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from berth.config.duration import Duration
from berth.config.plugin_args import ARGS_TYPES
from berth.config.types import KIND, SchedulerConfiguration
from berth.config.wire import Embedded, GoType, Section


class Form(Enum):
    """What a field holds, as far as reading is concerned."""

    TEXT = auto()
    FLAG = auto()
    INTEGER = auto()
    FLOAT = auto()
    DURATION = auto()
    DATA = auto()
    RAW = auto()
    MAP = auto()
    LIST = auto()
    SECTION = auto()


class FieldShape(msgspec.Struct, frozen=True):
    """A field's form, its type's name in messages, and what is inside."""

    form: Form
    go_type: str
    item: "FieldShape | None" = None
    section: type[Section] | None = None
    optional: bool = False


class FieldSchema(msgspec.Struct, frozen=True):
    """A field: the struct's attribute, the name in type errors, and the shape."""

    attribute: str
    shown_name: str
    shape: FieldShape


_SCALARS: Mapping[object, Form] = {
    str: Form.TEXT,
    bool: Form.FLAG,
    int: Form.INTEGER,
    float: Form.FLOAT,
    Duration: Form.DURATION,
    bytes: Form.DATA,
    object: Form.RAW,
}

# Every kind of the group, by name.
KINDS: Mapping[str, type[Section]] = {
    KIND: SchedulerConfiguration,
    **{f"{plugin}Args": cls for plugin, cls in ARGS_TYPES.items()},
}


@cache
def fields_of(section: type[Section]) -> Mapping[str, FieldSchema]:
    """Give a struct's fields by the names they have in files."""
    hints = get_type_hints(section, include_extras=True)
    names = zip(section.__struct_fields__, section.__struct_encode_fields__, strict=True)
    return {wire: _field(attribute, wire, hints[attribute]) for attribute, wire in names}


def _field(attribute: str, wire: str, hint: Any) -> FieldSchema:
    embedded = [mark.name for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Embedded)]
    return FieldSchema(attribute, ".".join([*embedded, wire]), _shape(hint))


def _shape(hint: Any) -> FieldShape:
    if get_origin(hint) in {Union, types.UnionType}:
        inner = _shape(next(part for part in get_args(hint) if part is not type(None)))
        return FieldShape(inner.form, inner.go_type, inner.item, inner.section, optional=True)
    if marks := [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, GoType)]:
        return FieldShape(_SCALARS[get_args(hint)[0]], marks[0].name)
    if get_origin(hint) is tuple:
        item = _shape(get_args(hint)[0])
        return FieldShape(Form.LIST, f"[]{item.go_type}", item)
    if get_origin(hint) is Mapping:
        item = _shape(get_args(hint)[1])
        return FieldShape(Form.MAP, f"map[string]{item.go_type}", item)
    return FieldShape(Form.SECTION, hint.GO, section=hint)
