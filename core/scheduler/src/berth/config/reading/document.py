"""A file's text to the generic tree: JSON where it begins with a brace, YAML everywhere else."""

import json

import msgspec

from berth.config.errors import DecodeError
from berth.config.reading.tree import Number, Object, Value
from berth.config.reading.yaml_nodes import first_document
from berth.config.reading.yaml_values import Conversion

_JSON_BLANKS = " \t\r\n"


class YamlDocument(msgspec.Struct, frozen=True):
    """The first document of a file: its text, its value, and the YAML keys that were set twice."""

    text: str
    value: Value
    duplicates: tuple[str, ...] = ()


def read_document(source: bytes | str) -> YamlDocument:
    """Give the first document of a file.

    Raises:
        DecodeError: the text is broken.
    """
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return YamlDocument(text, _json(text))
    root = first_document(source)
    conversion = Conversion()
    value = None if root is None else conversion.document(root)
    return YamlDocument(text, value, tuple(conversion.duplicates))


def _json(text: str) -> Value:
    try:
        value = json.loads(
            text.strip(_JSON_BLANKS),
            object_pairs_hook=_object,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_reject,
        )
    except RecursionError:
        raise DecodeError("couldn't get version/kind; json parse error: exceeded max depth") from None
    except ValueError as error:
        raise DecodeError(f"couldn't get version/kind; json parse error: {error}") from None
    return _scrubbed(value)


def _object(members: list[tuple[str, Value]]) -> Object:
    return Object([(_scrub(name), value) for name, value in members])


def _reject(word: str) -> Value:
    raise ValueError(f"invalid value {word}")


def _scrubbed(value: Value) -> Value:
    if isinstance(value, str):
        return _scrub(value)
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    if isinstance(value, Object):
        return Object([(name, _scrubbed(member)) for name, member in value])
    return value


def _scrub(text: str) -> str:
    """Replace halves of surrogate pairs, which escapes can spell but no text can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
