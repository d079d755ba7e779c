"""What holds for every in-tree plugin, whatever the cluster."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    Depends,
    FilterPlugin,
    NormalizedBy,
    NormalizeScorePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from berth.objects.pods.pod_features import PodFeature, features_of
from berth.objects.pods.pod_spec import Resources
from berth.plugins.registry import IN_TREE
from berth.snapshot.pod_info import PodInfo
from berth.testing.clusters import cached, table
from berth.testing.handles import make_plugin
from berth.testing.strategies import NODE_NAMES, clusters, pods
from berth.testing.verdicts import raw_scores, scores, verdicts
from tests.suite import examples

FILTERS = [kind for kind in IN_TREE.values() if issubclass(kind, FilterPlugin)]
SCORERS = [kind for kind in IN_TREE.values() if issubclass(kind, ScorePlugin)]
# The share of nodes that have an image is a matter of all nodes.
OF_ONE_NODE = [
    kind for kind in SCORERS if kind.depends is not Depends.CLUSTER and kind.__name__ != "ImageLocality"
]
CONCERNED = [
    kind
    for kind in IN_TREE.values()
    if issubclass(kind, FilterPlugin | ScorePlugin) and make_plugin(kind).concerns is not None
]
OF_OBJECTS = [kind for kind in IN_TREE.values() if kind.depends is Depends.OBJECT]

# A busy machine makes single examples slow; that is no failure of a law.
law = settings(max_examples=examples(50), deadline=None)

placed_pods = st.lists(pods(NODE_NAMES), max_size=4, unique_by=lambda pod: pod.uid)


@pytest.mark.parametrize("kind", [k for k in FILTERS if k.depends is not Depends.CLUSTER])
@law
@given(pod=pods(), nodes=clusters(), placed=placed_pods)
def test_filter_one_node_at_a_time(kind, pod, nodes, placed):
    """The verdicts on all nodes together are the verdicts on each node alone."""
    plugin = make_plugin(kind)
    alone = {}
    for node in nodes:
        alone |= verdicts(plugin, pod, table([node], placed))

    assert alone == verdicts(plugin, pod, table(nodes, placed))


@pytest.mark.parametrize("kind", OF_ONE_NODE)
@law
@given(pod=pods(), nodes=clusters(), placed=placed_pods)
def test_score_one_node_at_a_time(kind, pod, nodes, placed):
    """The raw scores of all nodes together are the scores of each node alone."""
    plugin = make_plugin(kind)
    alone = [raw_scores(plugin, pod, table([node], placed)) for node in nodes]
    together = raw_scores(plugin, pod, table(nodes, placed))

    if together is None:
        assert all(score is None for score in alone)
    else:
        assert [score[0] for score in alone] == together.tolist()


@pytest.mark.parametrize("kind", OF_OBJECTS)
@law
@given(pod=pods(), nodes=clusters(), placed=placed_pods)
def test_pods_on_nodes_do_not_matter(kind, pod, nodes, placed):
    """Plugins that look at nodes' objects alone answer alike for full nodes and for empty ones."""
    plugin, empty, full = make_plugin(kind), table(nodes), table(nodes, placed)

    if isinstance(plugin, FilterPlugin):
        assert verdicts(plugin, pod, empty) == verdicts(plugin, pod, full)
    if isinstance(plugin, ScorePlugin):
        before, after = raw_scores(plugin, pod, empty), raw_scores(plugin, pod, full)
        assert np.array_equal(before, after) if before is not None else after is None


@pytest.mark.parametrize("kind", CONCERNED)
@law
@given(pod=pods(), other=pods(), nodes=clusters(), placed=placed_pods)
def test_a_pod_that_does_not_concern_a_plugin(kind, pod, other, nodes, placed):
    """Asked all the same, the plugin would skip it, leave nothing behind and tell no two such pods apart."""
    plugin, snapshot, state = make_plugin(kind), table(nodes, placed), CycleState()
    pod = without(plugin.concerns, pod)

    if isinstance(plugin, PreFilterPlugin):
        assert plugin.pre_filter(state, pod, snapshot).status.skip
    if isinstance(plugin, PreScorePlugin):
        assert plugin.pre_score(state, pod, snapshot, np.ones(len(nodes), dtype=bool)).skip
    elif isinstance(plugin, ScorePlugin):
        assert not plugin.score(state, pod, snapshot).any()
        assert not isinstance(plugin, NormalizeScorePlugin) or is_left(plugin, state)
    assert not len(state)
    assert plugin.cache_key(state, pod, snapshot) == ()
    if plugin.concerns.isdisjoint(features_of(other.template)):
        assert plugin.sign_pod(other) == plugin.sign_pod(pod)


def is_left(plugin, state):
    """Whether normalising leaves every score as it is."""
    return plugin.normalized_by(state) is NormalizedBy.NOTHING


def without(features, pod):
    """The pod without any of the features."""
    spec = pod.spec
    for feature in features & features_of(pod.template):
        spec = LEFT_OUT[feature](spec)
    return pod.with_spec(spec)


def in_containers(change):
    """A change of a spec that changes each of its containers."""
    return lambda spec: replace(spec, containers=tuple(map(change, spec.containers)))


LEFT_OUT = {
    PodFeature.NODE_AFFINITY: lambda spec: replace(spec, node_selector=None, affinity=None),
    PodFeature.HOST_PORTS: in_containers(lambda container: replace(container, ports=())),
    PodFeature.DEVICES: in_containers(lambda container: replace(container, resources=Resources())),
}


