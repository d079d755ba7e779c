"""Which parts of a spec only some plugins look at."""

import pytest

from berth.objects.node_selector import NodeAffinity
from berth.objects.pods.pod_features import PodFeature, features_of
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodResourceClaim,
    Resources,
    RestartPolicyRule,
)
from berth.testing.builders import make_pod

TOKEN = {"name": "token", "projected": {}}


def container(name="example.com/gpu", port=0):
    """One that requests a resource of that name."""
    return Container("c", resources=Resources(requests={name: "1"}), ports=(ContainerPort(port),))


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"volumes": (TOKEN,)}, None, id="the token's volume"),
        pytest.param({"containers": (container("memory"),)}, None, id="memory, and no port of the node"),
        pytest.param({"affinity": Affinity(pod_affinity=PodAffinity())}, None, id="pod affinity"),
        pytest.param({"node_selector": {}}, PodFeature.NODE_AFFINITY, id="an empty selector"),
        pytest.param(
            {"affinity": Affinity(node_affinity=NodeAffinity())}, PodFeature.NODE_AFFINITY, id="node affinity"
        ),
        pytest.param(
            {"volumes": (TOKEN, {"name": "v", "persistentVolumeClaim": {}})}, PodFeature.VOLUMES, id="a claim"
        ),
        pytest.param({"containers": (container("cpu", 80),)}, PodFeature.HOST_PORTS, id="a host port"),
        pytest.param({"init_containers": (container("cpu", 80),)}, PodFeature.HOST_PORTS, id="of a sidecar"),
        pytest.param(
            {"resource_claims": (PodResourceClaim("c"),)}, PodFeature.DEVICES, id="a resource claim"
        ),
        pytest.param({"containers": (container(),)}, PodFeature.DEVICES, id="another resource"),
        pytest.param({"overhead": {"example.com/gpu": "1"}}, PodFeature.DEVICES, id="of the overhead"),
        pytest.param({"host_network": True}, PodFeature.KUBELET, id="the node's network"),
        pytest.param(
            {"containers": (Container("c", restart_policy_rules=(RestartPolicyRule(),)),)},
            PodFeature.KUBELET,
            id="a rule for restarts",
        ),
    ],
)
def test_features(parts, found):
    """Each part is a feature of its own, and what all pods have is none."""
    assert frozenset([found] if found else []) == features_of(make_pod("p", **parts).template)
