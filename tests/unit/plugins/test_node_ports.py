import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.objects.pods.pod_spec import Container, ContainerPort
from berth.plugins.node_ports import NodePorts
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.verdicts import feasible, pre_filtered, reasons


def port(number, ip="", protocol="TCP"):
    return ContainerPort(number, ip, protocol)


@pytest.mark.parametrize(
    ("used", "wanted", "conflict"),
    [
        (port(8080, "127.0.0.1"), port(8080, "127.0.0.1"), True),
        (port(8080, "127.0.0.1"), port(8080, "127.0.0.2"), False),
        (port(8080, "127.0.0.1", "UDP"), port(8080, "127.0.0.1"), False),
        (port(8001, "0.0.0.0"), port(8001, "127.0.0.1"), True),
        (port(8001, "127.0.0.1"), port(8001, "0.0.0.0"), True),
        (port(8001, "127.0.0.1", "UDP"), port(8001, "0.0.0.0"), False),
        (port(80, "", ""), port(80, "0.0.0.0"), True),
        (port(80, "::"), port(80, "10.0.0.1"), False),
    ],
)
def test_conflicts(used, wanted, conflict):
    """A port is taken for its protocol and address, and the wildcard address stands for all."""
    holder = make_pod("holder", host_ports=[used], node_name="n0")
    pod = make_pod(host_ports=[wanted])

    assert conflict != bool(feasible(make_plugin(NodePorts), pod, [make_node("n0")], [holder]))


def test_reason():
    """A node whose port is taken is turned down, another is not."""
    nodes, holder = [make_node("n0"), make_node("n1")], make_pod("holder", host_ports=[80], node_name="n0")

    assert {"n0": ("node(s) didn't have free ports for the requested pod ports",)} == reasons(
        make_plugin(NodePorts), make_pod(host_ports=[443, 80]), nodes, [holder]
    )


def test_skip():
    """A pod without host ports has nothing to filter; ordinary init containers claim none."""
    init = Container("init", ports=(port(80),))
    plugin, nodes = make_plugin(NodePorts), table([make_node()])

    assert pre_filtered(plugin, CycleState(), make_pod(), nodes).status.skip
    assert pre_filtered(plugin, CycleState(), make_pod(init_containers=(init,)), nodes).status.skip


def test_sidecars_claim_ports():
    """A sidecar's port is taken like a container's."""
    sidecar = Container("mesh", ports=(port(15001),), restart_policy="Always")
    holder = make_pod("holder", init_containers=(sidecar,), node_name="n0")

    assert [] == feasible(make_plugin(NodePorts), make_pod(host_ports=[15001]), [make_node("n0")], [holder])


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(make_pod("gone", host_ports=[80]), QueueingHint.SKIP, id="was on no node"),
        pytest.param(make_pod("gone", node_name="n0"), QueueingHint.SKIP, id="held no port"),
        pytest.param(make_pod("gone", host_ports=[81], node_name="n0"), QueueingHint.SKIP, id="another port"),
        pytest.param(make_pod("gone", host_ports=[80], node_name="n0"), QueueingHint.QUEUE, id="that port"),
        pytest.param(
            make_pod("gone", host_ports=[80], nominated_node_name="n0"), QueueingHint.QUEUE, id="nominated"
        ),
    ],
)
def test_deletion_hint(deleted, hint):
    """A deleted pod helps when it held a port that the waiting one wants."""
    on_pod, on_node = make_plugin(NodePorts).events_to_register()

    assert hint == on_pod.hint(make_pod(host_ports=[80]), deleted, None)
    assert on_node.hint is None
