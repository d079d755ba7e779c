"""Where a Service's requests go: to pods that are ready, to what an EndpointSlice names, or to a DNS name.

Source: staging/src/k8s.io/apiserver/pkg/util/proxy/proxy.go, ResolveEndpoint and ResolveCluster (v1.36).
"""

from collections.abc import Iterator
from typing import NamedTuple

from berth.sandbox.errors import ApiError
from berth.sandbox.rest import RestStorage
from berth.sandbox.store import Json

_SERVICE_NAME = "kubernetes.io/service-name"


FAILED_CHECK = "FailedDiscoveryCheck"


class EndpointError(ApiError):
    """The server can't be asked; `condition` is why, in the word of an APIService's condition."""

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(503, "ServiceUnavailable", message)
        self.condition = condition


class ServiceAddress(NamedTuple):
    """An address and a port."""

    host: str
    port: int


def addresses(rest: RestStorage, namespace: str, name: str, port: int) -> list[ServiceAddress]:
    """Give every address behind a port of a Service.

    Raises: UnreachableError where there is no such Service, port, or nothing ready behind them.
    """
    service = rest.store.collection("services").get(f"{namespace}/{name}")
    if service is None:
        raise EndpointError("ServiceNotFound", f'service "{namespace}/{name}" not found')
    spec = service.decode().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return [ServiceAddress(spec["externalName"], port)]
    found = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if found is None:
        raise EndpointError("ServicePortError", f'no service port {port} found for service "{name}"')
    selector = spec.get("selector")
    ends = (
        _of_pods(rest, namespace, selector, found) if selector else _of_slices(rest, namespace, name, found)
    )
    listed = list(ends)
    if not listed:
        raise EndpointError("MissingEndpoints", f'no endpoints available for service "{name}"')
    return listed


def _of_pods(
    rest: RestStorage, namespace: str, selector: dict[str, str], port: Json
) -> Iterator[ServiceAddress]:
    for entry in rest.store.collection("pods").entries(f"{namespace}/"):
        pod = entry.decode()
        labels, status = pod["metadata"].get("labels") or {}, pod.get("status") or {}
        if selector.items() <= labels.items() and status.get("podIP") and _is_ready(status):
            number = _target(pod, port)
            if number:
                yield ServiceAddress(status["podIP"], number)


def _is_ready(status: Json) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


def _target(pod: Json, port: Json) -> int:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    ports = (one for container in pod["spec"]["containers"] for one in container.get("ports") or ())
    return next((int(one["containerPort"]) for one in ports if one.get("name") == target), 0)


def _of_slices(rest: RestStorage, namespace: str, name: str, port: Json) -> Iterator[ServiceAddress]:
    for entry in rest.store.collection("endpointslices.discovery.k8s.io").entries(f"{namespace}/"):
        piece = entry.decode()
        if (piece["metadata"].get("labels") or {}).get(_SERVICE_NAME) != name:
            continue
        ports = [one["port"] for one in piece.get("ports") or () if one.get("name") == port.get("name")]
        for end in piece.get("endpoints") or ():
            if ports and (end.get("conditions") or {}).get("ready", True):
                yield from (ServiceAddress(host, ports[0]) for host in end["addresses"])
