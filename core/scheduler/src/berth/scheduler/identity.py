"""What a scheduler says of itself: in a metric, and in the headers of its secure port."""

from typing import NamedTuple

from berth.config.loading import LoadedConfig
from berth.config.releases.release import shown
from berth.telemetry.traces.tracing import resource_from_environment
from berth.version import version

CLUSTER_NAME = "k8s.cluster.name"
"""OpenTelemetry's attribute for a cluster's name."""


class Identity(NamedTuple):
    """Berth's version, the kube-scheduler that is followed, the cluster, and the lease."""

    version: str
    release: str
    cluster: str
    """As OTEL_RESOURCE_ATTRIBUTES names it (k8s.cluster.name), else the API server's host and port."""
    lease: str
    """Namespace and name, without the names of shards; empty without leader election."""

    def headers(self) -> dict[str, str]:
        """Give the headers of every answer."""
        return {f"Berth-{name.title()}": value for name, value in self._asdict().items() if value}


def identity_of(loaded: LoadedConfig, host: str) -> Identity:
    """Give what a scheduler of this configuration says of itself; `host` is the API server's."""
    election = loaded.configuration.leader_election
    lease = f"{election.resource_namespace}/{election.resource_name}" if election.leader_elect else ""
    named = str(resource_from_environment().get(CLUSTER_NAME, ""))
    cluster = "".join(letter for letter in named if letter.isprintable()) or host
    return Identity(version(), shown(loaded.gates.version.binary), cluster, lease)
