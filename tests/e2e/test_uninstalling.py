"""docs/install.md's commands, as they stand there, install and leave nothing behind."""

import re
import shlex

import pytest

from tests.e2e.installation import ROOT, installation
from tests.release.manifests import write_installations
from tests.release.version import version

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs/install.md").read_text()
BLOCKS = re.findall(r"```shell\n(kubectl .*?)```", PAGE, re.DOTALL)
INSTALLS, ENDS = (
    next(block for block in BLOCKS if block.startswith(first))
    for first in ("kubectl apply --server-side -f crds.yaml", "kubectl delete schedulers")
)
EVERYTHING = (
    "namespaces,clusterroles,clusterrolebindings,priorityclasses,apiservices,customresourcedefinitions,"
    "pods,services,configmaps,secrets,serviceaccounts,roles,rolebindings,deployments,leases"
)


def lines(block, folder):
    """The commands of a block, with the files of a release; what is repeated until it succeeds comes once."""
    for line in block.splitlines():
        words = shlex.split(line.removeprefix("until ").removesuffix("; do sleep 1; done"), comments=True)
        yield [str(folder / word) if word.endswith(".yaml") else word for word in words[1:]]


def left(cluster):
    """What has Berth's name, of all that is in the cluster."""
    return [
        name for name in cluster.kubectl("get", EVERYTHING, "-A", "-o", "name").split() if "berth" in name
    ]


@pytest.fixture
def cluster(tmp_path, run_images):
    """A sandbox whose kubelet runs operator and schedulers."""
    with installation(tmp_path, run_images) as found:
        yield found


@pytest.mark.parametrize("skipped", [0, 2], ids=["all commands", "without the first two"])
def test_uninstalled(cluster, tmp_path, skipped):
    """Each object goes, the APIService of explanations included; without the first commands as well."""
    write_installations(tmp_path, version())
    for line in lines(INSTALLS, tmp_path):
        cluster.kubectl(*line)
    cluster.until(lambda: cluster.get("apiservice", "v1alpha1.explain.berth.dev"), "pods are explained")
    assert left(cluster)
    for line in list(lines(ENDS, tmp_path))[skipped:]:
        cluster.kubectl(*line)

    cluster.until(lambda: not left(cluster), "nothing is left")
