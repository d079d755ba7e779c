"""The values of expressions, and what can be compared and counted with what.

int, double, string, bytes, bool, null, list and map are Python's own; the rest is here.

Source: cel-spec doc/langdef.md; apiserver pkg/cel/library (quantity, semver).
"""

import re
from collections.abc import Callable, Mapping
from functools import total_ordering
from typing import Any

import msgspec

from berth.cel.errors import EvaluationError
from berth.config.duration import parse_duration
from berth.objects.quantity import InvalidQuantityError, nanos

MAX_INT = 2**63 - 1
MIN_INT = -(2**63)
MAX_UINT = 2**64 - 1

_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")
_DIGITS = re.compile(r"[0-9]+")
_QUOTED = 64


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


def in_int64(value: int) -> int:
    """The value, which has to fit. Raises: EvaluationError."""
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


def in_uint64(value: int) -> int:
    """The value, which has to fit. Raises: EvaluationError."""
    if not 0 <= value <= MAX_UINT:
        raise EvaluationError("unsigned integer overflow")
    return value


class Quantity(msgspec.Struct, frozen=True, order=True):
    """An amount. Units: nanos, billionths."""

    nanos: int

    @classmethod
    def parse(cls, text: str | float) -> "Quantity":
        """The amount that the text stands for. Raises: EvaluationError."""
        try:
            return cls(nanos(text))
        except InvalidQuantityError as error:
            raise EvaluationError(str(error)) from None


class CelDuration(msgspec.Struct, frozen=True, order=True):
    """A span of time. Units: nanos, nanoseconds."""

    nanos: int

    @classmethod
    def parse(cls, text: str) -> "CelDuration":
        """The span that the text stands for. Raises: EvaluationError."""
        try:
            return cls(int(parse_duration(text)))
        except ValueError as error:
            raise EvaluationError(str(error)) from None


@total_ordering
class Semver(msgspec.Struct, frozen=True, eq=False):
    """A version as semver.org orders it; build metadata does not count."""

    major: int
    minor: int
    patch: int
    pre_release: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, normalize: bool = False) -> "Semver":
        """The version that the text stands for.

        `normalize` allows a leading v, missing minor and patch, and leading zeros. Raises: EvaluationError.
        """
        core, plus, build = (_normalized(text) if normalize else text).partition("+")
        core, dash, pre_release = core.partition("-")
        numbers = [_version_number(part) for part in core.split(".", _PARTS)]
        parts = tuple(pre_release.split(".")) if dash else ()
        valid = len(numbers) == _PARTS and all(map(_is_pre_release, parts))
        if not valid or None in numbers or (plus and not all(map(_IDENTIFIER.fullmatch, build.split(".")))):
            raise EvaluationError(f"{text[:_QUOTED]!r} is not a semantic version")
        major, minor, patch = (number or 0 for number in numbers)
        return cls(major, minor, patch, parts)

    def _key(self) -> tuple[Any, ...]:
        # Identifiers of digits come before others, and a release after all of its pre-releases.
        pre = tuple(
            (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part)
            for part in self.pre_release
        )
        return self.major, self.minor, self.patch, not self.pre_release, pre

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key() == other._key()

    def __lt__(self, other: "Semver") -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        dash = "-" if self.pre_release else ""
        return f"{self.major}.{self.minor}.{self.patch}{dash}{'.'.join(self.pre_release)}"


_PARTS = 3


def _version_number(text: str) -> int | None:
    """The number, None where it is none: with a leading zero, or beyond 64 bits."""
    number = int(text) if _NUMBER.fullmatch(text) else MAX_UINT + 1
    return number if number <= MAX_UINT else None


def _is_pre_release(part: str) -> bool:
    if _DIGITS.fullmatch(part):
        return _version_number(part) is not None
    return _IDENTIFIER.fullmatch(part) is not None


def _normalized(text: str) -> str:
    text = text.removeprefix("v")
    core, mark, rest = text, "", ""
    for sign in "-+":
        if sign in core:
            core, mark, tail = core.partition(sign)
            rest = mark + tail + rest
    parts = [
        part.lstrip("0") or "0" if part.isascii() and part.isdigit() else part for part in core.split(".")
    ]
    parts += ["0"] * (3 - len(parts))
    return ".".join(parts) + rest


class DefaultMap(dict[str, Any]):
    """A map that answers an empty map for every key it does not have."""

    def __missing__(self, key: object) -> Mapping[str, Any]:
        return {}


class OptionalValue(msgspec.Struct, frozen=True):
    """A value that may be absent."""

    present: bool
    value: Any = None


NONE = OptionalValue(present=False)


# Unions would be made anew with each call.
_NUMBERS = (int, float)
_TEXTS = (str, bytes)
_NESTED = (list, dict, OptionalValue)


def is_number(value: object) -> bool:
    """Whether the value is an int, a uint or a double."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


Work = Callable[[int], None]
"""Counts what a comparison looked at, and ends it where that is too much."""


def ignore_work(work: int) -> None:
    """Count nothing."""
    del work


def equal(left: Any, right: Any, work: Work = ignore_work) -> bool:
    """CEL's equality: numbers compare across their types, anything else of two types differs.

    Lists and maps are compared without recursion: they may be nested deeper than the stack.
    """
    if not isinstance(left, _NESTED):
        return _same(left, right, work)
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            work(_CONTAINER_WORK + _ELEMENT_WORK * len(left))
            pairs.extend(zip(left, right, strict=True))
        elif isinstance(left, dict) and isinstance(right, dict):
            work(_CONTAINER_WORK + _ELEMENT_WORK * len(left))
            if left.keys() != right.keys():
                return False
            pairs.extend((value, right[key]) for key, value in left.items())
        elif isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
            if left.present != right.present:
                return False
            pairs.append((left.value, right.value))
        elif not _same(left, right, work):
            return False
    return True


def _same(left: Any, right: Any, work: Work) -> bool:
    if is_number(left) and is_number(right):
        return bool(left == right)
    if type(left) is not type(right):
        return False
    if isinstance(left, _TEXTS):
        if len(left) != len(right):
            return False
        work(len(left) // BYTES_FOR_WORK)
    return bool(left == right)


_CONTAINER_WORK = 8
_ELEMENT_WORK = 4

BYTES_FOR_WORK = 16
"""How many bytes are compared or copied in the time that a step takes."""


def comparable(left: Any, right: Any) -> bool:
    """Whether an order is defined between the two."""
    if is_number(left) and is_number(right):
        return True
    return type(left) is type(right) and isinstance(left, str | bytes | bool | CelDuration)


def type_name(value: Any) -> str:
    """The name of the value's type, for messages and `type()`."""
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return "null_type"


_TYPE_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "bool"),
    (UInt, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (dict, "map"),
    (Quantity, "kubernetes.Quantity"),
    (CelDuration, "google.protobuf.Duration"),
    (Semver, "kubernetes.Semver"),
    (OptionalValue, "optional_type"),
)
