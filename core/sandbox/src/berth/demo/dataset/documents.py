"""The text of a Kubernetes file as documents, each with its number; YAML as kubectl takes it, or JSON.

Stricter than a YAML library alone where that would change what the user wrote: a key given twice, a value
that JSON cannot hold. Dates stay the text that they are in the file.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from berth.demo.dataset.csv_rows import read_file
from berth.demo.dataset.errors import BrokenDocumentError, shown

DEEPEST = 100
REPEATED = 100_000
"""So many more values than bytes a document may have by aliases: a few lines of them could make billions."""
_MERGE = "tag:yaml.org,2002:merge"
_FEWER_ALIASES = "write out what the aliases stand for"
_SPACES = re.compile(r"\s*")
_HALF = re.compile("[\ud800-\udfff]")


class Place(NamedTuple):
    """Where a document stands, for messages: its file and its number in it, from 1."""

    file: str
    document: int

    def broken(self, field: str, found: str, remedy: str) -> BrokenDocumentError:
        """Give the error for a field of this document."""
        return BrokenDocumentError(self.file, self.document, field, found, remedy)


def read_documents(path: Path) -> Iterator[tuple[Place, Any]]:
    """Yield the documents of one file, empty ones left out, with values that JSON can hold.

    Raises:
        BrokenDocumentError: text that is no YAML or JSON, a repeated key, a value JSON lacks.
        UnreadableSourceError: the file cannot be read.
    """
    return parse_documents(str(path), read_file(path), is_json=path.suffix == ".json")


def parse_documents(file: str, data: bytes, *, is_json: bool) -> Iterator[tuple[Place, Any]]:
    """Yield the documents of a file's contents, as `read_documents` does.

    Raises:
        BrokenDocumentError: as `read_documents`.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x} in line {line}"
        raise BrokenDocumentError(file, 1, "text", found, "save the file as UTF-8") from None
    parse = _json_documents if is_json else _yaml_documents
    for place, document in parse(file, text):
        if document is not None:
            yield place, _Copy(place, len(data) + REPEATED).of(document, "", 0)


class _RepeatedKeyError(Exception):
    def __init__(self, key: object, line: int | None = None) -> None:
        super().__init__(key)
        self.key, self.line = key, line


class _TooManyAliasesError(Exception):
    """What aliases stand for is more than a document may have."""


class _TextDatesLoader(yaml.CSafeLoader):
    """The safe loader, for which dates are text."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _yaml_documents(file: str, text: str) -> Iterator[tuple[Place, Any]]:
    place = Place(file, 1)
    try:
        loader: Any = _TextDatesLoader(text)  # its stubs leave half of the methods untyped
    except yaml.YAMLError as error:
        raise _no_yaml(place, error) from None
    try:
        while loader.check_node():
            node = loader.get_node()
            _refuse_repeated_keys(node, {}, len(text) + REPEATED)
            yield place, loader.construct_document(node)
            place = Place(file, place.document + 1)
    except _RepeatedKeyError as error:
        found = f"the key {shown(error.key)} a second time, in line {error.line}"
        raise place.broken("text", found, "keep one of the two") from None
    except _TooManyAliasesError:
        raise place.broken("text", "more values by aliases than it may have", _FEWER_ALIASES) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _no_yaml(place, error) from None
    finally:
        loader.dispose()


def _refuse_repeated_keys(node: yaml.Node, pairs: dict[int, int], most: int) -> None:
    """Look at each node once; `pairs` has how many each map comes to with those that are merged into it."""
    if id(node) in pairs or not isinstance(node, yaml.CollectionNode):
        return
    pairs[id(node)] = 0
    if not isinstance(node, yaml.MappingNode):
        for item in node.value:
            _refuse_repeated_keys(item, pairs, most)
        return
    keys: set[tuple[str, str]] = set()
    count = 0
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys:
            raise _RepeatedKeyError(key.value, key.start_mark.line + 1)
        keys.add((key.tag, str(key.value)))
        _refuse_repeated_keys(value, pairs, most)
        merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
        count += sum(pairs.get(id(each), 0) for each in merged) if key.tag == _MERGE else 1
    if count > most:
        raise _TooManyAliasesError
    pairs[id(node)] = count


def _no_yaml(place: Place, error: Exception) -> BrokenDocumentError:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or " ".join(str(error).split())
    where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return place.broken("text", f"no YAML{where} ({what})", "correct the syntax there")


def _json_documents(file: str, text: str) -> Iterator[tuple[Place, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_each_key_once)
    place, at = Place(file, 1), 0
    try:
        # Never a copy of what is left of the text: a file of many documents is read in linear time.
        while (at := _past_spaces(text, at)) < len(text):
            document, at = decoder.raw_decode(text, at)
            yield place, document
            place = Place(file, place.document + 1)
    except _RepeatedKeyError as error:
        raise place.broken(
            "text", f"the key {shown(error.key)} a second time", "keep one of the two"
        ) from None
    except json.JSONDecodeError as error:
        found = f"no JSON in line {error.lineno}, column {error.colno} ({error.msg})"
        raise place.broken("text", found, "correct the syntax there") from None
    except (ValueError, RecursionError) as error:
        raise place.broken("text", f"no JSON ({error})", "correct the syntax") from None


def _past_spaces(text: str, at: int) -> int:
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _RepeatedKeyError(key)
        result[key] = value
    return result


class _Copy:
    """Copies a document's values, so that no two places share one (YAML aliases do), as JSON holds them."""

    def __init__(self, place: Place, most: int) -> None:
        self._place = place
        self._left = most

    def of(self, value: Any, field: str, depth: int) -> Any:
        """The copy. Raises: BrokenDocumentError where there is none in JSON, or it has too many values."""
        place = self._place
        self._left -= 1
        if self._left < 0:
            raise place.broken(field, "more values by aliases than it may have", _FEWER_ALIASES)
        if depth > DEEPEST:
            remedy = "leave the field out, or the anchor that contains itself"
            raise place.broken(field, f"more than {DEEPEST} levels", remedy)
        if isinstance(value, dict):
            return {_key(k, place, field): self.of(v, _join(field, k), depth + 1) for k, v in value.items()}
        if isinstance(value, list):
            return [self.of(item, f"{field}[{i}]", depth + 1) for i, item in enumerate(value)]
        if isinstance(value, str):
            return _text(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        raise place.broken(field or "document", shown(value), "write it as text, in quotes")


def _key(key: object, place: Place, field: str) -> str:
    if not isinstance(key, str):
        raise place.broken(_join(field, key), f"the key {shown(key)}", "put the key in quotes")
    return _text(key)


def _text(written: str) -> str:
    """The text as the API server reads it: U+FFFD for a surrogate without its other half."""
    return (
        written.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if _HALF.search(written)
        else written
    )


def _join(field: str, key: object) -> str:
    return f"{field}.{key}" if field else str(key)
