"""The wording of complaints about fields: path, kind of complaint, value, detail.

Source: apimachinery pkg/util/validation/field/errors.go (Kubernetes v1.36).
"""

from collections.abc import Sequence
from typing import Any

from berth.config.duration import Duration
from berth.config.go_text import json_text, quote, quoted_list


class EnumText(str):
    """A text of an enumerated or otherwise named type: messages show it as JSON, not as a Go literal."""

    __slots__ = ()


def invalid(path: str, value: Any, detail: str) -> str:
    """Say that a value breaks a rule."""
    return f"{path}: Invalid value: {shown(value)}: {detail}"


def unsupported(path: str, value: Any, supported: Sequence[str]) -> str:
    """Say that a value is none of the supported ones."""
    return f"{path}: Unsupported value: {shown(value)}: supported values: {quoted_list(supported)}"


def duplicate(path: str, value: Any) -> str:
    """Say that a value was there before."""
    return f"{path}: Duplicate value: {shown(value)}"


def required(path: str, detail: str = "") -> str:
    """Say that a value is missing."""
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def forbidden(path: str, detail: str) -> str:
    """Say that a value must not be given."""
    return f"{path}: Forbidden: {detail}"


def shown(value: Any) -> str:
    """Give a value as messages show it: plain numbers, quoted texts and durations, compact JSON."""
    if isinstance(value, Duration):
        return quote(str(value))
    plain_text = isinstance(value, str) and not isinstance(value, EnumText)
    return quote(value) if plain_text else json_text(value)
