"""`/metrics/resources`: what each pod requests and is limited to, worked out at each scrape.

Source: pkg/scheduler/metrics/resources/resources.go (Kubernetes v1.36).
"""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import pod_limits, pod_requests
from berth.objects.quantity import NANOS

REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"
LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
FINISHED = frozenset({"Succeeded", "Failed"})
BYTES = frozenset({"memory", "storage", "ephemeral-storage"})


def pod_resource_text(pods: Iterable[Pod]) -> bytes:
    """The two metrics in Prometheus's text format; nothing for finished pods, and nothing that is nought."""
    registry = CollectorRegistry()
    registry.register(_Collector(pods))
    return generate_latest(registry)


class _Collector:
    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = [pod for pod in pods if not (pod.node_name and pod.status.phase in FINISHED)]

    def collect(self) -> Iterator[Metric]:
        """Both families."""
        yield _family(
            REQUEST, "[STABLE] What pods request.", ((pod, pod_requests(pod)) for pod in self._pods)
        )
        yield _family(
            LIMIT, "[STABLE] What pods are limited to.", ((pod, pod_limits(pod)) for pod in self._pods)
        )


def _family(name: str, text: str, amounts: Iterable[tuple[Pod, Mapping[str, int]]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=LABELS)
    for pod, by_resource in amounts:
        for resource, nanos in sorted(by_resource.items()):
            if nanos:
                family.add_metric([*_of(pod), resource, unit_of(resource)], nanos / NANOS)
    return family


def _of(pod: Pod) -> tuple[str, str, str, str, str]:
    priority = "" if pod.spec.priority is None else str(pod.spec.priority)
    return pod.namespace, pod.name, pod.node_name, pod.spec.scheduler_name, priority


def unit_of(resource: str) -> str:
    """What the resource's numbers count, as the label `unit` says it."""
    if resource == "cpu":
        return "cores"
    if resource in BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""
