"""From a resolved configuration to wired frameworks."""

import pytest

from berth.config import ExtensionPoint, load
from berth.config.errors import BuildError
from berth.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.testing.handles import make_handle
from tests.failures.reporting import reports
from tests.fakes import Binds

INTERFACES = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
}

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 30
profiles:
- schedulerName: first
  percentageOfNodesToScore: 40
  plugins:
    queueSort: {enabled: [{name: PrioritySort}]}
- schedulerName: second
  plugins:
    multiPoint: {disabled: [{name: "*"}]}
    queueSort: {enabled: [{name: PrioritySort}]}
    filter: {enabled: [{name: Mine}]}
    score: {enabled: [{name: Mine, weight: 7}]}
    bind: {enabled: [{name: Other}, {name: DefaultBinder}]}
  pluginConfig: [{name: Mine, args: {size: 3}}]
"""
CATALOGUE = {
    "Mine": frozenset({ExtensionPoint.FILTER, ExtensionPoint.SCORE}),
    "Other": frozenset({ExtensionPoint.BIND}),
}


class Mine(FilterPlugin, ScorePlugin):
    """Stands at two points, does nothing at either."""

    def __init__(self, args, handle):
        self.args, self.handle = args, handle

    def filter(self, state, pod, nodes):
        raise NotImplementedError

    def score(self, state, pod, nodes):
        raise NotImplementedError


def build(text, registry):
    handles = {}

    def handle_for(name):
        return handles.setdefault(name, make_handle())

    return build_frameworks(load(text, out_of_tree=CATALOGUE).profiles, registry, handle_for), handles


@pytest.fixture
def built():
    return build(TWO_PROFILES, {**IN_TREE, "Mine": Mine, "Other": lambda *_: Binds("Other")})


def test_a_framework_for_each_profile_in_order(built):
    frameworks, handles = built

    assert ["first", "second"] == list(frameworks)
    assert handles.keys() == frameworks.keys()


def test_plugins_stand_at_their_points_in_order_with_their_weights(built):
    plugins = built[0]["second"].plugins

    assert ["Mine"] == [plugin.name for plugin in plugins.filter]
    assert [("Mine", 7)] == [(plugin.name, weight) for plugin, weight in plugins.score]
    assert ["Other", "DefaultBinder"] == [plugin.name for plugin in plugins.bind]
    assert [] == plugins.pre_filter
    assert {"PrioritySort", "Mine", "Other", "DefaultBinder"} == set(plugins.by_name)


def test_a_plugin_is_made_once_with_its_arguments_and_its_profile_s_handle(built):
    frameworks, handles = built
    plugins = frameworks["second"].plugins

    assert plugins.filter[0] is plugins.score[0][0]
    assert {"size": 3} == plugins.filter[0].args
    assert handles["second"] is plugins.filter[0].handle


def test_the_profile_s_percentage_goes_before_the_common_one(built):
    assert (40, 30) == tuple(f.percentage_of_nodes_to_score for f in built[0].values())


def test_plugins_listed_at_a_point_serve_it(built):
    """Every in-tree plugin of the default profile is what its points ask for."""
    plugins = built[0]["first"].plugins

    misplaced = [
        (point, plugin.name)
        for point, interface in INTERFACES.items()
        for plugin in getattr(plugins, point)
        if not isinstance(plugin, interface)
    ]
    assert [] == misplaced
    assert all(isinstance(plugin, ScorePlugin) for plugin, _ in plugins.score)


def test_a_plugin_that_refuses_its_arguments_is_named():
    def refuses(args, _handle):
        raise ValueError(f"size {args['size']} is too small")

    with pytest.raises(
        BuildError, match='creating profile for scheduler name second: initializing plugin "Mine": size 3'
    ):
        build(TWO_PROFILES, {**IN_TREE, "Mine": refuses})


@reports("no-implementation", log="`plugin has no implementation and does nothing`, with the plugin")
def test_a_plugin_that_there_is_not_is_logged(caplog):
    """A profile of sidecars that are not made here goes without them."""
    build(TWO_PROFILES, {**IN_TREE, "Other": lambda *_: Binds("Other")})

    assert "plugin has no implementation and does nothing plugin=Mine" in caplog.messages
