import numpy as np
import pytest

from berth.config.plugin_args import InterPodAffinityArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.framework.mirrors.listers import Listers
from berth.objects.api_object import ObjectMeta
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from berth.objects.workloads import Namespace
from berth.plugins.inter_pod_affinity import InterPodAffinity
from berth.plugins.inter_pod_affinity.scoring import normalized
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import cached, table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import pre_filtered, raw_scores, reasons

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
WEB, DB = {"app": "web"}, {"app": "db"}
NOT_NEAR = ("node(s) didn't match pod affinity rules",)
TOO_NEAR = ("node(s) didn't match pod anti-affinity rules",)
NOT_WANTED = ("node(s) didn't satisfy existing pods anti-affinity rules",)
NODES = [
    make_node("x1", labels={"zone": "x", "host": "x1"}),
    make_node("x2", labels={"zone": "x", "host": "x2"}),
    make_node("y1", labels={"zone": "y", "host": "y1"}),
    make_node("bare"),
]


def term(labels=WEB, key="zone", **more):
    return PodAffinityTerm(LabelSelector(labels), topology_key=key, **more)


def near(*terms, **pod):
    return make_pod(affinity=Affinity(pod_affinity=PodAffinity(terms)), **pod)


def away(*terms, **pod):
    return make_pod(affinity=Affinity(pod_anti_affinity=PodAffinity(terms)), **pod)


def preferring(near=(), away=(), **pod):
    sides = (PodAffinity((), tuple(WeightedPodAffinityTerm(w, t) for w, t in side)) for side in (near, away))
    return make_pod(affinity=Affinity(None, *sides), **pod)


def on(node_name, name="placed", labels=WEB, **pod):
    return make_pod(name, labels=labels, node_name=node_name, **pod)


def everywhere_but(*fits, reason=NOT_NEAR):
    return {node.name: reason for node in NODES if node.name not in fits}


@pytest.mark.parametrize(
    ("pod", "placed", "expected"),
    [
        pytest.param(near(term()), [on("x1")], everywhere_but("x1", "x2"), id="in its domain"),
        pytest.param(near(term()), [on("bare")], everywhere_but(), id="a domain needs the label"),
        pytest.param(near(term()), [], everywhere_but(), id="no pod there"),
        pytest.param(near(term(), labels=WEB), [], {"bare": NOT_NEAR}, id="the first of a series"),
        pytest.param(near(term(), labels=WEB), [on("y1")], everywhere_but("y1"), id="not the first"),
        pytest.param(near(term()), [on("x1", namespace="other")], everywhere_but(), id="another namespace"),
        pytest.param(
            near(term(namespaces=("other",))),
            [on("x1", namespace="other")],
            everywhere_but("x1", "x2"),
            id="a listed namespace",
        ),
        pytest.param(
            near(term(), term(DB)),
            [on("x1"), on("x2", "db", DB)],
            everywhere_but(),
            id="one pod has to meet all terms",
        ),
        pytest.param(away(term()), [on("x1")], {"x1": TOO_NEAR, "x2": TOO_NEAR}, id="anti-affinity"),
        pytest.param(away(term(key="host")), [on("x1")], {"x1": TOO_NEAR}, id="on the same host"),
        pytest.param(away(term(), labels=WEB), [], {}, id="not in its own way"),
        pytest.param(
            make_pod(labels=WEB),
            [away(term(), name="old", node_name="y1")],
            {"y1": NOT_WANTED},
            id="others' anti-affinity",
        ),
        pytest.param(make_pod(labels=DB), [away(term(), name="old", node_name="y1")], {}, id="of other pods"),
        pytest.param(
            make_pod(labels=WEB), [away(term(), name="old", node_name="bare")], {}, id="outside any domain"
        ),
    ],
)
def test_filter(pod, placed, expected):
    """Required terms of both sides hold within the domains of their keys."""
    assert expected == reasons(make_plugin(InterPodAffinity), pod, NODES, placed)


