"""Host ports."""

import pytest

from berth.objects.pods.host_ports import HostPort, HostPorts, host_ports
from berth.objects.pods.pod_spec import Container, ContainerPort
from berth.testing.builders import make_pod

ANY = "0.0.0.0"


@pytest.mark.parametrize(
    ("wanted", "used", "conflict"),
    [
        ((ANY, "TCP", 80), (ANY, "TCP", 80), True),
        ((ANY, "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), (ANY, "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        ((ANY, "TCP", 80), (ANY, "UDP", 80), False),
        ((ANY, "TCP", 80), (ANY, "TCP", 81), False),
        (("::", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
    ],
)
def test_conflicts(wanted, used, conflict):
    assert conflict is bool(HostPorts([HostPort(*used)]).conflicting(HostPort(*wanted)))
    assert conflict is bool(HostPorts([HostPort(*wanted)]).conflicting(HostPort(*used)))


def test_which_ports_a_pod_claims():
    """Those of containers and sidecars that name a host port, each once; defaults are filled in."""

    def with_ports(name, *ports, restart=""):
        return Container(name, ports=ports, restart_policy=restart)

    pod = make_pod(
        containers=[
            with_ports("a", ContainerPort(80), ContainerPort(0, container_port=8080)),
            with_ports("b", ContainerPort(80, protocol="TCP", host_ip=ANY), ContainerPort(53, "::1", "UDP")),
        ],
        init_containers=(
            with_ports("side", ContainerPort(81), restart="Always"),
            with_ports("init", ContainerPort(82)),
        ),
    )

    assert (
        HostPort(ANY, "TCP", 80),
        HostPort("::1", "UDP", 53),
        HostPort(ANY, "TCP", 81),
    ) == host_ports(pod)
