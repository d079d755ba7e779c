"""Real API servers of the versions that docs/install.md names: KUBEBUILDER_ASSETS names the one to try."""

import json
from dataclasses import dataclass

import pytest

from berth.client.resources import NODES, PODS, RESOURCE_CLAIMS
from tests.e2e.api_servers import ApiServer, api_server_called, version
from tests.e2e.default_cluster import default_cluster
from tests.e2e.seen import Seen, items, until
from tests.e2e.side_by_side import HOST, device_claim, devices, node, pod, thing, with_device

pytestmark = pytest.mark.e2e

EVERY_GATE = ("--feature-gates=GenericWorkload=true,DRADeviceTaintRules=true",)
OF_RESOURCE_CLAIMS = 34
WITHOUT_CLAIMS = (
    "resource.k8s.io/v1 (deviceclasses, resourceclaims, resourceslices): pods with resource claims wait"
)
WITHOUT_RULES = "resource.k8s.io/v1beta2 (devicetaintrules): DeviceTaintRules taint no device"
WITHOUT_GROUPS = "scheduling.k8s.io/v1alpha2 (podgroups): no pod is in a pod group"


@dataclass(frozen=True)
class ByDefault(ApiServer):
    """A real API server that serves what its version does by default, whatever the scheduler is to do."""

    def command(self, kubeconfig, *flags, pod_groups=False):
        """Its command line."""
        del pod_groups
        return super().command(kubeconfig, *flags)


@pytest.fixture
def real():
    """The API server that is at hand."""
    api_server_called("real")
    return ByDefault(real=True)


async def test_kinds_that_a_real_one_does_not_serve(tmp_path, real):
    """The scheduler gets ready and binds a pod; its log names the version, and in one line what is off."""
    async with default_cluster(tmp_path, [node("n1")], flags=EVERY_GATE, server=real) as cluster:
        await bound(cluster, pod("plain"))
    log = (tmp_path / "scheduler.log").read_text()
    lacking = (WITHOUT_CLAIMS,) if version()[1] < OF_RESOURCE_CLAIMS else ()

    assert f'"found API server" version="v{".".join(map(str, version()))}"' in log
    assert [f'kinds="{"; ".join((*lacking, WITHOUT_RULES, WITHOUT_GROUPS))}"'] == [
        line[line.index("kinds=") :].rstrip() for line in log.splitlines() if "does not serve" in line
    ]


async def test_a_device_of_a_real_one(tmp_path, real):
    """A pod's claim is allocated and reserved for it, where the version has claims."""
    if version()[1] < OF_RESOURCE_CLAIMS:
        pytest.skip("resource.k8s.io/v1 came with Kubernetes 1.34")
    gpu = thing("DeviceClass", "gpu", "resource.k8s.io/v1", spec={})
    documents = [node("n1"), node("n2"), gpu, devices("n2", 1), device_claim("one")]
    async with default_cluster(tmp_path, documents, server=real) as cluster:
        on = await bound(cluster, pod("claiming", resourceClaims=with_device("one")))
        (claim,) = await items(cluster, RESOURCE_CLAIMS)

    assert ("n2", ["claiming"]) == (on, [each["name"] for each in claim["status"]["reservedFor"]])
    assert ["d0"] == [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]]


async def test_a_pod_that_fits_later_on_a_real_one(tmp_path, real):
    """The condition says why a pod does not fit; a label of a node brings it back."""
    seen = Seen()
    async with default_cluster(tmp_path, [node("n1")], server=real) as cluster, cluster.watching(seen.look):
        await cluster.create(PODS, [pod("picky", nodeSelector={"disk": "ssd"})])
        await until(lambda: "picky" in seen.first, "the pod is refused")
        await cluster.patch(NODES, "n1", {"metadata": {"labels": {"disk": "ssd", HOST: "n1"}}})
        await until(lambda: "picky" in seen.on, "the pod is bound")

    assert "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." in json.dumps(
        seen.first
    )


async def bound(cluster, document):
    """Create a pod, wait until it is bound, and give its node."""
    seen, name = Seen(), document["metadata"]["name"]
    async with cluster.watching(seen.look):
        await cluster.create(PODS, [document])
        await until(lambda: seen.decided(name), f"{name} is looked at")
    assert name in seen.on, seen.first
    return seen.on[name]
