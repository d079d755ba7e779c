"""What a scheduler says of itself."""

import pytest

from berth.config import load
from berth.config.releases.release import shown
from berth.scheduler.identity import identity_of
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.version import version

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ELECTS = "leaderElection: {resourceNamespace: ns, resourceName: le}\n"
ALONE = "leaderElection: {leaderElect: false}\n"


@pytest.mark.parametrize(
    ("attributes", "cluster"),
    [
        pytest.param("", "api:6443", id="its address"),
        pytest.param("k8s.cluster.name=prod,a=b", "prod", id="named"),
        pytest.param("k8s.cluster.name=a%0D%0Ab", "ab", id="no line breaks in a header"),
    ],
)
def test_identity(monkeypatch, attributes, cluster):
    """Version, release, cluster and lease, in a metric and in headers."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
    loaded = load(HEAD + ELECTS)
    found = identity_of(loaded, "api:6443")
    metrics = SchedulerMetrics()
    metrics.show_identity(found._asdict())
    release = shown(loaded.gates.version.binary)
    series = f'cluster="{cluster}",lease="ns/le",release="{release}",version="{version()}"'

    assert f"berth_scheduler_info{{{series}}} 1.0" in metrics.text().decode()
    assert found.headers() == {
        "Berth-Version": version(),
        "Berth-Release": release,
        "Berth-Cluster": cluster,
        "Berth-Lease": "ns/le",
    }


def test_without_election():
    """There is no lease then, and no header for one."""
    assert "Berth-Lease" not in identity_of(load(HEAD + ALONE), "api:6443").headers()
