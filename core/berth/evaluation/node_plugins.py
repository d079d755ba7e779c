"""A profile's plugins that look at nodes, and what their earlier answers rest on."""

from collections.abc import Hashable, Mapping, Sequence

from berth.evaluation.sieve import Placed
from berth.framework.attempt import Attempt
from berth.framework.interface import Depends, Plugin
from berth.framework.runtime import PluginSet
from berth.snapshot.row_journal import RowJournal

Bases = Mapping[str, Hashable | None]
Positions = list[tuple[str, RowJournal, int]]
"""By plugin: its journal, and where it ended when the plugin was asked."""


class Unsettled:
    """The plugins, at their extension points, that have to be asked about all nodes for every pod."""

    __slots__ = ("filter", "pre_filter", "pre_score", "score")

    def __init__(self, plugins: "NodePlugins", names: frozenset[str]) -> None:
        ours = plugins.plugins
        self.pre_filter = [p for p in ours.pre_filter if p.name in names]
        self.filter = [placed for placed in plugins.filters if placed[1].name in names]
        self.pre_score = [p for p in ours.pre_score if p.name in names]
        self.score = [weighed for weighed in ours.score if weighed[0].name in names]


class NodePlugins:
    """All plugins of a profile that have a say in which node a pod gets, each once."""

    def __init__(self, plugins: PluginSet) -> None:
        self.plugins = plugins
        self.filters: Sequence[Placed] = list(enumerate(plugins.filter, 1))
        scorers = [plugin for plugin, _ in plugins.score]
        at_work: list[Plugin] = [*plugins.pre_filter, *plugins.filter, *plugins.pre_score, *scorers]
        self.members: Sequence[Plugin] = list({plugin.name: plugin for plugin in at_work}.values())
        self.based: Sequence[Plugin] = [p for p in self.members if type(p).basis is not Plugin.basis]
        self._never = {p.name for p in self.members if p not in self.based and p.depends is Depends.CLUSTER}

    def positions(self) -> Positions:
        """Where the journals of plugins that have one end now."""
        journals = ((p.name, p.changes) for p in self.members)
        return [(name, journal, journal.end) for name, journal in journals if journal is not None]

    def bases(self, attempt: Attempt) -> dict[str, Hashable | None]:
        """The basis of each plugin that is not always on the same one."""
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        return {plugin.name: plugin.basis(state, pod, nodes) for plugin in self.based}

    def without_basis(self, bases: Bases) -> frozenset[str]:
        """The plugins that have to be asked about all nodes for every pod."""
        return frozenset(self._never.union(name for name, basis in bases.items() if basis is None))
