"""The values of flags: text to typed value, with Go's reasons where it is none.

Source: github.com/spf13/pflag, strconv (Go 1.26).
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from berth.config.duration import parse_duration
from berth.config.flags.flag_table import Flag, FlagKind
from berth.config.flags.reported_version import parse_version
from berth.config.go_text import BOOLEANS, float32, quote

_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_C_OCTAL = re.compile(r"^([-+]?)0([0-7]+)$")


def parse_value(flag: Flag, text: str) -> Any:
    """Give the value that a text stands for.

    Raises:
        ValueError: with the reason.
    """
    value = _PARSERS[flag.kind](text)
    if flag.choices and value not in flag.choices:
        raise ValueError(f"must be one of {', '.join(flag.choices)}")
    return value


def _bool(text: str) -> bool:
    if text not in BOOLEANS:
        raise ValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")
    return BOOLEANS[text]


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
        value = int(_C_OCTAL.sub(r"\g<1>0o\2", text), 0)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
        return value

    return parse


def _float(text: str) -> float:
    if not _FLOAT.fullmatch(text):
        raise ValueError(f"strconv.ParseFloat: parsing {quote(text)}: invalid syntax")
    try:
        return float32(text)
    except OverflowError:
        raise ValueError(f"strconv.ParseFloat: parsing {quote(text)}: value out of range") from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f"failed to parse IP: {quote(text)}") from None


def _strings(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


_PARSERS: Mapping[FlagKind, Callable[[str], Any]] = MappingProxyType(
    {
        FlagKind.BOOL: _bool,
        FlagKind.INT: _integer(64),
        FlagKind.INT32: _integer(32),
        FlagKind.FLOAT32: _float,
        FlagKind.DURATION: parse_duration,
        FlagKind.STRING: str,
        FlagKind.STRINGS: _strings,
        FlagKind.IP: _address,
        FlagKind.VERSION: parse_version,
    }
)
