"""Functions of expressions: the standard ones, and Kubernetes' for quantities, versions, lists and texts.

Source: cel-spec doc/langdef.md; cel-go ext/strings; apiserver pkg/cel/library (quantity, semver, lists,
regex).
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from berth.cel.errors import EvaluationError
from berth.cel.operators import add, compare_amounts, contained
from berth.cel.values import (
    NONE,
    OptionalValue,
    Quantity,
    Semver,
    Span,
    UInt,
    comparable,
    equal,
    in_int64,
    in_uint64,
    type_name,
)
from berth.objects.quantity import NANOS

Function = Callable[..., Any]


def _of(kind: type[Any] | tuple[type[Any], ...], value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise TypeError
    return value


def size(value: Any) -> int:
    """How long a text, a list or a map is."""
    return len(_of((str, bytes, list, dict), value))


# Conversions.


def to_int(value: Any) -> int:
    """An integer, cut off towards zero."""
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationError("integer overflow")
    return in_int64(int(_of((int, float, str), value)))


def to_uint(value: Any) -> UInt:
    """An unsigned integer, cut off towards zero."""
    return UInt(in_uint64(to_int(value) if not isinstance(value, UInt) else int(value)))


def to_double(value: Any) -> float:
    """A floating-point number."""
    return float(_of((float, str), value) if not isinstance(value, int) else _of(int, value))


def to_string(value: Any) -> str:
    """The value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return f"{value:g}" if value == int(value) else repr(value)
    return str(int(value)) if isinstance(value, int) else str(_of(str, value))


def to_bool(value: Any) -> bool:
    """A truth value, from its words."""
    if isinstance(value, bool):
        return value
    for truth, words in ((True, ("1", "t", "true", "T", "TRUE", "True")), (False, _FALSE_WORDS)):
        if _of(str, value) in words:
            return truth
    raise EvaluationError(f"cannot convert {value!r} to a bool")


_FALSE_WORDS = ("0", "f", "false", "F", "FALSE", "False")


# Texts.


@lru_cache(maxsize=512)
def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise EvaluationError(f"invalid regular expression {text!r}: {error}") from None


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return _pattern(_of(str, pattern)).search(_of(str, text)) is not None