def namespaces(**labels):
    found = Listers()
    for name, value in labels.items():
        found.namespaces.put(Namespace(ObjectMeta(name, labels={"team": value} if value else {})))
    return found


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        pytest.param(LabelSelector({"team": "a"}), True, id="selected by label"),
        pytest.param(LabelSelector({"team": "b"}), False, id="not selected"),
        pytest.param(LabelSelector(), True, id="every namespace"),
        pytest.param(
            LabelSelector({}, (Requirement("team", "NotIn", ("a",)),)),
            False,
            id="one that matches no labels does not mean every namespace",
        ),
    ],
)
def test_namespace_selector(selector, meant):
    """Terms reach into the namespaces that their selector picks."""
    plugin = make_plugin(InterPodAffinity, listers=namespaces(other="a", default=""))
    found = reasons(plugin, near(term(namespace_selector=selector)), NODES, [on("x1", namespace="other")])

    assert (everywhere_but("x1", "x2") if meant else everywhere_but()) == found


def test_skip():
    """A pod without required terms that no pod avoids has nothing to filter."""
    plugin = make_plugin(InterPodAffinity)
    pod = preferring(near=[(1, term())], labels=WEB)

    assert pre_filtered(plugin, CycleState(), pod, table(NODES, [on("x1")])).status.skip
    avoided = table(NODES, [away(term(), name="old", node_name="y1")])
    assert pre_filtered(plugin, CycleState(), pod, avoided).status.ok


def test_broken_term():
    """A selector that does not parse turns the pod down for good, and says in which list it stands."""
    broken = PodAffinityTerm(LabelSelector({}, (Requirement("a", "Near", ()),)), topology_key="zone")
    status = pre_filtered(make_plugin(InterPodAffinity), CycleState(), away(broken), table(NODES)).status

    assert not status.ok
    assert 'parsing pod: requiredAntiAffinityTerms: "Near" is not a valid label selector operator' == (
        status.message
    )


@pytest.mark.parametrize(
    ("pod", "placed", "args", "expected"),
    [
        pytest.param(make_pod(), [on("x1")], {}, None, id="nothing to add up"),
        pytest.param(preferring(near=[(3, term())]), [on("x1"), on("x2", "b")], {}, [6, 6, 0, 0], id="near"),
        pytest.param(preferring(away=[(3, term())]), [on("x1")], {}, [-3, -3, 0, 0], id="away"),
        pytest.param(
            preferring(near=[(3, term())], away=[(3, term())]), [on("x1")], {}, [0, 0, 0, 0], id="cancels out"
        ),
        pytest.param(
            make_pod(labels=WEB),
            [preferring(near=[(5, term())], name="o", node_name="y1")],
            {},
            [0, 0, 5, 0],
            id="others prefer it",
        ),
        pytest.param(
            make_pod(labels=WEB),
            [preferring(away=[(5, term())], name="o", node_name="y1")],
            {},
            [0, 0, -5, 0],
            id="others avoid it",
        ),
        pytest.param(
            make_pod(labels=WEB),
            [near(term(), name="o", node_name="y1")],
            {},
            [0, 0, 1, 0],
            id="others require it",
        ),
        pytest.param(
            make_pod(labels=WEB),
            [near(term(), name="o", node_name="y1")],
            {"hard_pod_affinity_weight": 0},
            None,
            id="which may weigh nothing",
        ),
        pytest.param(
            make_pod(labels=WEB),
            [preferring(near=[(5, term())], name="o", node_name="y1")],
            {"ignore_preferred_terms_of_existing_pods": True},
            None,
            id="others are ignored",
        ),
    ],
)
def test_raw_score(pod, placed, args, expected):
    """A node scores the weights of what is in its domains, wanted minus avoided."""
    plugin = make_plugin(InterPodAffinity, InterPodAffinityArgs(**args))
    found = raw_scores(plugin, pod, table(NODES, placed))

    assert expected == (None if found is None else found.tolist())


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([-5, 0, 10], [0, 33, 100]),
        ([0, 29, 50], [0, 57, 100]),
        ([0, 57, 100], [0, 56, 100]),
        ([5, 5], [0, 0]),
        ([], []),
    ],
)
def test_normalize(raw, expected):
    """Scores are stretched in floating point, the quotient first, and cut."""
    assert expected == normalized(np.array(raw, dtype=np.int64)).tolist()


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        pytest.param(near(term()), None, on("x1"), QUEUE, id="wanted pod comes"),
        pytest.param(near(term(), term(DB)), None, on("x1"), SKIP, id="meets one of two terms"),
        pytest.param(near(term()), None, make_pod("o", labels=WEB), SKIP, id="a waiting one"),
        pytest.param(near(term()), on("x1", labels=DB), on("x1"), QUEUE, id="becomes wanted"),
        pytest.param(near(term()), on("x1"), on("x1", labels=DB), SKIP, id="is wanted no more"),
        pytest.param(away(term()), on("x1"), on("x1", labels=DB), QUEUE, id="is in the way no more"),
        pytest.param(away(term()), on("x1"), None, QUEUE, id="goes out of the way"),
        pytest.param(away(term()), on("x1", labels=DB), None, SKIP, id="was not in the way"),
        pytest.param(
            make_pod(labels=WEB), away(term(), name="o", node_name="x1"), None, QUEUE, id="avoids no more"
        ),
        pytest.param(near(term()), near(term()), near(term()), QUEUE, id="the pod itself"),
    ],
)
def test_pod_hint(pod, old, new, hint):
    """A pod helps when it comes to be wanted, or is in the way no more."""
    on_pod, *_ = make_plugin(InterPodAffinity).events_to_register()

    assert hint == on_pod.hint(pod, old, new)


