import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.cluster_event import QueueingHint
from berth.framework.status import Code
from berth.objects.taint import Taint, Toleration
from berth.plugins.taint_toleration import TaintToleration
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, scores, verdicts

GPU = Taint("gpu", "yes", "NoSchedule")
DRAINED = Taint("drained", "", "NoExecute")
SPOT = Taint("spot", "yes", "PreferNoSchedule")
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


@pytest.mark.parametrize(
    ("taints", "tolerations", "fits"),
    [
        pytest.param((), (), True, id="no taints"),
        pytest.param((GPU,), (), False, id="hard taint, not tolerated"),
        pytest.param((DRAINED,), (), False, id="a NoExecute taint counts as well"),
        pytest.param((GPU,), (Toleration("gpu", "Exists"),), True, id="tolerated by key"),
        pytest.param((GPU,), (Toleration("gpu", "Equal", "yes", "NoSchedule"),), True, id="exactly"),
        pytest.param((GPU,), (Toleration("gpu", "", "yes"),), True, id="no operator means Equal"),
        pytest.param((GPU,), (Toleration("gpu", "Equal", "no"),), False, id="another value"),
        pytest.param((GPU,), (Toleration("gpu", "Exists", "", "NoExecute"),), False, id="another effect"),
        pytest.param((GPU, DRAINED), (Toleration("", "Exists"),), True, id="tolerates everything"),
        pytest.param((GPU, DRAINED), (Toleration("gpu", "Exists"),), False, id="one of two is left"),
        pytest.param((GPU,), (Toleration("gpu", "Gt", "1"),), False, id="comparisons are off"),
        pytest.param((SPOT,), (), True, id="soft taints never filter"),
    ],
)
def test_filter(taints, tolerations, fits):
    """A node is turned down exactly when one of its hard taints is left untolerated."""
    pod, node = make_pod(tolerations=tolerations), make_node("n0", taints=taints)

    assert fits == ("n0" in feasible(make_plugin(TaintToleration), pod, [node]))


def test_comparisons_behind_their_gate():
    """With the gate on, a toleration may compare the taint's value as a number."""
    pod = make_pod(tolerations=(Toleration("level", "Gt", "5"),))
    nodes = [make_node(f"n{v}", taints=[Taint("level", str(v), "NoSchedule")]) for v in (5, 6)]
    plugin = make_plugin(TaintToleration, gates={"TaintTolerationComparisonOperators": True})

    assert ["n6"] == feasible(plugin, pod, nodes)


EFFECTS = ("", "NoSchedule", "NoExecute")
VALUES = ("", "-3", "2", "10", "07", "x", "9223372036854775808")
GATED = {"TaintTolerationComparisonOperators": True}


@given(
    st.lists(st.builds(Taint, st.sampled_from("kl"), st.sampled_from(VALUES), st.sampled_from(EFFECTS[1:]))),
    st.lists(
        st.builds(
            Toleration,
            st.sampled_from(("", "k", "l")),
            st.sampled_from(("", "Equal", "Exists", "Lt", "Gt")),
            st.sampled_from(VALUES),
            st.sampled_from(EFFECTS),
        )
    ),
    st.booleans(),
)
def test_each_taint_is_covered_by_some_toleration(taints, tolerations, gate):
    """Though taints are not compared with each of them."""
    pod, node = make_pod(tolerations=tuple(tolerations)), make_node("n0", taints=taints)
    plugin = make_plugin(TaintToleration, gates=GATED if gate else {})
    covered = (any(t.tolerates(taint, comparisons=gate) for t in tolerations) for taint in taints)

    assert all(covered) == ("n0" in feasible(plugin, pod, [node]))


def test_reason():
    """The reason does not name the taint, and no preemption lifts it."""
    status = verdicts(make_plugin(TaintToleration), make_pod(), table([make_node(taints=[GPU])]))["n0"]

    assert (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",)) == (
        status.code,
        status.reasons,
    )


@pytest.mark.parametrize(
    ("counts", "expected"), [((0, 0), (100, 100)), ((0, 1), (100, 0)), ((0, 1, 2), (100, 50, 0))]
)
def test_score(counts, expected):
    """The fewer soft taints are left untolerated, the better."""
    nodes = [
        make_node(f"n{i}", taints=[Taint(f"soft{j}", "", "PreferNoSchedule") for j in range(count)])
        for i, count in enumerate(counts)
    ]

    assert list(expected) == list(scores(make_plugin(TaintToleration), make_pod(), nodes).values())


def test_hard_toleration_does_not_cover_a_soft_taint():
    """A toleration of NoSchedule leaves the soft taint of that key standing."""
    nodes = [make_node("n0", taints=[SPOT]), make_node("n1")]
    pod = make_pod(tolerations=(Toleration("spot", "Exists", "", "NoSchedule"),))

    assert {"n0": 0, "n1": 100} == scores(make_plugin(TaintToleration), pod, nodes)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, make_node(), QUEUE, id="node without taints comes"),
        pytest.param(None, make_node(taints=[GPU]), SKIP, id="tainted node comes"),
        pytest.param(make_node(taints=[GPU]), make_node(taints=[GPU, SPOT]), SKIP, id="taint stays"),
        pytest.param(make_node(taints=[GPU]), make_node(), QUEUE, id="taint goes"),
        pytest.param(make_node(), make_node(labels={"a": "b"}), SKIP, id="never was in the way"),
    ],
)
def test_node_hint(old, new, hint):
    """A node helps when nothing keeps the pod away any more, and something did."""
    on_node, _ = make_plugin(TaintToleration).events_to_register()

    assert hint == on_node.hint(make_pod(), old, new)


def test_toleration_hint():
    """Only the pod's own new tolerations help."""
    _, on_pod = make_plugin(TaintToleration).events_to_register()
    pod = make_pod("mine")

    assert QUEUE == on_pod.hint(pod, pod, pod)
    assert SKIP == on_pod.hint(pod, make_pod("other"), make_pod("other"))
