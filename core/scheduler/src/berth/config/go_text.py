"""How Go writes values in messages and in JSON: quoted strings, numbers, booleans, compact JSON.

Source: strconv.Quote, encoding/json (Go 1.26).
"""

import json
import math
import struct
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_JSON_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
# What a flag takes for true and false.
BOOLEANS: Mapping[str, bool] = MappingProxyType(
    {
        **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
        **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
    }
)
_EXPONENT_FROM = 1e21
_EXPONENT_BELOW = 1e-6
_KEY_EXPONENTS = (-4, 6)
_CONTROL, _DELETE, _BMP = 0x20, 0x7F, 0x10000


def quote(text: str) -> str:
    """Give the text in double quotes, as the verb %q prints it."""
    return f'"{"".join(map(_quoted_char, text))}"'


def _quoted_char(char: str) -> str:
    code = ord(char)
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == " " or char.isprintable():
        return char
    if code < _CONTROL or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"


def quote_ascii(text: str) -> str:
    r"""Give the text in double quotes with every other byte than printable ASCII as \xNN."""
    return f'"{"".join(map(_ascii_char, text))}"'


def _ascii_char(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if " " <= char < "\x80":
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "replace"))


def quoted_list(values: Iterable[str]) -> str:
    """Give the texts quoted and joined by a comma and a blank."""
    return ", ".join(map(quote, values))


def float_text(value: float) -> str:
    """Give a finite float as Go's JSON writes it: shortest digits, exponents only at the far ends."""
    if value != 0 and not _EXPONENT_BELOW <= abs(value) < _EXPONENT_FROM:
        return _scientific(value)
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _scientific(value: float) -> str:
    mantissa, _, exponent = repr(value).partition("e")
    sign, digits = exponent[0], exponent[1:].lstrip("0")
    return f"{mantissa}e{sign}{digits}"


def float32(literal: str) -> float:
    """Give the nearest 32-bit float of a decimal literal.

    Raises:
        OverflowError: it lies beyond the largest one.
    """
    wide = float(literal)
    if math.isinf(wide):
        raise OverflowError("beyond 64 bits even")
    rounded: float = struct.unpack("<f", struct.pack("<f", wide))[0]
    return rounded


def float_key(value: float) -> str:
    """Give a float as a YAML key turned into text has it: 32 bits, an exponent from 1e+06 upwards."""
    try:
        shortest = Decimal(repr(float(float32_text(float32(repr(value))))))
    except OverflowError:
        return ".inf" if value > 0 else "-.inf"
    if shortest == 0 or _KEY_EXPONENTS[0] <= shortest.adjusted() < _KEY_EXPONENTS[1]:
        return format(shortest, "f").removesuffix(".0")
    digits = "".join(map(str, shortest.as_tuple().digits)).rstrip("0") or "0"
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{'-' if value < 0 else ''}{mantissa}e{shortest.adjusted():+03d}"


def float32_text(value: float) -> str:
    """Give a 32-bit float by the fewest digits that find it again."""
    shortest = next(text for digits in range(1, 18) if _reads_as(text := f"{value:.{digits}g}", value))
    return float_text(float(shortest))


def _reads_as(literal: str, value: float) -> bool:
    try:
        return float32(literal) == value
    except OverflowError:
        return False


def go_syntax(value: object) -> str:
    """Give a decoded value as Go source, as the verb %#v prints it inside other values."""
    if isinstance(value, Mapping):
        members = (f"{quote(name)}:{go_syntax(item)}" for name, item in sorted(value.items()))
        return f"map[interface {{}}]interface {{}}{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return quote(value) if isinstance(value, str) else json_text(value)


def json_text(value: object) -> str:
    """Give compact JSON as Go writes it; mappings keep their order."""
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{_json_string(name)}:{json_text(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, str):
        return _json_string(value)
    return float_text(value) if isinstance(value, float) else json.dumps(value)


def _json_string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    for char, escape in _JSON_HTML.items():
        quoted = quoted.replace(char, escape)
    return quoted
