"""The arguments of profiles: one dataclass gives schema, defaults, checks and the type.

@dataclass(frozen=True)
class Settings:
    label: Annotated[str, Meta(min_length=1, description="the label that names a team")] = "team"

class Hello(Plugin):
    arguments = Settings
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from berth_sdk.errors import ArgumentError

_AT = re.compile(r" - at `\$(.*)`$")


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of arguments."""
    (root,), components = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2]
    for each in components.values():
        if each.get("type") == "object":
            each.setdefault("additionalProperties", False)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **components.pop(name)}
    return {**schema, "$defs": components} if components else schema


def read(kind: type[Any], given: dict[str, Any]) -> Any:
    """Return what was given over the defaults.

    Raises: ArgumentError: with everything that is wrong, each as `path: what is wrong`.
    """
    errors: list[str] = []
    settings = _read(kind, given, "", errors)
    if errors:
        raise ArgumentError(*errors)
    return settings


def _read(kind: type[Any], given: dict[str, Any], path: str, errors: list[str]) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    known = {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}
    errors += [f"{path}{key}: unknown; known are {', '.join(known)}" for key in given if key not in known]
    values = {
        name: _value(hint, given[name], f"{path}{name}", errors)
        for name, hint in known.items()
        if name in given
    }
    missing = [f"{path}{name}: is wanted" for name in _required(kind) if name not in given]
    errors += missing
    return None if errors else kind(**values)


def _required(kind: type[Any]) -> Iterator[str]:
    nothing = dataclasses.MISSING
    for field in dataclasses.fields(kind):
        if field.init and field.default is nothing and field.default_factory is nothing:
            yield field.name


def _value(hint: Any, value: Any, path: str, errors: list[str]) -> Any:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    parts = next((each for each in (plain, *get_args(plain)) if _is_object(each)), None)
    if parts is not None and isinstance(value, dict):
        return _read(parts, value, f"{path}.", errors)
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        text = str(error)
        inside = _AT.search(text)
        choices = get_args(plain) if get_origin(plain) is Literal else ()
        what = f"expected one of {', '.join(map(str, choices))}" if choices else _shortened(text)
        errors.append(
            f"{path}{inside[1] if inside else ''}: {what}, got {msgspec.json.encode(value).decode()}"
        )
        return None


def _is_object(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def _shortened(text: str) -> str:
    text = _AT.sub("", text).replace("`", "").partition(", got")[0]
    return text[:1].lower() + text[1:]
