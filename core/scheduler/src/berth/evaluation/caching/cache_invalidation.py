"""What invalidates a cached evaluation: changed rows, plugins' cache keys, and the node set."""

from collections.abc import Callable, Hashable
from typing import TypeAlias

from berth.evaluation.caching.dirty_rows import ChangedRows, DirtyRows
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.caching.remote_plugin import RemotePlugin
from berth.framework.attempts.attempt import Attempt
from berth.framework.interface import CacheKey, Plugin, VersionedKey
from berth.snapshot.snapshot import Snapshot

Version: TypeAlias = Callable[[Snapshot], Hashable] | None


class CacheInvalidation:
    """Begins with a cycle that runs the plugins on all rows, and tracks changes from then on.

    `uncacheable_names` are the plugins without a cache key (`Plugin.cache_key`) for the pod. A remote plugin
    may have another key once it has answered; any other's must not change while the first cycle runs.
    """

    __slots__ = ("_changed", "_keys", "_plugins", "remote_keys", "uncacheable_names")

    def __init__(self, plugins: NodePlugins, nodes: Snapshot) -> None:
        self.uncacheable_names: frozenset[str] = frozenset()
        self.remote_keys: list[tuple[Plugin, CacheKey]] = []
        self._plugins = plugins
        touched = [plugin.touched for plugin in plugins.members if isinstance(plugin, RemotePlugin)]
        self._changed = ChangedRows(nodes, [nodes.changed_footprints, *touched])
        self._keys: list[tuple[Plugin, CacheKey | None, Version, Hashable]] = []

    def settle(self, attempt: Attempt) -> None:
        """Ask each plugin for its cache key for the pod."""
        keys = [(plugin, self._key(plugin, attempt)) for plugin in self._plugins.keyed]
        without = {plugin.name for plugin, key in keys if key is None}
        self.uncacheable_names = self._plugins.never_cacheable | without
        self._keys = [(plugin, key, *_version(key)) for plugin, key in keys if plugin.in_process]

    def confirm(self, attempt: Attempt) -> bool:
        """Whether the cycle's results hold for further pods: no cache key changed while it ran."""
        if not self._on_same_keys(attempt):
            return False
        for plugin in self._plugins.keyed:
            if isinstance(plugin, RemotePlugin) and plugin.name not in self.uncacheable_names:
                key = self._key(plugin, attempt)
                if key is None:
                    return False
                self.remote_keys.append((plugin, key))
        return True

    def follow(self, attempt: Attempt, dirty: DirtyRows) -> bool:
        """Add the rows that changed since the last cycle to `dirty`; False where all rows are invalid."""
        rows = self._changed.take(attempt.nodes)
        if rows is None or not self._on_same_keys(attempt):
            return False
        if rows.size:
            dirty.add_many(rows, len(attempt.nodes))
        return True

    def _on_same_keys(self, attempt: Attempt) -> bool:
        nodes = attempt.nodes
        for i, (plugin, key, version, at) in enumerate(self._keys):
            if version is not None and version(nodes) == at:
                continue
            now = self._key(plugin, attempt)
            if now != key:
                return False
            self._keys[i] = (plugin, now, *_version(now))
        return True

    def holds(self, attempt: Attempt) -> bool:
        """Whether remote plugins' cache keys are unchanged: new answers may be merged with cached ones."""
        return all(self._key(plugin, attempt) == key for plugin, key in self.remote_keys)

    @staticmethod
    def _key(plugin: Plugin, attempt: Attempt) -> CacheKey | None:
        return plugin.cache_key(attempt.state, attempt.pod, attempt.nodes)


def _version(key: CacheKey | None) -> tuple[Version, Hashable]:
    """What gives the version of the key, if anything does, and the version that it has."""
    return (key.version, key.at) if isinstance(key, VersionedKey) else (None, None)
