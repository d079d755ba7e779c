"""The definitions of others that Berth applies go on serving what upstream's serve."""

from pathlib import Path

import pytest
import yaml

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOPOLOGIES = "/apis/topology.node.k8s.io/{}/noderesourcetopologies"
FOLDER = Path(__file__).parents[4] / "kustomize/third-party-crds"
CPU = {"name": "cpu", "capacity": "4", "allocatable": "4", "available": "2"}
ZONE = {
    "name": "node-0",
    "type": "Node",
    "parent": "socket-0",
    "costs": [{"name": "node-1", "value": 20}],
    "attributes": [{"name": "a", "value": "b"}],
    "resources": [CPU],
}
OBJECT = {
    "metadata": {"name": "n0"},
    "topologyPolicies": ["SingleNUMANodeContainerLevel"],
    "zones": [ZONE],
}


@pytest.fixture
def topologies(server):
    """A server that serves NodeResourceTopologies as Berth defines them."""
    found = yaml.safe_load((FOLDER / "noderesourcetopologies.yaml").read_text("utf-8"))
    assert 201 == server.post(CRDS, found)[0]
    return server


@pytest.mark.parametrize(("written", "read"), [("v1alpha1", "v1alpha2"), ("v1alpha2", "v1alpha1")])
def test_both_versions_of_topologies_are_served(topologies, written, read):
    """What an exporter writes in one version is read in the other, whole; it is stored as v1alpha2."""
    body = {**OBJECT, "apiVersion": f"topology.node.k8s.io/{written}", "kind": "NodeResourceTopology"}

    status, created = topologies.post(TOPOLOGIES.format(written), body)
    _, found = topologies.get(f"{TOPOLOGIES.format(read)}/n0")

    assert 201 == status, created
    assert (OBJECT["topologyPolicies"], [ZONE]) == (found["topologyPolicies"], found["zones"])
    assert f"topology.node.k8s.io/{read}" == found["apiVersion"]
