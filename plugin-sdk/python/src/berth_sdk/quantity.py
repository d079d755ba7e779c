"""Kubernetes quantities as exact integers."""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
MAX_EXPONENT_DIGITS = 3
"""With the sign: a number of a billion digits takes the memory that it has."""
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse(quantity: str | float) -> Decimal:
    """Return the exact value.

    Raises: ValueError: the text is not a quantity.
    """
    match = _NUMBER.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"not a quantity: {quantity!r}")
    number, suffix, exponent = match.groups()
    if exponent and len(exponent) > MAX_EXPONENT_DIGITS:
        raise ValueError(f"not a quantity: the exponent of {quantity!r} is too large")
    if suffix in _BINARY:
        return Decimal(number) * (1 << _BINARY[suffix])
    return Decimal(number).scaleb(_DECIMAL[suffix] if suffix else int(exponent or 0))


def whole(quantity: str | float) -> int:
    """Return the value in units, rounded up as Kubernetes does."""
    return int(parse(quantity).to_integral_value(ROUND_CEILING))


def milli(quantity: str | float) -> int:
    """Return the value in thousandths, rounded up."""
    return int(parse(quantity).scaleb(3).to_integral_value(ROUND_CEILING))


@lru_cache(maxsize=8192)  # a cluster's pods use few distinct quantities
def units(resource: str, quantity: str | float) -> int:
    """Return CPU in thousandths of a core and anything else in units, as the scheduler counts."""
    return milli(quantity) if resource == "cpu" else whole(quantity)
