"""Which claims a pod's volumes use."""

import pytest

from berth.objects.pods.pod_volumes import claim_uses, uses_claim
from berth.testing.builders import make_pod

VOLUMES = (
    {"name": "data", "persistentVolumeClaim": {"claimName": "theirs"}},
    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    {"name": "both", "ephemeral": {}, "persistentVolumeClaim": {"claimName": "web-0-named"}},
    {"name": "config", "configMap": {"name": "web-0-config"}},
)
NAMES = ("theirs", "web-0-scratch", "web-0-both", "web-0-named", "web-0-config", "web-0-", "scratch", "")


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_is_used_where_a_volume_names_it_or_has_it_made(name):
    """One look says the same as going through all volumes."""
    pod = make_pod("web-0", volumes=VOLUMES)

    assert (name in {use.name for use in claim_uses(pod)}) == uses_claim(pod, name)
