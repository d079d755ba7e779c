"""What plain and tagged YAML scalars mean: YAML 1.1's booleans, no dates, no base-60 numbers.

Source: go.yaml.in/yaml/v2 resolve.go (v2.4), which turns documents into JSON upstream.
"""

import base64
import binascii
import math
import re
from typing import TypeAlias

from berth.config.errors import DecodeError

Scalar: TypeAlias = bool | int | float | str | None

TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_POINT_FLOAT = re.compile(r"\.[0-9]+([eE][-+]?[0-9]+)?")
_INTEGERS = (
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)"), 16),
    (re.compile(r"([-+]?)0[bB]([01]+)"), 2),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)"), 8),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)"), 10),
)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt ])")
_MIN, _MAX, _UNSIGNED_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_MAX_DIGITS = 64


def resolve_plain(text: str) -> Scalar:
    """Give the value of an unquoted, untagged scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        return _finite(text) if _POINT_FLOAT.fullmatch(text) else text
    if text[0] in "+-0123456789":
        value = _number(text.replace("_", ""))
        return text if value is None else value
    return text


def _number(text: str) -> int | float | str | None:
    integer = _integer(text)
    if integer is not None:
        return integer
    return _finite(text, otherwise=None) if _FLOAT.fullmatch(text) else None


def _integer(text: str) -> int | None:
    for pattern, base in _INTEGERS:
        match = pattern.fullmatch(text)
        if match and len(match[2].lstrip("0")) <= _MAX_DIGITS:
            value = int(match[2], base) * (-1 if match[1] == "-" else 1)
            fits = _MIN <= value <= _MAX or (not match[1] and value <= _UNSIGNED_MAX)
            return value if fits else None
    return None


def _finite(text: str, otherwise: str | None = "") -> float | str | None:
    """Give the float, or the text itself (None if asked) where it overflows."""
    value = float(text)
    if math.isinf(value):
        return text if otherwise == "" else otherwise
    return value


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Give the value of a scalar with an explicit tag; the tag decides, quotes do not.

    Raises:
        DecodeError: the text is no value of that tag.
    """
    name = tag.removeprefix(TAG)
    if name == "binary":
        return _binary(text)
    if name == "timestamp" and not _TIMESTAMP.match(text):
        raise DecodeError(f"yaml: cannot decode !!str `{text}` as a !!timestamp")
    if name not in {"int", "float", "bool", "null"}:
        return text
    value = resolve_plain(text)
    if name == "float" and isinstance(value, int) and not isinstance(value, bool) and value <= _MAX:
        return float(value)
    if _tag_of(value) != name:
        raise DecodeError(f"yaml: cannot decode !!{_tag_of(value)} `{text}` as a !!{name}")
    return value


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split("\n")), validate=True).decode("utf-8", "replace")
    except binascii.Error:
        raise DecodeError("yaml: !!binary value contains invalid base64 data") from None


def _tag_of(value: Scalar) -> str:
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(value), "null")
