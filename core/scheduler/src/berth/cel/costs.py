"""What functions and operators cost, worked out from their arguments before they are called.

A step that cel-go counts as less than it takes here is also counted as work (berth.cel.metering).

Source: cel-go v0.26 interpreter/runtimecost.go, common/cost.go, ext/sets.go; apiserver
pkg/cel/library/cost.go (Kubernetes v1.36).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from berth.cel.metering import Evaluation
from berth.cel.values import BYTES_FOR_WORK, Quantity, Semver

Charge = Callable[..., None]
"""(run, *arguments): counts a call."""

# Unions would be made anew with each call.
_SIZED: Final = (str, bytes, list, dict)
_AT_ONCE: Final = (Quantity, Semver)

LIST_COST: Final = 10
MAP_COST: Final = 30
# A text in a list takes more room than a character.
TEXT_WORK: Final = 8


def size(value: Any) -> int:
    """The size that costs go by: 1 for what has none."""
    return len(value) if isinstance(value, _SIZED) else 1


def tenth(amount: int) -> int:
    """What it costs to go through a text of that length once."""
    return -(-amount // 10)


def one(run: Evaluation, *arguments: Any) -> None:
    """A step that costs the same whatever it is given."""
    del arguments
    run.spend(1)


def _free(run: Evaluation, *arguments: Any) -> None:
    del run, arguments


def _through_first(run: Evaluation, first: Any, *others: Any) -> None:
    del others
    run.spend(tenth(size(first)))


def _linear(run: Evaluation, first: Any, *others: Any) -> None:
    """One step for cel-go, and as much work as the argument is long."""
    del others
    run.spend(1, size(first))


def _equality(run: Evaluation, left: Any, right: Any) -> None:
    run.spend(1 if isinstance(left, _AT_ONCE) else tenth(min(size(left), size(right))))


def _contains(run: Evaluation, text: Any, part: Any) -> None:
    run.spend(tenth(size(text)) * tenth(size(part)), size(text) // BYTES_FOR_WORK)


def _element(value: Any) -> int:
    return len(value) // 10 if isinstance(value, str | bytes) else 1


def _traversed(run: Evaluation, first: Any, *others: Any) -> None:
    del others
    run.spend(sum(map(_element, first)) if isinstance(first, list) else _element(first), size(first))


def _replaced(run: Evaluation, text: Any, old: Any, new: Any, limit: Any = -1) -> None:
    run.spend(tenth(2 * size(text)))
    times = text.count(old) if limit < 0 else min(limit, size(text) + 1)
    run.toil(size(text) + times * size(new))


def _split(run: Evaluation, text: Any, *others: Any) -> None:
    del others
    run.spend(tenth(2 * size(text)), size(text) * TEXT_WORK)


def _joined(run: Evaluation, parts: Any, separator: Any = "") -> None:
    run.toil(size(parts))
    result = sum(map(size, parts)) + size(separator) * max(size(parts) - 1, 0)
    run.spend(tenth(2 * result))


def _sets(factor: int) -> Charge:
    def charge(run: Evaluation, left: Any, right: Any) -> None:
        pairs = size(left) * size(right) * factor
        run.spend(1 + pairs, pairs)

    return charge


FUNCTION_COSTS: Mapping[str, Charge] = {
    "bytes": _linear,
    "double": _linear,
    "duration": _linear,
    "dyn": _free,
    "quantity": _through_first,
    "isQuantity": _through_first,
    "semver": _through_first,
    "isSemver": _through_first,
    "matches": _free,
    "find": _free,
    "findAll": _free,
    "startsWith": _through_first,
    "endsWith": _through_first,
    "contains": _contains,
    "lowerAscii": _through_first,
    "upperAscii": _through_first,
    "substring": _through_first,
    "trim": _through_first,
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "isSorted": _traversed,
    "sum": _traversed,
    "min": _traversed,
    "max": _traversed,
    "indexOf": _traversed,
    "lastIndexOf": _traversed,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "or": _free,
    "orValue": _free,
}
"""By name, also of methods; what is not here costs one."""


def _put_together(run: Evaluation, left: Any, right: Any, *, typed: bool) -> None:
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        both = len(left) + len(right)
        run.spend(tenth(both) if typed else 1, both)
    elif isinstance(left, list) and isinstance(right, list):
        run.spend(1, len(left) + len(right))
    else:
        run.spend(1)


def _ordered(run: Evaluation, left: Any, right: Any, *, typed: bool) -> None:
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        shorter = min(len(left), len(right))
        run.spend(tenth(shorter) if typed else min(1, shorter), shorter // BYTES_FOR_WORK)
    else:
        run.spend(1)


def _membership(run: Evaluation, value: Any, container: Any, *, typed: bool) -> None:
    if isinstance(container, list):
        run.spend(len(container) if typed else min(1, len(container)), len(container))
    else:
        run.spend(1, size(value) // BYTES_FOR_WORK)


def operator_charge(name: str, *, typed: bool) -> Charge:
    """What an operator costs; `typed` says that a type of its operands is known before it is evaluated.

    Without that, cel-go does not know which overload it will be, and counts one.
    """
    match name:
        case "==" | "!=":
            return _equality
        case "+":
            charge: Callable[..., None] = _put_together
        case "<" | "<=" | ">" | ">=":
            charge = _ordered
        case "in":
            charge = _membership
        case _:
            return one
    return lambda run, left, right: charge(run, left, right, typed=typed)
