"""Operators of expressions.

Source: cel-spec doc/langdef.md, "List of Standard Definitions".
"""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from berth.cel.errors import EvaluationError
from berth.cel.metering import Evaluation
from berth.cel.values import (
    Quantity,
    Semver,
    UInt,
    comparable,
    equal,
    in_int64,
    in_uint64,
    is_number,
    type_name,
)


def truth(value: Any) -> bool:
    """The value, which has to be a bool. Raises: EvaluationError."""
    if value is True or value is False:
        return bool(value)
    raise EvaluationError(f"no such overload: {type_name(value)} where a bool is needed")


def add(left: Any, right: Any) -> Any:
    """Sums, and texts and lists one after the other."""
    if type(left) is type(right) and isinstance(left, str | bytes | list):
        return left + right
    return _arithmetic(operator.add, "+", left, right)


def subtract(left: Any, right: Any) -> Any:
    """Differences."""
    return _arithmetic(operator.sub, "-", left, right)


def multiply(left: Any, right: Any) -> Any:
    """Products."""
    return _arithmetic(operator.mul, "*", left, right)


def divide(left: Any, right: Any) -> Any:
    """Quotients; those of integers are cut off towards zero."""
    if type(left) is float and type(right) is float:
        return _float_quotient(left, right)
    return _arithmetic(_quotient, "/", left, right)


def modulo(left: Any, right: Any) -> Any:
    """Remainders, with the sign of the dividend."""
    if isinstance(left, float) or isinstance(right, float):
        raise EvaluationError("no such overload: double % double")
    return _arithmetic(lambda a, b: a - b * _quotient(a, b), "%", left, right)


def _arithmetic(apply: Callable[[Any, Any], Any], sign: str, left: Any, right: Any) -> Any:
    if type(left) is not type(right) or not is_number(left):
        raise EvaluationError(f"no such overload: {type_name(left)} {sign} {type_name(right)}")
    if isinstance(left, float):
        return apply(left, right)
    if isinstance(left, UInt):
        return UInt(in_uint64(apply(int(left), int(right))))
    return in_int64(apply(left, right))


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _float_quotient(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def negate(value: Any) -> Any:
    """The negative number."""
    if isinstance(value, float):
        return -value
    if type(value) is int:
        return in_int64(-value)
    raise EvaluationError(f"no such overload: -{type_name(value)}")


def contained(run: Evaluation, value: Any, container: Any) -> bool:
    """Whether a list has the element, or a map the key."""
    if isinstance(container, dict):
        return value in container
    if isinstance(container, list):
        return any(equal(value, element, run.toil) for element in container)
    raise EvaluationError(f"no such overload: in {type_name(container)}")


def same(run: Evaluation, left: Any, right: Any) -> bool:
    """Whether both are equal."""
    return equal(left, right, run.toil)


def differ(run: Evaluation, left: Any, right: Any) -> bool:
    """Whether they are not."""
    return not equal(left, right, run.toil)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(left: Any, right: Any) -> bool:
        if not comparable(left, right):
            raise EvaluationError(f"no such overload: {type_name(left)} compared with {type_name(right)}")
        return compare(left, right)

    return check


def compare_amounts(left: Any, right: Any) -> int:
    """-1, 0 or 1 for two quantities or two versions. Raises: EvaluationError."""
    if type(left) is not type(right) or not isinstance(left, Quantity | Semver):
        raise EvaluationError(f"no such overload: {type_name(left)}.compareTo({type_name(right)})")
    return bool(right < left) - bool(left < right)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "==": same,
    "!=": differ,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": contained,
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "-_": negate,
    "!": lambda value: not truth(value),
}
