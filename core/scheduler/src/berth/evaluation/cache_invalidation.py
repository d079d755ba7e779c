"""What invalidates a cached evaluation: changed rows, plugins' cache keys, and the node set."""

from collections.abc import Hashable

from berth.evaluation.dirty_rows import DirtyRows
from berth.evaluation.node_plugins import NodePlugins, Positions
from berth.framework.attempt import Attempt
from berth.framework.interface import Plugin
from berth.snapshot.snapshot import Snapshot


class CacheInvalidation:
    """Begins with a cycle that runs the plugins on all rows, and tracks changes from then on.

    `uncacheable_names` are the plugins without a cache key (`Plugin.basis`) for the pod.
    """

    __slots__ = (
        "_answering",
        "_bases",
        "_plugins",
        "_position",
        "_positions",
        "_rests_on",
        "_static",
        "uncacheable_names",
    )

    def __init__(self, plugins: NodePlugins, nodes: Snapshot) -> None:
        self.uncacheable_names: frozenset[str] = frozenset()
        self._plugins = plugins
        self._static = nodes.static_generation
        self._position = nodes.changed_footprints.end
        self._positions: Positions = plugins.positions()
        self._bases: dict[str, Hashable | None] = {}
        self._rests_on: list[tuple[Plugin, Hashable | None, Hashable | None]] = []
        self._answering: list[tuple[Plugin, Hashable]] = []

    def settle(self, attempt: Attempt) -> None:
        """Ask each plugin for its cache key for the pod."""
        self._bases = self._plugins.bases(attempt)
        self.uncacheable_names = self._plugins.without_basis(self._bases)
        self._positions = [each for each in self._positions if each[0] not in self.uncacheable_names]

    def confirm(self, attempt: Attempt) -> bool:
        """Whether the cycle's results hold for further pods: no cache key changed while it ran."""
        nodes, bases = attempt.nodes, self._plugins.bases(attempt)
        for plugin in self._plugins.based:
            name, later = plugin.name, plugin.basis_of_answers
            basis = bases[name]
            if not later and basis != self._bases[name]:
                return False
            if later and name not in self.uncacheable_names:
                if basis is None:
                    return False
                self._answering.append((plugin, basis))
            if not later and not plugin.basis_of_pod:
                self._rests_on.append((plugin, plugin.basis_generation(nodes), basis))
        return True

    def follow(self, attempt: Attempt, dirty: DirtyRows) -> bool:
        """Add the rows that changed since the last cycle to `dirty`; False where all rows are invalid."""
        nodes = attempt.nodes
        if nodes.static_generation != self._static or not self._on_same_bases(attempt):
            return False
        journal = nodes.changed_footprints
        if journal.end != self._position:
            rows = journal.since(self._position)
            if rows is None:
                return False
            dirty.add_many(rows, len(nodes))
            self._position = journal.end
        return not self._positions or self._follow_plugins(len(nodes), dirty)

    def _follow_plugins(self, n: int, dirty: DirtyRows) -> bool:
        for i, (name, journal, position) in enumerate(self._positions):
            if journal.end == position:
                continue
            rows = journal.since(position)
            if rows is None:
                return False
            dirty.add_many(rows, n)
            self._positions[i] = name, journal, journal.end
        return True

    def _on_same_bases(self, attempt: Attempt) -> bool:
        nodes = attempt.nodes
        for i, (plugin, generation, basis) in enumerate(self._rests_on):
            now = plugin.basis_generation(nodes)
            if now is None or now != generation:
                if plugin.basis(attempt.state, attempt.pod, nodes) != basis:
                    return False
                self._rests_on[i] = plugin, now, basis
        return True

    def holds(self, attempt: Attempt) -> bool:
        """Whether the sidecars' cache keys are unchanged: then new answers may be merged with cached ones."""
        if not self._answering:
            return True
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        return all(plugin.basis(state, pod, nodes) == basis for plugin, basis in self._answering)
