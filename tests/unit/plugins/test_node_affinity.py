import pytest

from berth.config.plugin_args import NodeAffinityArgs, NodeAffinitySpec
from berth.config.plugin_args import NodeSelector as SelectorSpec
from berth.config.plugin_args import NodeSelectorRequirement as RequirementSpec
from berth.config.plugin_args import NodeSelectorTerm as TermSpec
from berth.config.plugin_args import PreferredSchedulingTerm as WishSpec
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.objects.label_selector import InvalidSelectorError, Requirement
from berth.objects.node_selector import NodeAffinity as Affinity
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from berth.objects.pods.pod_spec import Affinity as PodAffinities
from berth.plugins.node_affinity import NodeAffinity
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, pre_filtered, raw_scores, reasons, scores

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
NODES = [
    make_node("n0", labels={"zone": "a", "gen": "12"}),
    make_node("n1", labels={"zone": "b", "gen": "old"}),
    make_node("n2"),
]
ENFORCED_ZONE_A = NodeAffinityArgs(
    added_affinity=NodeAffinitySpec(
        required_during_scheduling_ignored_during_execution=SelectorSpec(
            node_selector_terms=(
                TermSpec(match_expressions=(RequirementSpec(key="zone", operator="In", values=("a",)),)),
            )
        ),
        preferred_during_scheduling_ignored_during_execution=(
            WishSpec(
                weight=5,
                preference=TermSpec(match_expressions=(RequirementSpec(key="gen", operator="Exists"),)),
            ),
        ),
    )
)


def term(*conditions, fields=()):
    return NodeSelectorTerm(
        tuple(Requirement(*c) for c in conditions), tuple(Requirement(*f) for f in fields)
    )


def named(*names):
    return ("metadata.name", "In", names)


def requiring(*terms, **spec):
    affinity = Affinity(NodeSelector(terms))
    return make_pod(affinity=PodAffinities(node_affinity=affinity), **spec)


def preferring(*wishes):
    affinity = Affinity(None, tuple(PreferredSchedulingTerm(w, t) for w, t in wishes))
    return make_pod(affinity=PodAffinities(node_affinity=affinity))


IN_A = term(("zone", "In", ("a",)))
BROKEN = term(("zone", "In", ()))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), ["n0", "n1", "n2"], id="asks for nothing"),
        pytest.param(make_pod(node_selector={"zone": "a"}), ["n0"], id="selector"),
        pytest.param(make_pod(node_selector={"zone": "a", "disk": "ssd"}), [], id="all labels of a selector"),
        pytest.param(make_pod(node_selector={}), ["n0", "n1", "n2"], id="empty selector"),
        pytest.param(requiring(IN_A), ["n0"], id="In"),
        pytest.param(requiring(term(("zone", "In", ("a", "b")))), ["n0", "n1"], id="In, several values"),
        pytest.param(requiring(term(("zone", "NotIn", ("a",)))), ["n1", "n2"], id="NotIn, key or not"),
        pytest.param(requiring(term(("zone", "Exists"))), ["n0", "n1"], id="Exists"),
        pytest.param(requiring(term(("zone", "DoesNotExist"))), ["n2"], id="DoesNotExist"),
        pytest.param(requiring(term(("gen", "Gt", ("5",)))), ["n0"], id="Gt, text never matches"),
        pytest.param(requiring(term(("gen", "Lt", ("5",)))), [], id="Lt"),
        pytest.param(requiring(IN_A, term(("zone", "DoesNotExist"))), ["n0", "n2"], id="terms are ORed"),
        pytest.param(
            requiring(term(("zone", "Exists"), ("gen", "In", ("old",)))), ["n1"], id="conditions are ANDed"
        ),
        pytest.param(requiring(), [], id="no terms match nothing"),
        pytest.param(requiring(term()), [], id="an empty term matches nothing"),
        pytest.param(requiring(term(), IN_A), ["n0"], id="beside an empty term"),
        pytest.param(requiring(BROKEN, IN_A), ["n0"], id="beside a broken term"),
        pytest.param(requiring(BROKEN), [], id="a broken term"),
        pytest.param(requiring(IN_A, node_selector={"zone": "b"}), [], id="selector and terms"),
        pytest.param(requiring(term(fields=[named("n1")])), ["n1"], id="by name"),
        pytest.param(
            requiring(term(fields=[("metadata.name", "NotIn", ("n1",))])), ["n0", "n2"], id="not by name"
        ),
        pytest.param(requiring(term(("zone", "Exists"), fields=[named("n2")])), [], id="name and label"),
        pytest.param(requiring(term(fields=[("spec.other", "In", ("x",))])), [], id="another field"),
    ],
)
def test_filter(pod, expected):
    """A node fits when it has the selector's labels and meets one of the terms."""
    assert expected == feasible(make_plugin(NodeAffinity), pod, NODES)


