"""A plugin's metadata patch of a pod: a merge patch of labels and annotations, validated key by key.

Source: docs/protocol.md "Limits"; proto/berth/plugin/v1/scheduling.proto PreBindResponse.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from berth.config.out_of_tree.pod_metadata import is_reserved
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.config.rules.names import label_value_problems, qualified_name_problems
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.limits import PATCH_BYTES, PATCH_KEYS

MetadataPatch = dict[str, dict[str, str | None]]
_LONGEST_SHOWN_KEY = 128


def metadata_patch(spec: SidecarSpec, response: Any) -> MetadataPatch | None:
    """The merge patch of labels and annotations that the response asks for, if any.

    Raises: ProtocolError where it is invalid, or changes what the plugin may not change.
    """
    if not response.HasField("metadata_patch"):
        return None
    patch = read_patch(spec.name, response.metadata_patch)
    for key in (key for changes in patch.values() for key in changes):
        if not spec.may_write(key):
            raise ProtocolError(spec.name, f"metadata patch may not write {_refused(key)}")
    return patch


def read_patch(plugin: str, data: bytes) -> MetadataPatch:
    """A patch that the API server would accept.

    Raises: ProtocolError with the first thing that is wrong with it.
    """
    if len(data) > PATCH_BYTES:
        text = f"metadata patch of {len(data)} bytes, at most {PATCH_BYTES} are written"
        raise ProtocolError(plugin, text)
    try:
        patch = msgspec.json.decode(data, type=MetadataPatch)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(plugin, f"metadata patch: {error}") from error
    if unknown := patch.keys() - {"annotations", "labels"}:
        raise ProtocolError(plugin, f"metadata patch may not change {', '.join(sorted(unknown))}")
    if (count := sum(map(len, patch.values()))) > PATCH_KEYS:
        raise ProtocolError(plugin, f"metadata patch of {count} keys, at most {PATCH_KEYS} are written")
    if problem := next(_problems(patch), None):
        raise ProtocolError(plugin, f"metadata patch: {problem}")
    return patch


def _problems(patch: MetadataPatch) -> Iterator[str]:
    for field, changes in patch.items():
        for key, value in changes.items():
            shown = key[:_LONGEST_SHOWN_KEY]
            for problem in qualified_name_problems(key):
                yield f"{shown!r} is no key: {problem}"
            if field == "labels" and value is not None and label_value_problems(value):
                yield f"label {shown!r}: {label_value_problems(value)[0]}"


def _refused(key: str) -> str:
    if is_reserved(key):
        return f"{key}: it belongs to Kubernetes and its controllers"
    return f"{key}: name it under metadataKeys in the plugin's entry"
