"""Quantities: `100m`, `1.5Gi`, `3e2`, exact to the nano unit.

Sums are made in nanos and rounded once at the end, as upstream sums quantities before it takes their
`Value()` or `MilliValue()`; both round up.

Source: apimachinery pkg/api/resource (Kubernetes v1.36); spec/plugins.md 0.2.
"""

import re
from functools import lru_cache

MAX_INT64 = 2**63 - 1
NANOS = 10**9
NANOS_PER_MILLI = 10**6

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)\Z")


class InvalidQuantityError(ValueError):
    """A text that is no quantity."""

    def __init__(self, text: object) -> None:
        super().__init__(
            f"{text!r} is not a quantity: write digits with an optional suffix, as in 500m, 2 or 1.5Gi"
        )


@lru_cache(maxsize=65536)
def nanos(text: str | float) -> int:
    """The quantity in nano units, rounded up.

    Raises: InvalidQuantityError where the text is no quantity.
    """
    match = _FORM.match(str(text).strip())
    if match is None:
        raise InvalidQuantityError(text)
    sign, digits, exponent, suffix = match.groups()
    before, _, after = digits.partition(".")
    over, under = _scale(exponent, suffix)
    amount = int(before + after) * over * NANOS
    return ceil_div(-amount if sign == "-" else amount, under * 10 ** len(after))


def _scale(exponent: str | None, suffix: str | None) -> tuple[int, int]:
    """What the digits are multiplied and divided by."""
    if suffix in _BINARY:
        return _BINARY[suffix], 1
    # Amounts end at 64 bits, so a power beyond this says no more, and costs no more than this one.
    power = max(-99, min(99, int(exponent[1:]))) if exponent else _DECIMAL[suffix or ""]
    return (10**power, 1) if power >= 0 else (1, 10**-power)


def ceil_div(numerator: int, denominator: int) -> int:
    """The quotient rounded up."""
    return -(-numerator // denominator)


def whole(amount_nanos: int) -> int:
    """Upstream's `Value()`: whole units, rounded up, at most what 64 bits hold."""
    return min(ceil_div(amount_nanos, NANOS), MAX_INT64)


def milli(amount_nanos: int) -> int:
    """Upstream's `MilliValue()`: thousandths, rounded up, at most what 64 bits hold."""
    return min(ceil_div(amount_nanos, NANOS_PER_MILLI), MAX_INT64)


def as_binary(amount: int) -> str:
    """Whole units as upstream writes them in its binary form: with the largest suffix that leaves no rest."""
    if abs(amount) < 1024:  # noqa: PLR2004 - the first binary suffix
        return str(amount)
    suffix, factor = max(
        (("", 1), *_BINARY.items()), key=lambda item: item[1] if amount % item[1] == 0 else 0
    )
    return f"{amount // factor}{suffix}"