@pytest.mark.parametrize(
    ("pod", "names"),
    [
        pytest.param(requiring(term(fields=[named("n1")])), {"n1"}, id="one"),
        pytest.param(
            requiring(term(fields=[named("n1")]), term(fields=[named("n0")])), {"n0", "n1"}, id="either"
        ),
        pytest.param(requiring(term(fields=[named("n1")]), IN_A), None, id="or by label"),
        pytest.param(requiring(term(fields=[named("gone")])), {"gone"}, id="a name of no node"),
        pytest.param(requiring(), None, id="no terms"),
        pytest.param(make_pod(node_selector={"a": "b"}), None, id="selector only"),
    ],
)
def test_narrowing(pod, names):
    """Terms that name nodes narrow the choice, if each term does."""
    result = pre_filtered(make_plugin(NodeAffinity), CycleState(), pod, table(NODES))

    assert result.status.ok
    assert names == result.node_names


def test_names_in_conflict():
    """A term that names two nodes at once leaves none."""
    pod = requiring(term(fields=[named("n0"), named("n1")]))

    assert dict.fromkeys(("n0", "n1", "n2"), ("pod affinity terms conflict",)) == reasons(
        make_plugin(NodeAffinity), pod, NODES
    )


@pytest.mark.parametrize(
    ("pod", "args", "skips"),
    [
        (make_pod(), None, True),
        (preferring((1, IN_A)), None, True),
        (make_pod(node_selector={}), None, False),
        (make_pod(node_selector={"a": "b"}), None, False),
        (requiring(), None, False),
        (make_pod(), ENFORCED_ZONE_A, False),
    ],
)
def test_pre_filter_skip(pod, args, skips):
    """Only a pod of which neither it nor the profile requires anything is skipped."""
    plugin = make_plugin(NodeAffinity, args)

    assert skips == pre_filtered(plugin, CycleState(), pod, table(NODES)).status.skip


def test_reasons_with_added_affinity():
    """The profile's affinity is looked at first, then the pod's own."""
    plugin = make_plugin(NodeAffinity, ENFORCED_ZONE_A)
    enforced = ("node(s) didn't match scheduler-enforced node affinity",)
    own = ("node(s) didn't match Pod's node affinity/selector",)

    assert {"n0": own, "n1": enforced, "n2": enforced} == reasons(
        plugin, make_pod(node_selector={"zone": "b"}), NODES
    )


@pytest.mark.parametrize(
    ("pod", "args", "expected"),
    [
        pytest.param(make_pod(), None, None, id="no preferences"),
        pytest.param(preferring(), None, [0, 0, 0], id="an empty list of them"),
        pytest.param(
            preferring((2, IN_A), (3, term(("gen", "Exists")))), None, [5, 3, 0], id="weights add up"
        ),
        pytest.param(preferring((0, IN_A), (7, term())), None, [0, 0, 0], id="no weight, no terms"),
        pytest.param(make_pod(), ENFORCED_ZONE_A, [5, 5, 0], id="the profile's"),
        pytest.param(preferring((2, IN_A)), ENFORCED_ZONE_A, [7, 5, 0], id="both"),
    ],
)
def test_raw_score(pod, args, expected):
    """A node scores the weights of the preferences that it meets."""
    found = raw_scores(make_plugin(NodeAffinity, args), pod, table(NODES))

    assert expected == (None if found is None else found.tolist())


def test_score():
    """The best node gets 100, the others their share."""
    pod = preferring((2, IN_A), (3, term(("gen", "Exists"))))

    assert {"n0": 100, "n1": 60, "n2": 0} == scores(make_plugin(NodeAffinity), pod, NODES)


def test_broken_preference():
    """A preference that does not parse fails the cycle."""
    status = make_plugin(NodeAffinity).pre_score(CycleState(), preferring((1, BROKEN)), table(NODES), None)

    assert not status.ok
    assert isinstance(status.error, InvalidSelectorError)


A, B = make_node(labels={"zone": "a"}), make_node(labels={"zone": "b"})


@pytest.mark.parametrize(
    ("pod", "args", "old", "new", "hint"),
    [
        pytest.param(requiring(IN_A), None, None, A, QUEUE, id="matching node comes"),
        pytest.param(requiring(IN_A), None, None, B, SKIP, id="another node comes"),
        pytest.param(requiring(IN_A), None, A, A, SKIP, id="matched before"),
        pytest.param(requiring(IN_A), None, B, A, QUEUE, id="matches now"),
        pytest.param(requiring(IN_A), None, A, B, SKIP, id="matches no more"),
        pytest.param(make_pod(), ENFORCED_ZONE_A, None, B, SKIP, id="the profile excludes it"),
        pytest.param(make_pod(), ENFORCED_ZONE_A, None, A, QUEUE, id="the profile allows it"),
        pytest.param(make_pod(), ENFORCED_ZONE_A, B, A, SKIP, id="the profile's change is not seen"),
    ],
)
def test_hint(pod, args, old, new, hint):
    """A node helps when the pod's own affinity comes to match it and the profile allows it."""
    (registration,) = make_plugin(NodeAffinity, args).events_to_register()

    assert hint == registration.hint(pod, old, new)


def test_hint_of_a_broken_term():
    """A term that does not parse is an error, which the queue takes for QUEUE."""
    (registration,) = make_plugin(NodeAffinity).events_to_register()

    with pytest.raises(InvalidSelectorError):
        registration.hint(requiring(BROKEN), None, A)
