"""Where a policy has metrics from, and which of them a strategy goes by.

Source: pkg/api/v1alpha2/types.go, pkg/framework/plugins/nodeutilization/types.go (descheduler v0.36).
"""

from berth.config.descheduling.policy_part import PolicyPart


class PrometheusQuery(PolicyPart, frozen=True):
    """PromQL of a vector with a sample for each node: its label `instance` names the node, 1 is all of it."""

    query: str = ""


class MetricsUtilization(PolicyPart, frozen=True):
    """Whose word on what is in use counts, in place of requests; `metricsServer` is the older spelling."""

    metrics_server: bool = False
    source: str = ""
    prometheus: PrometheusQuery | None = None

    @property
    def query(self) -> str:
        """What Prometheus is asked; empty where metrics-server is."""
        return self.prometheus.query if self.prometheus is not None else ""


class SecretReference(PolicyPart, frozen=True):
    """A Secret whose key prometheusAuthToken has a bearer token."""

    namespace: str = ""
    name: str = ""


class AuthToken(PolicyPart, frozen=True):
    """Where the token for Prometheus is."""

    secret_reference: SecretReference | None = None


class PrometheusServer(PolicyPart, frozen=True):
    """A Prometheus, and as whom it is asked."""

    url: str = ""
    auth_token: AuthToken | None = None

    @property
    def token_secret(self) -> SecretReference | None:
        """The Secret of the token; without one it is the service account's."""
        return self.auth_token.secret_reference if self.auth_token is not None else None


class MetricsProvider(PolicyPart, frozen=True):
    """Where metrics come from."""

    source: str = ""
    prometheus: PrometheusServer | None = None


class MetricsCollector(PolicyPart, frozen=True):
    """The older spelling of the provider KubernetesMetrics."""

    enabled: bool = False
