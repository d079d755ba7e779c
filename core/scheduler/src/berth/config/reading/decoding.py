"""Stage 1: a file's text to the fields that it sets, plugin arguments included.

Where one kind of complaint beats another is upstream's: wrong types before unknown fields, and
wrong types inside arguments before unknown fields anywhere.
"""

from typing import Any

import msgspec

from berth.config.errors import DecodeError
from berth.config.plugin_args import ARGS_TYPES
from berth.config.reading.document import YamlDocument, read_document
from berth.config.reading.envelope import GROUP, identify
from berth.config.reading.schema import KINDS
from berth.config.reading.tree import Object, Value, compact
from berth.config.reading.wire_decoder import Fields, WireDecoder
from berth.config.types import API_VERSION, KIND


class WrittenArgs(msgspec.Struct):
    """Arguments of an in-tree plugin as written: the fields that are set, before defaults."""

    plugin: str
    fields: Fields


class _StrictError(DecodeError):
    """Unknown or repeated fields, and nothing worse."""


def _strict(items: list[str]) -> str:
    return f"strict decoding error: {', '.join(items)}"


def decode(source: bytes | str) -> Fields:
    """Give the fields that a KubeSchedulerConfiguration file sets.

    Entries under plugin_config hold `WrittenArgs` for plugins that have a type for them, the generic
    tree for others, None where there are none.

    Raises:
        DecodeError: the file is no such configuration.
    """
    document = read_document(source)
    kind = identify(document.value, document.text).kind
    assert isinstance(document.value, Object)
    decoder = WireDecoder()
    fields = decoder.read(KINDS[kind], document.value)
    complaints = [*_duplicate_keys(document), *decoder.strict]
    if kind == KIND:
        complaints += _decode_all_args(fields)
    if complaints:
        raise DecodeError(_strict(complaints))
    if kind != KIND:
        raise DecodeError(f"couldn't decode as {KIND}, got {API_VERSION}, Kind={kind}: ")
    return fields


def _duplicate_keys(document: YamlDocument) -> list[str]:
    lines = "".join(f"\n  {duplicate}" for duplicate in document.duplicates)
    return [f"yaml: unmarshal errors:{lines}"] if lines else []


def _decode_all_args(fields: Fields) -> list[str]:
    """Decode the arguments in place; give the strict complaints, one for each entry that has any."""
    complaints: list[str] = []
    for i, profile in enumerate(fields.get("profiles", ())):
        for j, entry in enumerate(profile.get("plugin_config", ())):
            place = f"decoding .profiles[{i}].pluginConfig[{j}]"
            try:
                entry["args"] = _decode_args(entry.get("name", ""), entry.get("args"))
            except _StrictError as error:
                complaints.append(f"{place}: {_strict([str(error)])}")
            except DecodeError as error:
                raise DecodeError(f"{place}: {error}") from None
    return complaints


def _decode_args(plugin: str, args: Value) -> Any:
    if plugin not in ARGS_TYPES:
        return args
    try:
        kind, decoder, fields = _typed_args(plugin, args)
    except DecodeError as error:
        raise DecodeError(f"decoding args for plugin {plugin}: {error}") from None
    if kind != f"{plugin}Args":
        wanted = f"{plugin}Args.{GROUP}"
        raise DecodeError(f"args for plugin {plugin} were not of type {wanted}, got {kind}.{GROUP}")
    if decoder.strict:
        raise _StrictError(f"decoding args for plugin {plugin}: {_strict(decoder.strict)}")
    return WrittenArgs(plugin, fields)


def _typed_args(plugin: str, args: Value) -> tuple[str, WireDecoder, Fields]:
    document = Object() if args is None else args
    kind = identify(document, compact(document), default_kind=f"{plugin}Args").kind
    assert isinstance(document, Object)
    decoder = WireDecoder()
    return kind, decoder, decoder.read(KINDS[kind], document)
