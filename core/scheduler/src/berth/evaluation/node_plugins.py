"""The PreFilter to Score plugins of a profile that run for pods with given features, and their cache keys."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import takewhile

from berth.evaluation.filter_accumulator import OrderedFilter
from berth.framework.attempt import Attempt
from berth.framework.interface import Depends, Plugin
from berth.framework.runtime import ProfilePlugins
from berth.objects.pod_features import EVERY_FEATURE, Features
from berth.snapshot.row_journal import RowJournal

Bases = Mapping[str, Hashable | None]
Positions = list[tuple[str, RowJournal, int]]
"""By plugin: its journal, and where it ended when the plugin was asked."""


class UncacheablePlugins:
    """The plugins without a cache key, by extension point: they run on all nodes for every pod."""

    __slots__ = ("filter", "pre_filter", "pre_score", "score")

    def __init__(self, plugins: "NodePlugins", names: frozenset[str]) -> None:
        self.pre_filter = [p for p in plugins.pre_filter if p.name in names]
        self.filter = [placed for placed in plugins.filters if placed[1].name in names]
        self.pre_score = [p for p in plugins.pre_score if p.name in names]
        self.score = [weighed for weighed in plugins.score if weighed[0].name in names]


class NodePlugins:
    """The profile's PreFilter, Filter, PreScore and Score plugins that run for pods with these features.

    Plugins that no feature of the pod concerns (`Plugin.concerns`) are left out, and are in the cycle state's
    skip sets, like plugins that return Skip.
    """

    def __init__(self, plugins: ProfilePlugins, features: Features = EVERY_FEATURE) -> None:
        self.features = features
        self._every_pre_filter = plugins.pre_filter
        self.pre_filter = [p for p in plugins.pre_filter if self._concerned(p)]
        self.filters: Sequence[OrderedFilter] = [
            (place, p) for place, p in enumerate(plugins.filter, 1) if self._concerned(p)
        ]
        self.pre_score = [p for p in plugins.pre_score if self._concerned(p)]
        self.score = [(p, weight) for p, weight in plugins.score if self._concerned(p)]
        self.left_out_of_filter = frozenset(p.name for p in plugins.pre_filter if not self._concerned(p))
        self.left_out_of_score = frozenset(p.name for p in plugins.pre_score if not self._concerned(p))
        filters, scorers = [p for _, p in self.filters], [p for p, _ in self.score]
        at_work: list[Plugin] = [*self.pre_filter, *filters, *self.pre_score, *scorers]
        self.members: Sequence[Plugin] = list({plugin.name: plugin for plugin in at_work}.values())
        self.here = [p for p in self.members if p.in_process]
        self.in_sidecars = [p for p in self.members if not p.in_process]
        self.based: Sequence[Plugin] = [p for p in self.members if type(p).basis is not Plugin.basis]
        self._never = {p.name for p in self.members if p not in self.based and p.depends is Depends.CLUSTER}

    def _concerned(self, plugin: Plugin) -> bool:
        return plugin.concerns is None or not plugin.concerns.isdisjoint(self.features)

    def left_out_before(self, last: str) -> frozenset[str]:
        """The plugins left out of PreFilter that come before the named one, which ended the phase."""
        before = takewhile(lambda name: name != last, (p.name for p in self._every_pre_filter))
        return self.left_out_of_filter.intersection(before)

    def positions(self) -> Positions:
        """The current end of each plugin's journal, of plugins that have one."""
        journals = ((p.name, p.changes) for p in self.members)
        return [(name, journal, journal.end) for name, journal in journals if journal is not None]

    def bases(self, attempt: Attempt) -> dict[str, Hashable | None]:
        """The cache key of each plugin whose key can change."""
        state, pod, nodes = attempt.state, attempt.pod, attempt.nodes
        return {plugin.name: plugin.basis(state, pod, nodes) for plugin in self.based}

    def without_basis(self, bases: Bases) -> frozenset[str]:
        """The uncacheable plugins: those that have to run on all nodes for every pod."""
        return frozenset(self._never.union(name for name, basis in bases.items() if basis is None))
