"""docs/install.md's way with Helm: install, upgrade, roll back and uninstall, by Helm's own library.

Helm reads discovery and OpenAPI and keeps its releases as Secrets. On the sandbox a kubelet runs operator and
schedulers; on a real API server with its controllers the operator runs beside it.
"""

import re
import shlex

import pytest

from tests.e2e.installation import SYSTEM, Installation
from tests.e2e.operated_installation import RealInstallation
from tests.e2e.test_uninstalling import PAGE, left
from tests.release import chart
from tests.release.version import version

helm = pytest.importorskip("helm_python", reason="Helm's library has no wheel for this machine")
pytestmark = pytest.mark.e2e

RELEASE = "berth"
COMMANDS = re.findall(
    r"(?m)^(helm uninstall .*|kubectl delete namespace .*|kubectl delete -f crds.yaml\b.*)$", PAGE
)
"""docs/install.md's way to uninstall a release."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The chart, as it is in a release."""
    return str(chart.write(tmp_path_factory.mktemp("chart"), version()))


@pytest.fixture
def sandbox(tmp_path, run_images):
    """A sandbox whose kubelet runs operator and schedulers."""
    found = Installation(tmp_path, run_images)
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def real(tmp_path):
    """kube-apiserver and kube-controller-manager, without a kubelet."""
    found = RealInstallation(tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def release_of(cluster):
    """Helm's view of the cluster."""
    return helm.Config(kubeconfig_path=str(cluster.kubeconfig), namespace=SYSTEM)


def uninstall(cluster, actions, made):
    """Run the commands of docs/install.md."""
    release, *others = (shlex.split(line, comments=True)[1:] for line in COMMANDS)
    assert ["uninstall", RELEASE, "--namespace", SYSTEM] == release
    actions.uninstall(RELEASE)
    for words in others:
        cluster.kubectl(*(f"{made}/crds" if word == "crds.yaml" else word for word in words))
    cluster.until(lambda: not left(cluster), "nothing is left")


def test_life_of_a_release(sandbox, made):
    """A release schedules, is upgraded and rolled back, and leaves nothing."""
    with release_of(sandbox) as actions:
        assert "deployed" == actions.install(made, RELEASE, create_namespace=True)["status"]
        sandbox.until(lambda: sandbox.condition("Available")[0] == "True", "the Scheduler is available")
        sandbox.submit("placed", "berth")
        sandbox.until(lambda: sandbox.is_bound("placed"), "its first profile binds")

        packing = {"scheduler": {"spec": {"profiles": [{"schedulerName": "packing"}]}}}
        assert 2 == actions.upgrade(made, RELEASE, packing)["revision"]
        sandbox.submit("by-packing", "packing")
        sandbox.until(lambda: sandbox.is_bound("by-packing"), "the new profile binds")

        actions.rollback(RELEASE, version=1)
        sandbox.submit("placed-again", "berth")
        sandbox.until(lambda: sandbox.is_bound("placed-again"), "the first profile is back")

        uninstall(sandbox, actions, made)


def test_a_real_api_server(real, made):
    """Admission and field validation take each object; the operator makes the Scheduler's Deployment."""
    with release_of(real) as actions:
        assert "deployed" == actions.install(made, RELEASE, create_namespace=True)["status"]
        real.start_operator("operator")
        real.until(lambda: real.get("deployment", "berth-main"), "the operator has read the Scheduler")

        assert 2 == actions.upgrade(made, RELEASE, {"operator": {"replicas": 2}})["revision"]
        assert 2 == real.get("deployment", "berth-operator")["spec"]["replicas"]

        uninstall(real, actions, made)
