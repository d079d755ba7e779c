"""An expression's text cut into tokens.

Source: github.com/google/cel-spec doc/langdef.md, "Syntax".
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from berth.cel.errors import SyntaxProblemError
from berth.cel.values import UInt, in_int64, in_uint64

_PATTERN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<int>0[xX][0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU])?
  | (?P<text>(?P<prefix>[rRbB]{0,2})
        (?P<quote>\"\"\"|'''|"|')
        (?P<body>(?:\\.|(?!(?P=quote)).)*?)(?P=quote))
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<escaped>`[^`]+`)
  | (?P<op>&&|\|\||==|!=|<=|>=|[-+*/%!<>()\[\]{},:.?])
    """,
    re.VERBOSE | re.DOTALL,
)

_DIGITS = 20
"""No integer of more digits fits 64 bits."""
_SURROGATES = range(0xD800, 0xE000)
_LAST_CHARACTER = 0x10FFFF

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "?": "?",
    '"': '"',
    "'": "'",
    "`": "`",
}
_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)


class Token(msgspec.Struct, frozen=True):
    """A piece of the text: `kind` is literal, name, op or end; `value` what it stands for."""

    kind: str
    value: Any
    at: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens, with one of kind `end` behind the last.

    Raises: SyntaxProblemError.
    """
    at = 0
    while at < len(text):
        match = _PATTERN.match(text, at)
        if match is None:
            raise SyntaxProblemError(f"unexpected {text[at]!r} at {at}")
        at = match.end()
        if match["space"] is None:
            yield _token(match)
    yield Token("end", "", at)


def _token(match: re.Match[str]) -> Token:
    at = match.start()
    if match["float"] is not None:
        return Token("literal", _double(match["float"]), at)
    if match["int"] is not None:
        return Token("literal", _integer(match["int"], unsigned=bool(match["unsigned"])), at)
    if match["text"] is not None:
        return Token("literal", _string(match["prefix"].lower(), match["body"]), at)
    if match["name"] is not None:
        return Token("name", match["name"], at)
    if match["escaped"] is not None:
        return Token("field", match["escaped"][1:-1], at)
    return Token("op", match["op"], at)


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise SyntaxProblemError("invalid double literal")
    return value


def _integer(text: str, *, unsigned: bool) -> int:
    base = 16 if text[:2] in ("0x", "0X") else 10
    digits = (text[2:] if base == 16 else text).lstrip("0")  # noqa: PLR2004 - hexadecimal
    if len(digits) > _DIGITS:
        raise SyntaxProblemError("invalid uint literal" if unsigned else "invalid int literal")
    value = int(digits or "0", base)
    if unsigned:
        return UInt(in_uint64(value))
    # One more than fits is the magnitude of the smallest integer: the parser negates it, or refuses it.
    return value if value == 2**63 else in_int64(value)


def _string(prefix: str, body: str) -> str | bytes:
    if "b" in prefix:
        encoded = body if "r" in prefix else _unescaped(body)
        return encoded.encode("latin-1" if encoded.isascii() else "utf-8")
    return body if "r" in prefix else _unescaped(body)


def _unescaped(body: str) -> str:
    return _ESCAPE.sub(_escape, body) if "\\" in body else body


def _escape(match: re.Match[str]) -> str:
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if match[group]:
            return _character(int(match[group], base), match[0])
    try:
        return _SIMPLE[match[5]]
    except KeyError:
        raise SyntaxProblemError(f"unknown escape {match[0]!r}") from None


def _character(code: int, escape: str) -> str:
    if code > _LAST_CHARACTER or code in _SURROGATES:
        raise SyntaxProblemError(f"invalid unicode code point {escape!r}")
    return chr(code)
