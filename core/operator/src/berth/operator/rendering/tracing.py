"""The variables by which a scheduler and its plugins trace: where to, which attempts, and who they are.

The downward API fills in the pod and its node. The scheduler alone decides which attempts are traced; its
plugins follow the flag in each call.
"""

from berth.config.duration import parse_duration
from berth.operator.kinds import Json
from berth.telemetry.traces.sampling import FAILED_PER_MINUTE, MAX_SLOW_SECONDS, SLOW_PER_MINUTE, SLOW_SECONDS

# Named as Kubernetes' own components name them in examples of the downward API.
_FIELDS = {
    "POD_NAME": "metadata.name",
    "POD_NAMESPACE": "metadata.namespace",
    "NODE_NAME": "spec.nodeName",
}
# Not the pod's UID: in a trace k8s.pod.uid is that of the pod that was scheduled.
_RESOURCE = (
    "k8s.pod.name=$(POD_NAME)",
    "k8s.namespace.name=$(POD_NAMESPACE)",
    "k8s.node.name=$(NODE_NAME)",
)
_RATES = {"failedPerMinute": FAILED_PER_MINUTE, "slowPerMinute": SLOW_PER_MINUTE}


def collector_variables(tracing: Json, container: str) -> list[Json]:
    """Where traces go, and from which container of which pod they come."""
    attributes = (
        *_RESOURCE,
        f"k8s.container.name={container}",
        # By the conventions for Kubernetes: unique, and the same after a container's restart.
        f"service.instance.id=$(POD_NAMESPACE).$(POD_NAME).{container}",
    )
    values = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": tracing["endpoint"],
        "OTEL_EXPORTER_OTLP_PROTOCOL": tracing.get("protocol", "grpc"),
        "OTEL_RESOURCE_ATTRIBUTES": ",".join(attributes),
    }
    return [*_downward(), *(_plain(name, value) for name, value in values.items())]


def plugin_variables(tracing: Json | None, container: str) -> list[Json]:
    """The same for a plugin; none where the collector is not reached by gRPC, which alone plugins speak."""
    if not tracing or tracing.get("protocol", "grpc") != "grpc":
        return []
    return collector_variables(tracing, container)


def scheduler_variables(tracing: Json | None, container: str) -> list[Json]:
    """The same for the scheduler, and which attempts are traced."""
    if not tracing:
        return []
    values = {
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": f"{_share(tracing):g}",
        **{variable: str(tracing[field]) for field, variable in _RATES.items() if field in tracing},
    }
    if "slowerThan" in tracing:
        seconds = min(parse_duration(tracing["slowerThan"]).seconds, MAX_SLOW_SECONDS)
        values[SLOW_SECONDS] = f"{seconds:g}"
    return [
        *collector_variables(tracing, container),
        *(_plain(name, value) for name, value in values.items()),
    ]


def _share(tracing: Json) -> float:
    if "samplingRatePerMillion" in tracing:
        return float(tracing["samplingRatePerMillion"] / 1_000_000)
    return float(tracing.get("samplingPercent", 100) / 100)


def _downward() -> list[Json]:
    return [
        {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        for name, path in _FIELDS.items()
    ]


def _plain(name: str, value: str) -> Json:
    return {"name": name, "value": value}
