"""In-tree volumes as the drivers know them that took the plugins over."""

import pytest

from berth.objects.pods.pod_volumes import inline_csi_volume
from berth.objects.volumes.csi_migration import (
    BETA_REGION,
    BETA_ZONE,
    MIGRATIONS,
    REGION,
    ZONE,
    CsiVolume,
    csi_volume,
    translated_affinity,
)
from berth.testing.storage import make_volume

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
PD = "pd.csi.storage.gke.io"
SOURCES = {migration.source: migration for migration in MIGRATIONS}


@pytest.mark.parametrize(
    ("source", "labels", "handle"),
    [
        ({"aws_elastic_block_store": {"volumeID": "vol-1"}}, {}, ("ebs.csi.aws.com", "vol-1")),
        (
            {"aws_elastic_block_store": {"volumeID": "aws://us-east-1a/vol-1"}},
            {},
            ("ebs.csi.aws.com", "vol-1"),
        ),
        ({"aws_elastic_block_store": {"volumeID": "aws:///vol-1"}}, {}, ("ebs.csi.aws.com", "vol-1")),
        (
            {"gce_persistent_disk": {"pdName": "d"}},
            {},
            (PD, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ),
        (
            {"gce_persistent_disk": {"pdName": "d"}},
            {ZONE: "us-central1-a"},
            (PD, "projects/UNSPECIFIED/zones/us-central1-a/disks/d"),
        ),
        (
            {"gce_persistent_disk": {"pdName": "d"}},
            {BETA_ZONE: "us-central1-a__us-central1-b"},
            (PD, "projects/UNSPECIFIED/regions/us-central1/disks/d"),
        ),
        ({"azure_disk": {"diskURI": "/disks/d"}}, {}, ("disk.csi.azure.com", "/disks/d")),
        ({"cinder": {"volumeID": "c"}}, {}, ("cinder.csi.openstack.org", "c")),
        ({"portworx_volume": {"volumeID": "p"}}, {}, ("pxd.portworx.com", "p")),
        ({"driver": "csi.example.com"}, {}, ("csi.example.com", "v0")),
        ({"azure_file": {"shareName": "s"}}, {}, None),
        ({"vsphere_volume": {"volumePath": "s"}}, {}, None),
        ({}, {}, None),
    ],
)
def test_persistent_volumes(source, labels, handle):
    """A volume has one driver and handle; those of some plugins are not counted."""
    assert (handle and CsiVolume(*handle)) == csi_volume(make_volume(labels=labels, **source))


def test_inline_volumes():
    """A pod's own volume of such a plugin has the same driver and handle."""
    ebs = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}

    assert CsiVolume("ebs.csi.aws.com", "vol-1") == inline_csi_volume(ebs)
    assert inline_csi_volume({"name": "d", "azureFile": {"shareName": "s"}}) is None
    assert inline_csi_volume({"name": "d", "emptyDir": {}}) is None


@pytest.mark.parametrize(
    ("near", "labels", "expected"),
    [
        pytest.param({ZONE: "a"}, {}, {EBS_ZONE: ("a",)}, id="zone"),
        pytest.param({BETA_ZONE: "a"}, {}, {EBS_ZONE: ("a",)}, id="old zone"),
        pytest.param(
            {BETA_ZONE: "a", BETA_REGION: "r"}, {}, {EBS_ZONE: ("a",), REGION: ("r",)}, id="old region"
        ),
        pytest.param({ZONE: "a", "disk": "x"}, {}, {EBS_ZONE: ("a",), "disk": ("x",)}, id="others stay"),
        pytest.param(None, {ZONE: "b__a"}, {EBS_ZONE: ("a", "b")}, id="zones of the volume's labels"),
        pytest.param(None, {BETA_ZONE: "a"}, {EBS_ZONE: ("a",)}, id="old zone of the volume's labels"),
        pytest.param(
            {"disk": "x"}, {ZONE: "a"}, {"disk": ("x",), EBS_ZONE: ("a",)}, id="labels add to other terms"
        ),
        pytest.param({"disk": "x"}, {}, {"disk": ("x",)}, id="no place at all"),
    ],
)
def test_affinity(near, labels, expected):
    """The driver's topology key stands for the zone, given by the affinity or by the volume's labels."""
    volume = make_volume(near=near, labels=labels, aws_elastic_block_store={"volumeID": "vol-1"})
    affinity = translated_affinity(volume, SOURCES["awsElasticBlockStore"])
    (term,) = affinity.required.node_selector_terms

    assert expected == {r.key: r.values for r in term.match_expressions}
    assert volume.spec.node_affinity == translated_affinity(volume, SOURCES["portworxVolume"])