X, Y, BARE = NODES[0], NODES[2], NODES[3]


@pytest.mark.parametrize(
    ("pod", "old", "new", "hint"),
    [
        (near(term()), None, X, QUEUE),
        (near(term()), None, BARE, SKIP),
        (near(term()), BARE, X, QUEUE),
        (near(term()), X, Y, QUEUE),
        (near(term()), X, BARE, SKIP),
        (away(term()), None, BARE, QUEUE),
        (away(term()), X, BARE, QUEUE),
        (away(term()), X, Y, QUEUE),
        (away(term()), BARE, X, SKIP),
        (away(term()), X, X, SKIP),
        (make_pod(), None, X, SKIP),
    ],
)
def test_node_hint(pod, old, new, hint):
    """A node helps when it enters a domain that is needed, or leaves one that is avoided."""
    _, on_node, *_ = make_plugin(InterPodAffinity).events_to_register()

    assert hint == on_node.hint(pod, old, new)


def basis_beside(*placed, pod=None):
    cache, nodes = cached(NODES, placed)
    plugin = make_plugin(InterPodAffinity, InterPodAffinityArgs())
    return plugin, cache, nodes, lambda: plugin.cache_key(CycleState(), pod or make_pod(labels=WEB), nodes)


@pytest.mark.parametrize(
    ("coming", "stays"),
    [
        pytest.param(on("y1", "new"), True, id="a pod without terms"),
        pytest.param(away(term(DB), name="new", node_name="y1"), True, id="terms that mean others"),
        pytest.param(away(term(), name="new", node_name="y1"), False, id="another holder of the term"),
        pytest.param(near(term(key="host"), name="new", node_name="y1"), False, id="another term"),
    ],
)
def test_answers_rest_on_who_holds_the_terms_that_mean_the_pod(coming, stays):
    _, cache, nodes, basis = basis_beside(away(term(), name="placed", node_name="x1"))
    before = basis()
    cache.add_pod(coming)
    cache.update_snapshot(nodes)

    assert stays == (basis() == before)


def test_a_holder_that_went_and_came_again_is_another_basis():
    held = away(term(), name="placed", node_name="x1")
    _, cache, nodes, basis = basis_beside(held)
    before = basis()
    cache.remove_pod(held)
    cache.add_pod(away(term(), name="placed", node_name="y1"))
    cache.update_snapshot(nodes)

    assert basis() != before


def test_a_pod_with_terms_has_no_basis():
    *_, basis = basis_beside(pod=near(term()))

    assert basis() is None
