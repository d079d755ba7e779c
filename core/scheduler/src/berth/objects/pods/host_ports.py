"""Host ports that a pod claims on its node.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go HostPortInfo (Kubernetes v1.36).
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the wildcard that a pod's hostIP stands for, nothing is bound here


class HostPort(NamedTuple):
    """One claim: address, protocol and number."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The distinct ports that the pod's containers and sidecars claim, in order."""
    return pod.template.derived(_host_ports)


def _host_ports(template: PodTemplate) -> tuple[HostPort, ...]:
    sidecars = (c for c in template.spec.init_containers if c.restartable)
    claims = (
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*template.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )
    return tuple(dict.fromkeys(claims))


class HostPorts:
    """Distinct claims, found by protocol and number.

    Source: pkg/scheduler/framework/types.go HostPortInfo (Kubernetes v1.36).
    """

    __slots__ = ("_by_number",)

    def __init__(self, ports: Iterable[HostPort] = ()) -> None:
        self._by_number: dict[tuple[str, int], dict[str, HostPort]] = {}
        for port in ports:
            self.add(port)

    def add(self, port: HostPort) -> None:
        """Put in a claim."""
        self._by_number.setdefault((port.protocol, port.port), {})[port.ip] = port

    def discard(self, port: HostPort) -> None:
        """Take out a claim."""
        number = port.protocol, port.port
        by_ip = self._by_number.get(number, {})
        by_ip.pop(port.ip, None)
        if not by_ip:
            self._by_number.pop(number, None)
        if not self._by_number:
            self._by_number = {}  # a dictionary that had many keys keeps their room otherwise

    def conflicting(self, wanted: HostPort) -> Collection[HostPort]:
        """The claims that cannot stand on one node with this one.

        Cost: as many steps as there are, which are claims of one protocol and number.
        """
        by_ip = self._by_number.get((wanted.protocol, wanted.port))
        if by_ip is None:
            return ()
        if wanted.ip == ANY_ADDRESS:
            return by_ip.values()
        return [by_ip[ip] for ip in (wanted.ip, ANY_ADDRESS) if ip in by_ip]
