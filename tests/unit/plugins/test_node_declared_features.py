import pytest
from msgspec.structs import replace

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import ActionType, QueueingHint
from berth.objects.pods.pod_spec import Container, RestartPolicyRule
from berth.plugins.node_declared_features import (
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
    required_features,
)
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, pre_filtered, reasons

RESTARTS = (
    Container(
        "c", restart_policy_rules=(RestartPolicyRule("Restart"), RestartPolicyRule("RestartAllContainers"))
    ),
)
HOSTED = {"host_network": True, "host_users": False}


def declaring(name, *features):
    node = make_node(name)
    return replace(node, status=replace(node.status, declared_features=features))


@pytest.mark.parametrize(
    ("pod", "features"),
    [
        pytest.param(make_pod(), set(), id="a plain pod"),
        pytest.param(make_pod(containers=RESTARTS), {RESTART_ALL_CONTAINERS}, id="restart rules"),
        pytest.param(make_pod(init_containers=RESTARTS), {RESTART_ALL_CONTAINERS}, id="in init containers"),
        pytest.param(
            make_pod(**HOSTED), {USER_NAMESPACES_HOST_NETWORK}, id="user namespaces on the host network"
        ),
        pytest.param(make_pod(host_network=True), set(), id="hostUsers is not said"),
        pytest.param(make_pod(host_users=False), set(), id="no host network"),
    ],
)
def test_required_features(pod, features):
    """A pod's spec says which features it needs."""
    assert features == required_features(pod)


def test_filter():
    """A node has to declare all features that are needed; others that it declares do not matter."""
    nodes = [
        declaring("none"),
        declaring("one", RESTART_ALL_CONTAINERS),
        declaring("both", RESTART_ALL_CONTAINERS, "Other", USER_NAMESPACES_HOST_NETWORK),
    ]
    plugin, pod = make_plugin(NodeDeclaredFeatures), make_pod(containers=RESTARTS, **HOSTED)

    assert ["both"] == feasible(plugin, pod, nodes)
    assert {"none": ("node(s) didn't match Pod's required features",)} == reasons(plugin, pod, nodes[:1])


def test_skip():
    """A pod that needs nothing is not filtered."""
    plugin = make_plugin(NodeDeclaredFeatures)

    assert pre_filtered(plugin, CycleState(), make_pod(), table([make_node()])).status.skip


def test_hints():
    """A new node, another list of features, and other needs of the pod itself are worth a try."""
    on_node, on_pod = make_plugin(NodeDeclaredFeatures).events_to_register()
    pod, needy = make_pod(), make_pod(**HOSTED)

    assert QueueingHint.QUEUE == on_node.hint(pod, None, declaring("n0"))
    assert QueueingHint.QUEUE == on_node.hint(pod, declaring("n0"), declaring("n0", "Other"))
    assert QueueingHint.SKIP == on_node.hint(pod, declaring("n0", "Other"), declaring("n0", "Other"))
    assert QueueingHint.QUEUE == on_pod.hint(pod, pod, needy)
    assert QueueingHint.SKIP == on_pod.hint(pod, needy, needy)
    assert QueueingHint.SKIP == on_pod.hint(make_pod("other"), pod, needy)
    assert ActionType.UPDATE == on_pod.event.action
