"""Kubernetes quantities as exact fractions, and fractions as text."""

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


class UnreadableError(ValueError):
    """A document holds something that this checker cannot make sense of; the text says what."""


@lru_cache(maxsize=8192)
def exactly(text: str) -> Fraction:
    """Give the value of a quantity such as `100m`, `1.5Gi` or `2e3`.

    Raises:
        UnreadableError: the text is no quantity.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UnreadableError(f"{text!r} is no quantity")
    number, exponent, suffix = match.groups()
    if suffix in _BINARY:
        return Fraction(number) * Fraction(1024 ** _BINARY[suffix])
    power = int(exponent or _DECIMAL.get(suffix, 0))
    return Fraction(number) * (Fraction(10**power) if power >= 0 else Fraction(1, 10**-power))


def amounts(quantities: Mapping[str, Any] | None) -> dict[str, Fraction]:
    """Give the values of a resource list; a number counts as its text.

    Raises:
        UnreadableError: one of them is no quantity.
    """
    result = {}
    for name, quantity in (quantities or {}).items():
        try:
            result[name] = exactly(str(quantity))
        except UnreadableError as error:
            raise UnreadableError(f"{name}: {error}") from None
    return result


def as_text(value: Fraction) -> str:
    """Write a value as a plain decimal number."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
