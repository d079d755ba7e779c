import pytest

from berth.framework.cluster_event import QueueingHint
from berth.objects.taint import Toleration
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, reasons

KEY = "node.kubernetes.io/unschedulable"
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
OPEN, CORDONED = make_node(), make_node(unschedulable=True)


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param(Toleration(KEY, "Exists"), True, id="by key"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration(KEY, "Equal", ""), True, id="the empty value"),
        pytest.param(Toleration(KEY, "Equal", "true"), False, id="another value"),
        pytest.param(Toleration(KEY, "Exists", "", "NoExecute"), False, id="another effect"),
    ],
)
def test_tolerating_a_cordon(toleration, fits):
    """A pod goes to a cordoned node when it tolerates the taint that stands for it."""
    pod = make_pod(tolerations=(toleration,))

    assert fits == bool(feasible(make_plugin(NodeUnschedulable), pod, [CORDONED]))


def test_filter():
    """Cordoned nodes are turned down, others not."""
    nodes = [make_node("n0", unschedulable=True), make_node("n1")]

    assert {"n0": ("node(s) were unschedulable",)} == reasons(
        make_plugin(NodeUnschedulable), make_pod(), nodes
    )


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, CORDONED, SKIP, id="cordoned node comes"),
        pytest.param(None, OPEN, QUEUE, id="open node comes"),
        pytest.param(CORDONED, CORDONED, SKIP, id="stays cordoned"),
        pytest.param(OPEN, OPEN, SKIP, id="stays open"),
        pytest.param(CORDONED, OPEN, QUEUE, id="uncordoned"),
        pytest.param(OPEN, CORDONED, SKIP, id="cordoned"),
    ],
)
def test_node_hint(old, new, hint):
    """A node helps when it opens."""
    on_node, _ = make_plugin(NodeUnschedulable).events_to_register()

    assert hint == on_node.hint(make_pod(), old, new)


@pytest.mark.parametrize(
    ("changed", "hint"),
    [
        (make_pod("mine", tolerations=(Toleration(KEY, "Exists"),)), QUEUE),
        (make_pod("mine", tolerations=(Toleration("other", "Exists"),)), SKIP),
        (make_pod("other", tolerations=(Toleration(KEY, "Exists"),)), SKIP),
    ],
)
def test_toleration_hint(changed, hint):
    """The pod's own toleration of a cordon helps."""
    _, on_pod = make_plugin(NodeUnschedulable).events_to_register()

    assert hint == on_pod.hint(make_pod("mine"), make_pod("mine"), changed)


def test_wrong_object():
    """An event about something else is an error, which the queue takes for QUEUE."""
    on_node, _ = make_plugin(NodeUnschedulable).events_to_register()

    with pytest.raises(TypeError, match="expected a Node, got a Pod"):
        on_node.hint(make_pod(), None, make_pod())
