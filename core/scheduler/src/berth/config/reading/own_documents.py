"""Berth's own documents behind a KubeSchedulerConfiguration in its file; kube-scheduler never reads them.

Read by: plugin_list.py (kind PluginList) and shards.py (kind ShardList).
"""

from collections.abc import Iterator

from berth.config.errors import DecodeError
from berth.config.reading.tree import Object
from berth.config.reading.yaml_nodes import documents
from berth.config.reading.yaml_values import Conversion

API_GROUP = "berth.dev"
API_VERSION = f"{API_GROUP}/v1alpha1"
PLUGIN_LIST, SHARD_LIST = KINDS = ("PluginList", "ShardList")


def own_document(source: bytes | str, kind: str) -> Object | None:
    """Give the later document of our group that is of this kind; documents of other groups may be anything.

    Raises: DecodeError where a document of our group can't be read, names a field twice, or is of an unknown
        version or kind, and where two are of this kind.
    """
    found = [value for value in _of_our_group(source) if value.last("kind") == kind]
    if len(found) > 1:
        raise DecodeError(f"{len(found)} documents of kind {kind}; put all entries into one")
    return found[0] if found else None


def _of_our_group(source: bytes | str) -> Iterator[Object]:
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    if text.lstrip().startswith("{") or API_GROUP not in text:
        return
    roots = documents(text)
    next(roots, None)
    for root in roots:
        conversion = Conversion()
        value = conversion.document(root)
        if isinstance(value, Object) and _is_of_our_group(value):
            if conversion.duplicates:
                raise DecodeError(conversion.duplicates[0])
            _check_head(value)
            yield value


def _is_of_our_group(value: Object) -> bool:
    version = value.last("apiVersion")
    return isinstance(version, str) and version.startswith(f"{API_GROUP}/")


def _check_head(value: Object) -> None:
    """Refuse what no reader would take: a list whose kind is misspelt must not be passed over."""
    if value.last("apiVersion") != API_VERSION:
        raise DecodeError(f"apiVersion: must be {API_VERSION}")
    if value.last("kind") not in KINDS:
        raise DecodeError(f"kind: must be {' or '.join(KINDS)}")
