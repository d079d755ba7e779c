"""Functions of expressions: the standard ones, and Kubernetes' for quantities, versions, lists and texts.

Source: cel-spec doc/langdef.md; cel-go ext/strings; apiserver pkg/cel/library (quantity, semver, lists,
regex).
"""

import math
import operator
import re
from collections.abc import Callable, Container, Mapping
from itertools import pairwise
from typing import Any

from berth.cel import patterns
from berth.cel.errors import EvaluationError
from berth.cel.metering import Evaluation
from berth.cel.operators import add, compare_amounts, contained, differ, same
from berth.cel.values import (
    NONE,
    CelDuration,
    OptionalValue,
    Quantity,
    Semver,
    UInt,
    comparable,
    equal,
    in_int64,
    in_uint64,
    type_name,
)
from berth.objects.quantity import NANOS

Function = Callable[..., Any]

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:[iI]nf(?:inity)?|[nN]a[nN])"
)
_QUOTED = 64
_PAST_INTEGERS = 1e16


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
    if isinstance(value, str) and not _INTEGER.fullmatch(value):
        raise EvaluationError(f"type conversion error from 'string' to 'int': {value[:_QUOTED]!r}")
    return in_int64(int(_of((int, float, str), value)))


def to_uint(value: Any) -> UInt:
    """An unsigned integer, cut off towards zero."""
    return UInt(in_uint64(to_int(value) if not isinstance(value, UInt) else int(value)))


def to_double(value: Any) -> float:
    """A floating-point number."""
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise EvaluationError(f"type conversion error from 'string' to 'double': {value[:_QUOTED]!r}")
    return float(_of((float, str), value) if not isinstance(value, int) else _of(int, value))


def to_string(value: Any) -> str:
    """The value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < _PAST_INTEGERS and value == int(value) else repr(value)
    return str(int(value)) if isinstance(value, int) else str(_of(str, value))


def to_bool(value: Any) -> bool:
    """A truth value, from its words."""
    if isinstance(value, bool):
        return value
    for truth, words in ((True, ("1", "t", "true", "T", "TRUE", "True")), (False, _FALSE_WORDS)):
        if _of(str, value) in words:
            return truth
    raise EvaluationError(f"cannot convert {value[:_QUOTED]!r} to a bool")


_FALSE_WORDS = ("0", "f", "false", "F", "FALSE", "False")


# Texts.


# Regular expressions are paid for here: what one costs is known once it is compiled.


def matches(run: Evaluation, text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    program, encoded = _pattern(run, text, pattern)
    return program.find(encoded) is not None


def find(run: Evaluation, text: str, pattern: str) -> str:
    """The first place that matches, empty where none does."""
    program, encoded = _pattern(run, text, pattern)
    found = program.find(encoded)
    return encoded[slice(*found)].decode() if found else ""


def find_all(run: Evaluation, text: str, pattern: str, limit: int = -1) -> list[str]:
    """The places that match, in order, at most that many; an empty one right behind another is none.

    Source: Go's regexp, "All".
    """
    program, encoded = _pattern(run, text, pattern)
    places: list[str] = []
    start, last = 0, -1
    while start <= len(encoded) and not 0 <= _of(int, limit) <= len(places):
        found = program.find(encoded, start)
        if found is None:
            break
        if found[1] > start or found[0] != last:
            run.spend(0, 1)
            places.append(encoded[slice(*found)].decode())
        last = found[1]
        start = found[1] if found[1] > start else _next_character(encoded, start)
        run.spend(0, program.work(len(encoded) - start))
    return places


def _pattern(run: Evaluation, text: str, pattern: str) -> tuple[patterns.Pattern, bytes]:
    """The compiled pattern and the encoded text, once a search of the one in the other is paid for."""
    searched = -(-(1 + len(_of(str, text))) // 10)
    run.spend(searched * -(-len(_of(str, pattern)) // 4))
    program = patterns.compiled(pattern)
    if pattern not in run.patterns:
        run.patterns |= {pattern}
        run.spend(0, program.compiling_work)
    encoded = text.encode()
    run.spend(0, program.work(len(encoded)))
    return program, encoded


def _next_character(encoded: bytes, at: int) -> int:
    at += 1
    while at < len(encoded) and encoded[at] & 0xC0 == 0x80:  # noqa: PLR2004 - a byte inside a character
        at += 1
    return at


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
    return str(_of(str, text).replace(old, new, max(limit, -1)))


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


def index_of(run: Evaluation, value: Any, wanted: Any, start: int = 0) -> int:
    """Where a text or an element is found first, -1 where nowhere."""
    if isinstance(value, list):
        return next((i for i, element in enumerate(value) if equal(element, wanted, run.toil)), -1)
    return int(_of(str, value).find(_of(str, wanted), start))


def last_index_of(run: Evaluation, value: Any, wanted: Any, end: int | None = None) -> int:
    """Where a text or an element is found last, -1 where nowhere."""
    if isinstance(value, list):
        places = range(len(value) - 1, -1, -1)
        return next((i for i in places if equal(value[i], wanted, run.toil)), -1)
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


def includes(run: Evaluation, value: Any, wanted: Any) -> bool:
    """Whether a list has that element, or a single value is that one; of any types.

    Source: dynamic-resource-allocation cel/compile.go includesFunc (Kubernetes v1.36).
    """
    return contained(run, wanted, value if isinstance(value, list) else [value])


def has_all(run: Evaluation, values: list[Any], wanted: list[Any]) -> bool:
    """Whether every wanted element is there."""
    return all(contained(run, element, _of(list, values)) for element in _of(list, wanted))


def same_elements(run: Evaluation, left: list[Any], right: list[Any]) -> bool:
    """Whether both lists have the same elements."""
    return has_all(run, left, right) and has_all(run, right, left)


def has_any(run: Evaluation, left: list[Any], right: list[Any]) -> bool:
    """Whether the lists have an element in common."""
    return any(contained(run, element, _of(list, right)) for element in _of(list, left))


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


def duration(value: Any) -> CelDuration:
    """The span of time that the text stands for."""
    return value if isinstance(value, CelDuration) else CelDuration.parse(_of(str, value))


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


METERED: Container[Function] = (
    *(matches, find, find_all, index_of, last_index_of, has_all, same_elements, has_any),
    *(contained, same, differ, includes),
)
"""Functions that take the run first: they count what they do themselves, or a part of it."""

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
    "includes": includes,
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
    "getSeconds": lambda value: _of(CelDuration, value).nanos // NANOS,
    "getMilliseconds": lambda value: _of(CelDuration, value).nanos // 1_000_000,
    "major": lambda value: _of(Semver, value).major,
    "minor": lambda value: _of(Semver, value).minor,
    "patch": lambda value: _of(Semver, value).patch,
    "hasValue": lambda held: _of(OptionalValue, held).present,
    "value": lambda held: value_of(_of(OptionalValue, held)),
    "orValue": lambda held, other: held.value if _of(OptionalValue, held).present else other,
    "or": lambda held, other: held if _of(OptionalValue, held).present else _of(OptionalValue, other),
}
