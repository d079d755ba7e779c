"""From kube-scheduler to Berth and back with the overlay `default`: docs/replace-kube-scheduler.md."""

import signal
import subprocess

import pytest

from tests.e2e.installation import KUSTOMIZE, Installation
from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.suite import PATIENCE_SECONDS

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)]
# With leases of a few seconds: taking over takes as long as a lease lasts.
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, contentType: application/json}}
leaderElection: {{leaderElect: true, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 500ms}}
"""
SHORT = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "500ms"}


class Replaced(Installation):
    """A cluster whose first scheduler is kube-scheduler, which can be stopped and started again."""

    def start_first(self):
        """Start kube-scheduler, as a control plane's static pod would."""
        configuration = self.folder / "first.yaml"
        configuration.write_text(CONFIGURATION.format(kubeconfig=self.kubeconfig))
        command = [kube_scheduler(), f"--config={configuration}", "--secure-port=0"]
        with (self.folder / "kube-scheduler.log").open("a") as log:
            self.kube_scheduler = subprocess.Popen(command, stdout=log, stderr=log)
        self.processes.append(self.kube_scheduler)

    def holder(self):
        """Give who holds kube-scheduler's lease."""
        return self.get("lease", "kube-scheduler", namespace="kube-system")["spec"].get("holderIdentity", "")

    def binds(self, name):
        """Create a pod that names no scheduler, and wait until it is bound."""
        self.submit(name, "default-scheduler")
        self.until(lambda: self.is_bound(name), f"{name} is bound")


@pytest.fixture
def cluster(tmp_path):
    found = Replaced(tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def test_there_and_back(cluster):
    """One lease, one leader: Berth stands by until kube-scheduler stops, and hands over when that is back."""
    cluster.binds("before")
    first = cluster.holder()
    cluster.install(KUSTOMIZE / "overlays" / "default")
    cluster.patch("scheduler", "main", {"spec": {"replicas": 1, "leaderElection": SHORT}})
    cluster.until(lambda: cluster.condition("Available")[0] == "True", "Berth stands by")
    cluster.until(lambda: cluster.condition("Progressing")[1] == "RolledOut", "with the short lease")
    cluster.binds("beside")
    assert first == cluster.holder()

    cluster.kube_scheduler.send_signal(signal.SIGTERM)
    cluster.kube_scheduler.wait(PATIENCE_SECONDS)
    cluster.binds("by-berth")
    second = cluster.holder()
    assert second not in ("", first)

    cluster.start_first()
    cluster.binds("still-by-berth")
    assert second == cluster.holder()
    cluster.patch("scheduler", "main", {"spec": {"replicas": 0}})
    cluster.until(lambda: not cluster.pods(), "Berth is gone")
    cluster.binds("by-kube-scheduler-again")
    assert cluster.holder() not in ("", second)
