"""Berth's own documents behind a KubeSchedulerConfiguration in its file; kube-scheduler never reads them.

Read by: plugin_list.py (kind PluginList) and shards.py (kind ShardList).
"""

from collections.abc import Iterator

from berth.config.errors import DecodeError
from berth.config.tree import Object, Value
from berth.config.yaml_nodes import documents
from berth.config.yaml_values import Conversion

API_GROUP = "berth.dev"
API_VERSION = f"{API_GROUP}/v1alpha1"


def own_documents(source: bytes | str) -> Iterator[Object]:
    """Yield each later document whose apiVersion is of our group; others may be anything.

    Raises: DecodeError where one of them can't be read, or names a field twice.
    """
    text = source if isinstance(source, str) else source.decode("utf-8", "replace")
    if text.lstrip().startswith("{") or API_GROUP not in text:
        return
    roots = documents(text)
    next(roots, None)
    for root in roots:
        conversion = Conversion()
        value = conversion.document(root)
        if not isinstance(value, Object) or not _is_ours(value):
            continue
        if conversion.duplicates:
            raise DecodeError(conversion.duplicates[0])
        yield value


def _is_ours(value: Object) -> bool:
    version: Value = value.last("apiVersion")
    return isinstance(version, str) and version.startswith(f"{API_GROUP}/")
