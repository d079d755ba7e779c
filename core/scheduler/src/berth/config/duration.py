"""Durations in Go's notation: 1h30m0s, 1.5s, 500ms.

Source: time.ParseDuration and Duration.String (Go 1.26).
"""

import re

from berth.config.go_text import quote_ascii

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_SECOND = _UNITS["s"]
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_LIMIT = 1 << 63
_DIGITS = 18  # all numbers of so many digits fit 64 bits


class Duration(int):
    """A span of time in nanoseconds that prints as Go prints it."""

    __slots__ = ()

    @classmethod
    def of_seconds(cls, seconds: float) -> "Duration":
        """Give the duration of so many seconds."""
        return cls(round(seconds * _SECOND))

    @property
    def seconds(self) -> float:
        """The span in seconds."""
        return self / _SECOND

    def __str__(self) -> str:
        sign = "-" if self < 0 else ""
        return sign + _magnitude(abs(int(self)))

    __repr__ = __str__


def _magnitude(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < _SECOND:
        unit = next(name for name in ("ms", "\u00b5s", "ns") if nanoseconds >= _UNITS[name])
        return _decimal(nanoseconds, _UNITS[unit]) + unit
    minutes, rest = divmod(nanoseconds, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    large = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{large}{_decimal(rest, _SECOND)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = len(str(unit)) - 1
    fraction = str(rest).zfill(digits).rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)


def parse_duration(text: str) -> Duration:
    """Read a duration: an optional sign, then numbers with units, or a bare 0.

    Raises:
        ValueError: with Go's wording.
    """
    body = text[1:] if text[:1] in {"-", "+"} else text
    if body == "0":
        return Duration(0)
    if not body:
        raise ValueError(f"time: invalid duration {quote_ascii(text)}")
    total = _total(body, text)
    negative = text[0] == "-"
    if total > _LIMIT or (total == _LIMIT and not negative):
        raise ValueError(f"time: invalid duration {quote_ascii(text)}")
    return Duration(-total if negative else total)


def _total(body: str, text: str) -> int:
    total = position = 0
    while position < len(body):
        term = _TERM.match(body, position)
        assert term is not None, "the pattern matches the empty string"
        total += _term(term, text)
        if total > _LIMIT:
            raise ValueError(f"time: invalid duration {quote_ascii(text)}")
        position = term.end()
    return total


def _term(term: re.Match[str], text: str) -> int:
    whole, fraction, unit = term[1], term[2] or "", term[3]
    if not whole and not fraction:
        raise ValueError(f"time: invalid duration {quote_ascii(text)}")
    if not unit:
        raise ValueError(f"time: missing unit in duration {quote_ascii(text)}")
    if unit not in _UNITS:
        raise ValueError(f"time: unknown unit {quote_ascii(unit)} in duration {quote_ascii(text)}")
    if len(whole.lstrip("0")) > _DIGITS:
        raise ValueError(f"time: invalid duration {quote_ascii(text)}")
    digits = fraction[:_DIGITS]
    # In floating point, as upstream: the last nanosecond must agree.
    part = int(int(digits or "0") * (_UNITS[unit] / 10 ** len(digits)))
    return int(whole or "0") * _UNITS[unit] + part
