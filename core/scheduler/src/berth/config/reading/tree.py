"""The generic tree between a document's text and its typed form.

A value is None, bool, str, `Number`, a list of values or an `Object`. Numbers keep their JSON literal,
because type errors quote it; objects keep order and repetitions, because strictness reports both.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from berth.config.go_text import json_text


class Number(msgspec.Struct, frozen=True):
    """A JSON number as written, such as 8.0 or 1e3."""

    literal: str

    def integer(self) -> int | None:
        """Give the number where its literal is an integer's."""
        return int(self.literal) if self.literal.lstrip("-").isdigit() else None

    def plain(self) -> int | float:
        """Give the number as int where its literal is one, else as float; minus zero is a float."""
        integer = self.integer()
        return float(self.literal) if integer is None or self.literal == "-0" else integer


class Object(msgspec.Struct, frozen=True):
    """A JSON object: its members in reading order, repetitions included."""

    members: list[tuple[str, "Value"]] = msgspec.field(default_factory=list)

    def last(self, name: str) -> "Value":
        """Give the value that wins for a name, None where it is absent."""
        return dict(self.members).get(name)

    def __iter__(self) -> Iterator[tuple[str, "Value"]]:
        return iter(self.members)


Value: TypeAlias = bool | str | Number | list["Value"] | Object | None


def type_word(value: Value) -> str:
    """Name a value's JSON type as messages do: string, bool, number, array, object."""
    words = {bool: "bool", str: "string", Number: "number", list: "array", Object: "object"}
    return words.get(type(value), "null")


def to_plain(value: Value) -> object:
    """Give the value as dict, list, str, int, float, bool and None; of repeated names the last wins."""
    if isinstance(value, Object):
        return {name: to_plain(member) for name, member in value}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    return value.plain() if isinstance(value, Number) else value


def sorted_object(members: Iterable[tuple[str, Value]]) -> Object:
    """Give an object with unique names in byte order, as JSON made from YAML has them; the last one wins."""
    return Object(
        sorted(dict(members).items(), key=lambda member: member[0].encode("utf-8", "surrogatepass"))
    )


def compact(value: Value) -> str:
    """Give the value as compact JSON text, for quoting it in messages."""
    return json_text(to_plain(value))
