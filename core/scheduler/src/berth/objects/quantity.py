"""Quantities: `100m`, `1.5Gi`, `3e2`, exact to the nano unit.

Sums are made in nanos and rounded once at the end, as upstream sums quantities before it takes their
`Value()` or `MilliValue()`; both round up. Amounts end at what 64 bits hold: upstream's arithmetic wraps
around there, or ends, depending on how the amount is written; here it always ends.

Reading a text takes time linear in its length and makes no number of more than a few words, whatever is
written.

Source: apimachinery pkg/api/resource (Kubernetes v1.36).
"""

import re
from collections.abc import Mapping
from functools import lru_cache

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
NANOS = 10**9
NANOS_PER_MILLI = 10**6
MAX_NANOS = MAX_INT64 * NANOS

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
# No two parts of the pattern can take the same character, so that nothing is tried twice.
_FORM = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)\Z"
)
_NANOS_OF = {suffix: factor * NANOS for suffix, factor in _BINARY.items()}
_NANOS_OF |= {suffix: 10 ** (power - _DECIMAL["n"]) for suffix, power in _DECIMAL.items()}
# As many digits as most quantities have at most; what they come to is exact without scaling.
_SHORT = 20
_LONGEST_SHOWN = 64
# Longer texts are read each time: a cache of them would have no bound in bytes.
_LONGEST_KEPT = 32
_KEPT = 16384

# An amount of more digits before the point than this is beyond 64 bits under any suffix.
_MAX_BEFORE = 40
# An amount with its first digit so far behind the point is below a nano unit under any suffix.
_LEAST_BEFORE = -60
# Nano units of the largest binary suffix end 69 digits behind the point: more decide nothing but whether to
# round up.
_BEHIND = 70
_EXPONENT_DIGITS = 10


class InvalidQuantityError(ValueError):
    """A text that is no quantity."""

    def __init__(self, text: object) -> None:
        shown = text[:_LONGEST_SHOWN] if isinstance(text, str) else text
        super().__init__(
            f"{shown!r} is not a quantity: write digits with an optional suffix, as in 500m, 2 or 1.5Gi"
        )


def nanos(text: str | float) -> int:
    """The quantity in nano units, rounded up, at most MAX_NANOS either way.

    Raises: InvalidQuantityError where the text is no quantity.
    """
    if isinstance(text, int):
        return max(-MAX_NANOS, min(MAX_NANOS, text * NANOS))
    if isinstance(text, float):
        text = repr(text)
    return _kept(text) if len(text) <= _LONGEST_KEPT else _read(text)


def _read(text: str) -> int:
    match = _FORM.match(text.strip())
    if match is None or not (match[2] or match[3]):
        raise InvalidQuantityError(text)
    sign, before, behind, exponent_sign, exponent, suffix = match.groups("")
    if not (sign or behind or exponent) and len(before) <= _SHORT:
        return min(int(before) * _NANOS_OF[suffix], MAX_NANOS)
    power = _power(exponent_sign, exponent) if exponent else _DECIMAL.get(suffix, 0)
    amount = _rounded_up(before, behind, power, _BINARY.get(suffix, 1), negative=sign == "-")
    return -amount if sign == "-" else amount


_kept = lru_cache(maxsize=_KEPT)(_read)


def _power(sign: str, digits: str) -> int:
    digits = digits.lstrip("0")
    power = int(digits or "0") if len(digits) <= _EXPONENT_DIGITS else 10**_EXPONENT_DIGITS
    return -power if sign == "-" else power


def _rounded_up(before: str, behind: str, power: int, factor: int, *, negative: bool) -> int:
    """The magnitude in nanos; rounding up takes from that of a negative amount."""
    written = before + behind
    digits = written.lstrip("0")
    if not digits:
        return 0
    # How many of the digits stand before the point; below 0, how many zeros stand right behind it.
    point = len(before) - (len(written) - len(digits)) + power
    if point > _MAX_BEFORE:
        return MAX_NANOS
    if point < _LEAST_BEFORE:
        return 0 if negative else 1
    taken = digits[: point + _BEHIND]
    scaled = int(taken) * 10 ** (point + _BEHIND - len(taken)) if taken else 0
    if not negative and digits[len(taken) :].strip("0"):
        scaled += 1
    amount = scaled * factor * NANOS
    exact = amount // 10**_BEHIND if negative else ceil_div(amount, 10**_BEHIND)
    return min(exact, MAX_NANOS)


def ceil_div(numerator: int, denominator: int) -> int:
    """The quotient rounded up."""
    return -(-numerator // denominator)


def whole(amount_nanos: int) -> int:
    """Upstream's `Value()`: whole units, rounded up, within what 64 bits hold."""
    return saturated(-(-amount_nanos // NANOS))


def milli(amount_nanos: int) -> int:
    """Upstream's `MilliValue()`: thousandths, rounded up, within what 64 bits hold."""
    return saturated(-(-amount_nanos // NANOS_PER_MILLI))


def saturated(amount: int) -> int:
    """The amount, or the end of 64 bits that it is beyond."""
    if MIN_INT64 <= amount <= MAX_INT64:
        return amount
    return MAX_INT64 if amount > 0 else MIN_INT64


def is_binary(text: str | float) -> bool:
    """Whether the quantity is written with a binary suffix."""
    return isinstance(text, str) and text.rstrip().endswith(tuple(_BINARY))


def as_binary(amount_nanos: int) -> str:
    """The amount as upstream writes it in its binary form: with the largest suffix that leaves no rest.

    What is less than the first suffix, or no whole number, is written in the decimal form.
    """
    amount, rest = divmod(amount_nanos, NANOS)
    if rest or abs(amount) < _BINARY["Ki"]:
        return as_decimal(amount_nanos)
    return _with_largest(amount, {"": 1, **_BINARY})


def as_decimal(amount_nanos: int) -> str:
    """The amount as upstream writes it in its decimal form: with the largest suffix that leaves no rest."""
    if not amount_nanos:
        return "0"
    return _with_largest(amount_nanos, {suffix: 10 ** (power + 9) for suffix, power in _DECIMAL.items()})


def _with_largest(amount: int, factors: Mapping[str, int]) -> str:
    suffix = max((each for each in factors if amount % factors[each] == 0), key=factors.__getitem__)
    return f"{amount // factors[suffix]}{suffix}"
