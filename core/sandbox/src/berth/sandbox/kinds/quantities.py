"""Quantities in the one form in which the API server writes them back.

Source: staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go, CanonicalizeBytes (v1.36).
"""

import re
from decimal import ROUND_UP, Decimal
from functools import lru_cache
from typing import Any, Final

from berth.objects.quantity import nanos

_FORM = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)([EPTGMKkmun]i?|[eE][+-]?\d+)?")
_LONGEST: Final = 40
_LARGE_EXPONENT: Final = re.compile(r"[eE][+-]?\d{3}")
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO: Final = Decimal("1e-9")
BAD_QUANTITY: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def _is_long(text: str) -> bool:
    """Say whether there are more digits, or larger exponents, than amounts need."""
    return len(text) > _LONGEST or _LARGE_EXPONENT.search(text) is not None


@lru_cache(maxsize=1024)
def value_of(text: str) -> Decimal:
    """Give the value: exact, or as far as 64 bits hold it where the text is long.

    Raises: ValueError when it is not a quantity.
    """
    if _is_long(text):
        return Decimal(nanos(text)).scaleb(-9)
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(BAD_QUANTITY)
    number = Decimal(match[1] + match[2])
    suffix = match[3] or ""
    if suffix in _BINARY:
        return number * Decimal(1024) ** _BINARY[suffix]
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    if suffix[0] in "eE":
        return number.scaleb(int(suffix[1:]))
    raise ValueError(BAD_QUANTITY)


@lru_cache(maxsize=1024)
def canonical(text: str) -> str:
    """Write a quantity as the API server does: `1000m` is `1`, `0.5` is `500m`, `1024Ki` is `1Mi`.

    Long ones stay as they are. Raises: ValueError when it is not a quantity.
    """
    if _is_long(text):
        nanos(text)
        return text
    value = value_of(text)
    suffix = (_FORM.fullmatch(text) or [""] * 4)[3] or ""
    if suffix in _BINARY and abs(value) >= 1024 and value == value.to_integral_value():  # noqa: PLR2004 (one Ki)
        return _binary(int(value))
    rounded = value.quantize(_NANO, rounding=ROUND_UP) if value.as_tuple().exponent < -9 else value  # type: ignore[operator]  # noqa: PLR2004 (nano is the finest)
    if suffix[:1] in ("e", "E") and suffix != "E":
        return _scaled(rounded, {"": 0, **{f"e{power}": power for power in (3, 6, 9, 12, 15, 18)}}, rounded)
    return _scaled(rounded, _DECIMAL, rounded)


def _binary(value: int) -> str:
    power = 0
    while value and value % 1024 == 0 and power < len(_BINARY):
        value //= 1024
        power += 1
    return f"{value}{'' if power == 0 else list(_BINARY)[power - 1]}"


def _scaled(value: Decimal, suffixes: dict[str, int], whole: Decimal) -> str:
    if not whole:
        return "0"
    for suffix, power in sorted(suffixes.items(), key=lambda item: -item[1]):
        scaled = whole.scaleb(-power)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return f"{value:f}"


def canonical_map(quantities: dict[str, Any]) -> None:
    """Rewrite all quantities of a resource list in place; those that are none stay for validation to find."""
    for name, quantity in quantities.items():
        try:
            quantities[name] = canonical(quantity if type(quantity) is str else str(quantity))
        except ValueError:
            continue