def test_what_most_pods_do_not_concern():
    """Plugins that look at parts of the spec that most pods leave out are asked about the others alone."""
    names = {"NodeAffinity", "NodePorts", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding"}
    names |= {"VolumeZone", "DynamicResources", "NodeDeclaredFeatures"}
    assert names == {kind.__name__ for kind in CONCERNED}


@pytest.mark.parametrize("kind", SCORERS)
@law
@given(pod=pods(), nodes=clusters(), placed=placed_pods)
def test_scores_are_in_range(kind, pod, nodes, placed):
    """Final scores are whole numbers from 0 to 100."""
    plugin = make_plugin(kind)
    final = scores(plugin, pod, nodes, placed)

    assert final is None or all(type(score) is int and 0 <= score <= 100 for score in final.values())


@law
@given(pod=pods(), nodes=clusters(), placed=placed_pods, extra=placed_pods)
def test_removing_what_was_added(pod, nodes, placed, extra):
    """Pods that came and went leave no trace in any verdict or score."""
    extra = [p for p in extra if p.uid not in {q.uid for q in placed}]
    cache, snapshot = cached(nodes, placed)
    before = answers(pod, snapshot)
    for change in (cache.add_pod, cache.remove_pod):
        for other in extra:
            change(other)
        cache.update_snapshot(snapshot)

    assert before == answers(pod, snapshot)


def answers(pod, nodes):
    plugins = {kind.__name__: make_plugin(kind) for kind in IN_TREE.values()}
    found = {name: verdicts(p, pod, nodes) for name, p in plugins.items() if isinstance(p, FilterPlugin)}
    for name, plugin in plugins.items():
        if isinstance(plugin, ScorePlugin):
            raw = raw_scores(plugin, pod, nodes)
            found[name, "raw"] = None if raw is None else raw.tolist()
    return found


def with_a_pod(nodes):
    """The nodes, and a pod on one of them."""
    return st.tuples(st.just(nodes), pods([node.name for node in nodes]))


@pytest.mark.parametrize("kind", [k for k in FILTERS if issubclass(k, PreFilterExtensions)])
@law
@given(pod=pods(), cluster=clusters().flatmap(with_a_pod), placed=placed_pods)
def test_following_a_pod(kind, pod, cluster, placed):
    """A pod counted into a cycle's state, or out of it, gives what a count from the start gives."""
    nodes, other = cluster
    names = {node.name for node in nodes}
    placed = [p for p in placed if p.uid != other.uid and p.node_name in names]
    plugin, info = make_plugin(kind), PodInfo(other)
    without, with_it = table(nodes, placed), table(nodes, [*placed, other])
    for start, end, step in (
        (without, with_it, plugin.add_pod),
        (with_it, without, plugin.remove_pod),
    ):
        state = CycleState()
        if not plugin.pre_filter(state, pod, start).status.ok:
            continue
        twin = state.clone()
        before = plugin.filter(state, pod, start).tolist()
        step(
            twin,
            pod,
            info,
            start.view(slice(start.row_of[other.node_name], start.row_of[other.node_name] + 1)),
        )

        assert counted_anew(plugin, pod, end) == plugin.filter(twin, pod, start).tolist()
        assert before == plugin.filter(state, pod, start).tolist()


def counted_anew(plugin, pod, nodes):
    state = CycleState()
    result = plugin.pre_filter(state, pod, nodes)
    return [0] * len(nodes) if result.status.skip else plugin.filter(state, pod, nodes).tolist()


@law
@given(first=pods(), second=pods(), nodes=clusters(), placed=placed_pods)
def test_equal_signatures_get_equal_answers(first, second, nodes, placed):
    """Two pods that every plugin signs alike are one question."""
    plugins = [make_plugin(kind) for kind in IN_TREE.values() if kind in FILTERS + SCORERS]
    alike = [plugin for plugin in plugins if plugin.sign_pod(first) == plugin.sign_pod(second)]
    cluster = table(nodes, placed)

    for plugin in alike:
        if isinstance(plugin, FilterPlugin):
            assert verdicts(plugin, first, cluster) == verdicts(plugin, second, cluster)
        if isinstance(plugin, ScorePlugin):
            one, other = raw_scores(plugin, first, cluster), raw_scores(plugin, second, cluster)
            assert np.array_equal(one, other) if one is not None else other is None


@law
@given(pod=pods())
def test_signatures_are_keys(pod):
    """A signature can be looked up."""
    signatures = [make_plugin(kind).sign_pod(pod) for kind in FILTERS + SCORERS]

    assert len(FILTERS + SCORERS) == Counter(signatures).total()


@pytest.mark.parametrize("kind", [k for k in SCORERS if issubclass(k, NormalizeScorePlugin)])
@law
@given(pod=pods(), nodes=clusters(), placed=placed_pods)
def test_scores_that_are_left_as_they_are(kind, pod, nodes, placed):
    """Where a plugin says that normalising changes nothing, it changes nothing."""
    plugin, cluster, state = make_plugin(kind), table(nodes, placed), CycleState()
    raw = raw_scores(plugin, pod, cluster, state)

    if raw is not None and is_left(plugin, state):
        assert raw.tolist() == plugin.normalize_score(state, pod, raw).tolist()
