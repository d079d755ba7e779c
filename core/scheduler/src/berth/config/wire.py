"""The marks that tell how a field is written in a file: its type's name in messages, its range, its place.

Fields of the structs in `types` and `plugin_args` carry them as annotations; `schema` reads them.
"""

from typing import Annotated, ClassVar, TypeAlias

import msgspec

from berth.config.duration import Duration


class GoType(msgspec.Struct, frozen=True):
    """The name that type errors give a scalar."""

    name: str


class Embedded(msgspec.Struct, frozen=True):
    """The name of the embedded structure that type errors put before the field's."""

    name: str


class Section(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the configuration: frozen, compared by value, camelCase in files.

    `GO` is the name that type errors give it, package prefix included.
    """

    GO: ClassVar[str] = ""


Int32: TypeAlias = Annotated[int, GoType("int32")]
Int64: TypeAlias = Annotated[int, GoType("int64")]
Float32: TypeAlias = Annotated[float, GoType("float32")]
Text: TypeAlias = Annotated[str, GoType("string")]
Flag: TypeAlias = Annotated[bool, GoType("bool")]
Span: TypeAlias = Annotated[Duration, GoType("string")]
Data: TypeAlias = Annotated[bytes, GoType("[]uint8")]
RawJson: TypeAlias = Annotated[object, GoType("runtime.RawExtension")]
