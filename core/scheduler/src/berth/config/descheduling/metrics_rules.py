"""What a policy may say of metrics: where they come from, and which of them LowNodeUtilization goes by.

Source: pkg/descheduler/policyconfig.go; validation.go and lownodeutilization.go of
pkg/framework/plugins/nodeutilization (descheduler v0.36).
"""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from berth.config.descheduling.metrics import MetricsUtilization, PrometheusServer
from berth.config.descheduling.policy import LowNodeUtilizationArgs, WrittenPolicy

KUBERNETES_METRICS: Final = "KubernetesMetrics"
PROMETHEUS: Final = "Prometheus"
METRIC_RESOURCE: Final = "MetricResource"
"""What thresholds call the number that Prometheus has of a node."""
MEASURED: Final = ("cpu", "memory", "pods")
"""What can be measured with metrics-server; pods are counted."""

Problem = tuple[str, str]


def provider_problems(policy: WrittenPolicy) -> Iterator[Problem]:
    """What is wrong with metricsProviders and metricsCollector: the field, what was found, and a remedy."""
    seen: set[str] = set()
    for i, provider in enumerate(policy.metrics_providers):
        where = f"metricsProviders[{i}]"
        if provider.source not in (KUBERNETES_METRICS, PROMETHEUS):
            there = f"there are {KUBERNETES_METRICS}, {PROMETHEUS}"
            yield f"{where}.source", f"found {provider.source[:60]!r}; {there}"
        elif provider.source in seen:
            yield f"{where}.source", f"{provider.source} is there twice; write it once"
        seen.add(provider.source)
        if provider.source == PROMETHEUS:
            yield from _server_problems(provider.prometheus, f"{where}.prometheus")
    if policy.metrics_collector.enabled and KUBERNETES_METRICS in seen:
        yield "metricsCollector", f"found beside the provider {KUBERNETES_METRICS}; take it out"


def _server_problems(server: PrometheusServer | None, where: str) -> Iterator[Problem]:
    if server is None or not server.url:
        yield f"{where}.url", "found none; write it as http://prometheus-k8s.monitoring:9090"
        return
    if not _is_url(server.url):
        yield f"{where}.url", f"{server.url[:60]!r} is no URL; write it as https://host:port"
    secret = server.token_secret
    if server.auth_token is not None and (secret is None or not (secret.namespace and secret.name)):
        yield f"{where}.authToken.secretReference", "found no Secret; write its namespace and name"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def known_sources(policy: WrittenPolicy) -> Mapping[str, PrometheusServer | None]:
    """The sources that the policy has, with Prometheus' address."""
    found = {each.source: each.prometheus for each in policy.metrics_providers}
    return {KUBERNETES_METRICS: None, **found} if policy.metrics_collector.enabled else found


def utilization_problems(args: LowNodeUtilizationArgs) -> Iterator[Problem]:
    """What is wrong with metricsUtilization by itself."""
    chosen = args.metrics_utilization
    if chosen is None:
        return
    field = "metricsUtilization"
    if chosen.metrics_server and chosen.source:
        yield f"{field}.metricsServer", "found beside source; take metricsServer out"
    elif source_of(chosen) not in (KUBERNETES_METRICS, PROMETHEUS):
        there = f"there are {KUBERNETES_METRICS}, {PROMETHEUS}"
        yield f"{field}.source", f"found {chosen.source[:60]!r}; {there}"
    elif source_of(chosen) == KUBERNETES_METRICS:
        if chosen.prometheus is not None:
            yield f"{field}.prometheus", f"found beside the source {KUBERNETES_METRICS}; take it out"
        yield from _unmeasured(args)
    elif not chosen.query:
        yield (
            f"{field}.prometheus.query",
            "found none; write PromQL that gives each node a number from 0 to 1",
        )
    elif set(args.thresholds) != {METRIC_RESOURCE}:
        names = ", ".join(sorted(args.thresholds))[:60]
        yield "thresholds", f"found {names}; with the source {PROMETHEUS} write {METRIC_RESOURCE} alone"


def _unmeasured(args: LowNodeUtilizationArgs) -> Iterator[Problem]:
    for name in args.thresholds:
        if name not in MEASURED:
            there = f"metrics-server has {', '.join(MEASURED)}"
            yield f"thresholds[{name[:60]}]", f"{there}; take it out, or metricsUtilization for requests"


def source_of(chosen: MetricsUtilization) -> str:
    """The source in today's spelling."""
    return KUBERNETES_METRICS if chosen.metrics_server else chosen.source


def unknown_source(chosen: MetricsUtilization, sources: Mapping[str, object]) -> str:
    """Why the policy has no such source; empty where it has."""
    source = source_of(chosen)
    if source in sources:
        return ""
    written = "source and prometheus.url" if source == PROMETHEUS else "- source: KubernetesMetrics"
    return f"found {source}, which metricsProviders does not have; write it there, as {written}"