def find(text: str, pattern: str) -> str:
    """The first place that matches, empty where none does."""
    found = _pattern(_of(str, pattern)).search(_of(str, text))
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The places that match, in order, at most that many."""
    found = [match[0] for match in _pattern(_of(str, pattern)).finditer(_of(str, text))]
    return found if limit < 0 else found[:limit]


def substring(text: str, start: int, end: int | None = None) -> str:
    """The characters from one place to another."""
    stop = len(_of(str, text)) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise EvaluationError("index out of range")
    return text[start:stop]


def char_at(text: str, index: int) -> str:
    """One character, empty right behind the last."""
    if not 0 <= index <= len(_of(str, text)):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    """The text with `new` for `old`, at most that many times."""
    return str(_of(str, text).replace(old, new, limit))


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """The parts between separators, at most that many."""
    if limit == 0:
        return []
    if not separator:
        parts = list(_of(str, text))
        return (
            parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
        )
    return list(_of(str, text).split(separator, -1 if limit < 0 else limit - 1))


def join(parts: list[str], separator: str = "") -> str:
    """The texts in one."""
    return str(separator).join(_of(str, part) for part in _of(list, parts))


def _case(upper: bool) -> Function:
    low, high = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    table = str.maketrans(low, high) if upper else str.maketrans(high, low)
    return lambda text: _of(str, text).translate(table)


def index_of(value: Any, wanted: Any, start: int = 0) -> int:
    """Where a text or an element is found first, -1 where nowhere."""
    if isinstance(value, list):
        return next((i for i, element in enumerate(value) if equal(element, wanted)), -1)
    return int(_of(str, value).find(_of(str, wanted), start))


def last_index_of(value: Any, wanted: Any, end: int | None = None) -> int:
    """Where a text or an element is found last, -1 where nowhere."""
    if isinstance(value, list):
        return next((i for i in range(len(value) - 1, -1, -1) if equal(value[i], wanted)), -1)
    stop = len(value) if end is None else end + len(_of(str, wanted))
    return int(_of(str, value).rfind(_of(str, wanted), 0, stop))


# Lists and sets.


def _checked(values: list[Any]) -> list[Any]:
    if any(not comparable(values[0], value) for value in _of(list, values)[1:]):
        raise TypeError
    return values


def is_sorted(values: list[Any]) -> bool:
    """Whether no element is less than the one before it."""
    checked = _checked(values)
    return all(a <= b for a, b in pairwise(checked))


def total(values: list[Any]) -> Any:
    """The sum."""
    found: Any = None
    for value in _of(list, values):
        found = value if found is None else add(found, value)
    return 0 if found is None else found


def least(values: list[Any]) -> Any:
    """The smallest element."""
    if not values:
        raise EvaluationError("min called on empty list")
    return min(_checked(values))


def greatest(values: list[Any]) -> Any:
    """The greatest element."""
    if not values:
        raise EvaluationError("max called on empty list")
    return max(_checked(values))


def has_all(values: list[Any], wanted: list[Any]) -> bool:
    """Whether every wanted element is there."""
    return all(contained(element, _of(list, values)) for element in _of(list, wanted))


def same_elements(left: list[Any], right: list[Any]) -> bool:
    """Whether both lists have the same elements."""
    return has_all(left, right) and has_all(right, left)


def has_any(left: list[Any], right: list[Any]) -> bool:
    """Whether the lists have an element in common."""
    return any(contained(element, _of(list, right)) for element in _of(list, left))


# Quantities and versions.


def quantity(text: str) -> Quantity:
    """The amount that the text stands for."""
    return Quantity.parse(_of(str, text))


def is_quantity(text: str) -> bool:
    """Whether the text stands for an amount."""
    return _parses(lambda: Quantity.parse(_of(str, text)))


def semver(text: str, normalize: bool = False) -> Semver:
    """The version that the text stands for."""
    return Semver.parse(_of(str, text), normalize=_of(bool, normalize))


def is_semver(text: str, normalize: bool = False) -> bool:
    """Whether the text stands for a version."""
    return _parses(lambda: Semver.parse(_of(str, text), normalize=_of(bool, normalize)))


def duration(value: Any) -> Span:
    """The span of time that the text stands for."""
    return value if isinstance(value, Span) else Span.parse(_of(str, value))


def _parses(read: Callable[[], object]) -> bool:
    try:
        read()
    except EvaluationError:
        return False
    return True


def is_integer(value: Quantity) -> bool:
    """Whether the amount is whole and fits 64 bits."""
    whole, rest = divmod(value.nanos, NANOS)
    return rest == 0 and -(2**63) <= whole < 2**63


def as_integer(value: Quantity) -> int:
    """The whole amount."""
    if not is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return value.nanos // NANOS


def changed(apply: Callable[[Any, Any], Any]) -> Function:
    """Addition to a quantity, or subtraction from it, of a quantity or an integer."""

    def change(value: Quantity, other: Any) -> Quantity:
        amount = other.nanos if isinstance(other, Quantity) else _of(int, other) * NANOS
        return Quantity(apply(_of(Quantity, value).nanos, amount))

    return change


# Optional values.


def value_of(held: OptionalValue) -> Any:
    """The value, which has to be there."""
    if not held.present:
        raise EvaluationError("optional.none() dereference")
    return held.value


def of_non_zero(value: Any) -> OptionalValue:
    """The value unless it is empty, zero, false or null."""
    return OptionalValue(present=True, value=value) if value else NONE


FUNCTIONS: Mapping[str, Function] = {
    "size": size,
    "int": to_int,
    "uint": to_uint,
    "double": to_double,
    "string": to_string,
    "bool": to_bool,
    "bytes": lambda value: value if isinstance(value, bytes) else _of(str, value).encode(),
    "dyn": lambda value: value,
    "type": type_name,
    "matches": matches,
    "duration": duration,
    "quantity": quantity,
    "isQuantity": is_quantity,
    "semver": semver,
    "isSemver": is_semver,
}

NAMESPACED: Mapping[str, Function] = {
    "optional.of": lambda value: OptionalValue(present=True, value=value),
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": of_non_zero,
    "sets.contains": has_all,
    "sets.equivalent": same_elements,
    "sets.intersects": has_any,
}

METHODS: Mapping[str, Function] = {
    "size": size,
    "contains": lambda text, part: _of(str, part) in _of(str, text),
    "startsWith": lambda text, part: _of(str, text).startswith(_of(str, part)),
    "endsWith": lambda text, part: _of(str, text).endswith(_of(str, part)),
    "matches": matches,
    "find": find,
    "findAll": find_all,
    "lowerAscii": _case(upper=False),
    "upperAscii": _case(upper=True),
    "trim": lambda text: _of(str, text).strip(),
    "charAt": char_at,
    "substring": substring,
    "replace": replace,
    "split": split,
    "join": join,
    "indexOf": index_of,
    "lastIndexOf": last_index_of,
    "isSorted": is_sorted,
    "sum": total,
    "min": least,
    "max": greatest,
    "compareTo": compare_amounts,
    "isGreaterThan": lambda left, right: compare_amounts(left, right) > 0,
    "isLessThan": lambda left, right: compare_amounts(left, right) < 0,
    "add": changed(operator.add),
    "sub": changed(operator.sub),
    "sign": lambda value: (_of(Quantity, value).nanos > 0) - (value.nanos < 0),
    "isInteger": is_integer,
    "asInteger": as_integer,
    "asApproximateFloat": lambda value: _of(Quantity, value).nanos / NANOS,
    "getSeconds": lambda value: _of(Span, value).nanos // NANOS,
    "getMilliseconds": lambda value: _of(Span, value).nanos // 1_000_000,
    "major": lambda value: _of(Semver, value).major,
    "minor": lambda value: _of(Semver, value).minor,
    "patch": lambda value: _of(Semver, value).patch,
    "hasValue": lambda held: _of(OptionalValue, held).present,
    "value": lambda held: value_of(_of(OptionalValue, held)),
    "orValue": lambda held, other: held.value if _of(OptionalValue, held).present else other,
    "or": lambda held, other: held if _of(OptionalValue, held).present else _of(OptionalValue, other),
}
