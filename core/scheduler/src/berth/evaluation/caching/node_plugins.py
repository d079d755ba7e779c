"""The PreFilter to Score plugins of a profile that run for pods with given features."""

from collections.abc import Sequence
from itertools import takewhile

from berth.evaluation.points.filter_accumulator import OrderedFilter
from berth.framework.interface import Depends, Plugin
from berth.framework.runtime import ProfilePlugins
from berth.objects.pods.pod_features import EVERY_FEATURE, Features


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
        self.keyed: Sequence[Plugin] = [p for p in self.members if type(p).cache_key is not Plugin.cache_key]
        """The plugins whose cache key can change."""
        self.never_cacheable = frozenset(
            p.name for p in self.members if p not in self.keyed and p.depends is Depends.CLUSTER
        )

    def _concerned(self, plugin: Plugin) -> bool:
        return plugin.concerns is None or not plugin.concerns.isdisjoint(self.features)

    def left_out_before(self, last: str) -> frozenset[str]:
        """The plugins left out of PreFilter that come before the named one, which ended the phase."""
        return self.left_out_of_filter & self.pre_filters_before(last)

    def pre_filters_before(self, last: str) -> frozenset[str]:
        """The profile's PreFilter plugins that come before the named one."""
        return frozenset(takewhile(lambda name: name != last, (p.name for p in self._every_pre_filter)))
