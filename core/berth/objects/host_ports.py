"""Host ports that a pod claims on its node.

Source: spec/plugins.md 4.4.
"""

from typing import NamedTuple

from berth.objects.pod import Pod

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the wildcard that a pod's hostIP stands for, nothing is bound here


class HostPort(NamedTuple):
    """One claim: address, protocol and number."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The distinct ports that the pod's containers and sidecars claim, in order."""
    sidecars = (c for c in pod.spec.init_containers if c.restartable)
    claims = (
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )
    return tuple(dict.fromkeys(claims))


def conflicts(wanted: HostPort, used: HostPort) -> bool:
    """Whether the two cannot stand on one node."""
    same_port = (wanted.protocol, wanted.port) == (used.protocol, used.port)
    return same_port and (wanted.ip == used.ip or ANY_ADDRESS in (wanted.ip, used.ip))
