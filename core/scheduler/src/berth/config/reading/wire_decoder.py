"""Generic tree to the fields that a file sets, with the type errors and strictness of Go's JSON decoder.

The result is a dict by attribute name that holds only what was written: defaults tell unset from zero.

Source: sigs.k8s.io/json (v0.0.0-20250730), metav1.Duration.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import msgspec

from berth.config.duration import Duration, parse_duration
from berth.config.errors import DecodeError
from berth.config.go_text import float32, quote
from berth.config.reading.base64_data import decode_base64
from berth.config.reading.schema import KINDS, FieldSchema, FieldShape, Form, fields_of
from berth.config.reading.tree import Number, Object, Value, to_plain, type_word
from berth.config.wire import Section

Fields: TypeAlias = dict[str, Any]
T = TypeVar("T")

_ENVELOPE = frozenset({"apiVersion", "kind"})
_MAX_STRICT = 100
_INT_BITS: Mapping[str, int] = MappingProxyType({"int32": 32, "int64": 64, "uint8": 8})
_BYTE = FieldShape(Form.INTEGER, "uint8")


class _Place(msgspec.Struct, frozen=True):
    """Where a value stands: holder and path for type errors, path with indices for strictness."""

    holder: str = ""
    path: str = ""
    indexed: str = ""

    def member(self, holder: str, shown: str, name: str) -> "_Place":
        path = f"{self.path}.{shown}" if self.path else shown
        return _Place(holder, path, self.within(name))

    def within(self, name: str) -> str:
        return f"{self.indexed}.{name}" if self.indexed else name

    def item(self, index: int) -> "_Place":
        return msgspec.structs.replace(self, indexed=f"{self.indexed}[{index}]")


class WireDecoder(msgspec.Struct):
    """One pass over a document; afterwards `strict` holds its unknown and repeated fields."""

    strict: list[str] = msgspec.field(default_factory=list)
    _fatal: str | None = None

    def read(self, section: type[Section], document: Object) -> Fields:
        """Give what the document sets of a struct.

        Raises:
            DecodeError: a value has the wrong type.
        """
        fields = self._section(section, document, _Place())
        if self._fatal is not None:
            raise DecodeError(self._fatal)
        return fields

    def _section(self, section: type[Section], document: Object, place: _Place) -> Fields:
        schema = fields_of(section)
        envelope = _ENVELOPE if section in KINDS.values() else frozenset()
        holder = section.GO.rpartition(".")[2]
        fields: Fields = {}
        seen: set[str] = set()
        for name, value in document:
            if name not in schema and name not in envelope:
                self._complain("unknown", place.within(name))
                continue
            if name in seen:
                self._complain("duplicate", place.within(name))
            seen.add(name)
            if name in schema:
                self._member(fields, schema[name], value, place.member(holder, schema[name].shown_name, name))
        return fields

    def _member(self, fields: Fields, known: FieldSchema, value: Value, place: _Place) -> None:
        if value is None and (known.shape.optional or known.shape.form is not Form.DURATION):
            fields.pop(known.attribute, None)
        else:
            fields[known.attribute] = self._value(known.shape, value, place)

    def _value(self, shape: FieldShape, value: Value, place: _Place) -> Any:
        readers: Mapping[Form, Callable[[FieldShape, Any, _Place], Any]] = {
            Form.TEXT: self._text,
            Form.FLAG: self._flag,
            Form.INTEGER: self._integer,
            Form.FLOAT: self._float,
            Form.DURATION: self._duration,
            Form.DATA: self._data,
            Form.RAW: lambda _shape, raw, _place: raw,
            Form.MAP: self._map,
            Form.LIST: self._list,
            Form.SECTION: self._object,
        }
        return readers[shape.form](shape, value, place)

    def _text(self, shape: FieldShape, value: Value, place: _Place) -> str:
        return value if isinstance(value, str) else self._wrong(shape, value, place, "")

    def _flag(self, shape: FieldShape, value: Value, place: _Place) -> bool:
        return value if isinstance(value, bool) else self._wrong(shape, value, place, False)

    def _integer(self, shape: FieldShape, value: Value, place: _Place) -> int:
        if not isinstance(value, Number):
            return self._wrong(shape, value, place, 0)
        number = value.integer()
        bits = _INT_BITS[shape.go_type]
        low, high = (0, 1 << bits) if shape.go_type == "uint8" else (-1 << (bits - 1), 1 << (bits - 1))
        if number is not None and low <= number < high:
            return number
        return self._misfit(shape, value, place, 0)

    def _float(self, shape: FieldShape, value: Value, place: _Place) -> float:
        if not isinstance(value, Number):
            return self._wrong(shape, value, place, 0.0)
        try:
            return float32(value.literal)
        except OverflowError:
            return self._misfit(shape, value, place, 0.0)

    def _duration(self, shape: FieldShape, value: Value, place: _Place) -> Duration:
        if value is not None and not isinstance(value, str):
            # Unlike any other, a problem with a duration ends decoding at once.
            raise DecodeError(_type_error(type_word(value), shape, place))
        try:
            return parse_duration(value or "")
        except ValueError as error:
            raise DecodeError(str(error)) from None

    def _data(self, shape: FieldShape, value: Value, place: _Place) -> bytes:
        if isinstance(value, list):
            return bytes(0 if item is None else self._integer(_BYTE, item, place) for item in value)
        if not isinstance(value, str):
            return self._wrong(shape, value, place, b"")
        try:
            return decode_base64(value)
        except ValueError as error:
            self._fatal = self._fatal or str(error)
            return b""

    def _map(self, shape: FieldShape, value: Value, place: _Place) -> dict[str, Any]:
        assert shape.item is not None
        if not isinstance(value, Object):
            return self._wrong(shape, value, place, {})
        members: dict[str, Any] = {}
        for name, item in value:
            inner = msgspec.structs.replace(place, indexed=place.within(name))
            if name in members:
                self._complain("duplicate", inner.indexed)
            members[name] = "" if item is None else self._value(shape.item, item, inner)
        return members

    def _list(self, shape: FieldShape, value: Value, place: _Place) -> list[Any]:
        assert shape.item is not None
        if not isinstance(value, list):
            return self._wrong(shape, value, place, [])
        return [self._item(shape.item, item, place.item(index)) for index, item in enumerate(value)]

    def _item(self, shape: FieldShape, value: Value, place: _Place) -> Any:
        if value is not None:
            return self._value(shape, value, place)
        return {} if shape.form is Form.SECTION else ""

    def _object(self, shape: FieldShape, value: Value, place: _Place) -> Fields:
        assert shape.section is not None
        if not isinstance(value, Object):
            return self._wrong(shape, value, place, {})
        return self._section(shape.section, value, place)

    def _wrong(self, shape: FieldShape, value: Value, place: _Place, instead: T) -> T:
        self._fatal = self._fatal or _type_error(type_word(value), shape, place)
        return instead

    def _misfit(self, shape: FieldShape, value: Number, place: _Place, instead: T) -> T:
        self._fatal = self._fatal or _type_error(f"number {value.literal}", shape, place)
        return instead

    def _complain(self, what: str, path: str) -> None:
        complaint = f"{what} field {quote(path)}"
        if complaint not in self.strict and len(self.strict) < _MAX_STRICT:
            self.strict.append(complaint)


def _type_error(what: str, shape: FieldShape, place: _Place) -> str:
    target = f"{place.holder}.{place.path} of type {shape.go_type}"
    return f"json: cannot unmarshal {what} into Go struct field {target}"


def build(section: type[Section], fields: Mapping[str, Any]) -> Any:
    """Make the struct that these fields describe; unset ones get the struct's own defaults."""
    shapes = {known.attribute: known.shape for known in fields_of(section).values()}
    return section(**{name: _built(shapes[name], value) for name, value in fields.items()})


def _built(shape: FieldShape, value: Any) -> Any:
    if shape.form is Form.LIST:
        assert shape.item is not None
        return tuple(_built(shape.item, item) for item in value)
    if shape.form is Form.SECTION and not isinstance(value, Section):
        assert shape.section is not None
        return build(shape.section, value)
    if shape.form is Form.RAW and not isinstance(value, Section):
        return to_plain(value)
    return value
