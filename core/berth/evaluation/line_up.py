"""A profile's plugins that look at nodes, and on what basis their earlier answers hold."""

from collections.abc import Hashable, Mapping, Sequence

from berth.framework.attempt import Attempt
from berth.framework.interface import (
    Depends,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from berth.framework.runtime import PluginSet
from berth.snapshot.journal import Journal

Positions = list[tuple[str, Journal[str], int]]
"""By plugin: its journal, and where it ended when the plugin was asked."""


class LineUp:
    """All plugins of a profile that have a say in which node a pod gets, each once."""

    def __init__(self, plugins: PluginSet) -> None:
        self.plugins = plugins
        scorers = [plugin for plugin, _ in plugins.score]
        at_work: list[Plugin] = [*plugins.pre_filter, *plugins.filter, *plugins.pre_score, *scorers]
        self.members: Sequence[Plugin] = list({plugin.name: plugin for plugin in at_work}.values())
        self._asked = [p for p in self.members if type(p).basis is not Plugin.basis]
        self._journals = [(p.name, p.changes) for p in self.members if p.changes is not None]
        self._never = {p.name for p in self.members if p not in self._asked and p.depends is Depends.CLUSTER}

    def positions(self) -> Positions:
        """Where the journals of plugins that have one end now."""
        return [(name, journal, journal.end) for name, journal in self._journals]

    def bases(self, attempt: Attempt) -> dict[str, Hashable | None]:
        """The basis of each plugin that is not always on the same one."""
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        return {plugin.name: plugin.basis(state, pod, nodes) for plugin in self._asked}

    def without_basis(self, bases: Mapping[str, Hashable | None]) -> frozenset[str]:
        """The plugins that have to be asked about all nodes for every pod."""
        return frozenset(self._never.union(name for name, basis in bases.items() if basis is None))


class Unsettled:
    """The plugins, at their extension points, that have to be asked about all nodes for every pod."""

    __slots__ = ("filter", "pre_filter", "pre_score", "score")

    def __init__(self, plugins: PluginSet, names: frozenset[str]) -> None:
        self.pre_filter: list[PreFilterPlugin] = [p for p in plugins.pre_filter if p.name in names]
        self.filter: list[FilterPlugin] = [p for p in plugins.filter if p.name in names]
        self.pre_score: list[PreScorePlugin] = [p for p in plugins.pre_score if p.name in names]
        self.score: list[tuple[ScorePlugin, int]] = [(p, w) for p, w in plugins.score if p.name in names]
