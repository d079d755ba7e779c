import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.objects.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from berth.plugins.volume_zone import VolumeZone
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.storage import claim_volume, listers_with, make_claim, make_class, make_volume
from berth.testing.verdicts import feasible, pre_filtered, reasons

POD = make_pod(volumes=(claim_volume("c0"),))
CLAIM = make_claim("c0", volume_name="v0")


def with_volume(labels):
    return make_plugin(VolumeZone, listers=listers_with(CLAIM, make_volume("v0", labels=labels)))


@pytest.mark.parametrize(
    ("volume", "node", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="other zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of two zones"),
        pytest.param({ZONE: "a__ b "}, {ZONE: "b"}, True, id="blanks do not count"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="other region"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a"}, False, id="the region is missing"),
        pytest.param({ZONE: "a"}, {"other": "a"}, True, id="a node without any place"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="old label on the volume alone"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the old label goes first"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="old label on the node alone"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="old region"),
    ],
)
def test_filter(volume, node, fits):
    """A node has to be in one of the volume's zones and regions, if it says where it is."""
    assert fits == bool(feasible(with_volume(volume), POD, [make_node(labels=node)]))


def test_reason():
    """The reason is upstream's."""
    assert {"n0": ("node(s) had no available volume zone",)} == reasons(
        with_volume({ZONE: "a"}), POD, [make_node(labels={ZONE: "b"})]
    )


@pytest.mark.parametrize("labels", [{}, {ZONE: ""}, {ZONE: "a__"}, {"other": "a"}])
def test_skip(labels):
    """A volume that does not tell its place, or an empty one, leaves nothing to filter."""
    assert pre_filtered(with_volume(labels), CycleState(), POD, table([make_node()])).status.skip


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (None, 'persistentvolumeclaim "c0" not found'),
        (make_claim("c0", storage_class=None), "PersistentVolumeClaim had no pv name and storageClass name"),
        (make_claim("c0", storage_class="gone"), 'storageclass.storage.k8s.io "gone" not found'),
        (make_claim("c0", storage_class="silent"), 'VolumeBindingMode not set for StorageClass "silent"'),
        (make_claim("c0", storage_class="now"), "PersistentVolume had no name"),
        (make_claim("c0", volume_name="gone"), 'persistentvolume "gone" not found'),
    ],
)
def test_claims_without_a_volume(claim, text):
    """A claim that neither has a volume nor waits for its pod ends the attempt."""
    classes = [make_class("silent", mode=None), make_class("now", mode="Immediate")]
    plugin = make_plugin(VolumeZone, listers=listers_with(*classes, *([claim] if claim else [])))
    status = pre_filtered(plugin, CycleState(), POD, table([make_node()])).status

    assert (text,) == status.reasons


def test_waiting_claim():
    """A claim whose volume comes with the pod is left out."""
    plugin = make_plugin(VolumeZone, listers=listers_with(make_claim("c0"), make_class("wait")))

    assert pre_filtered(plugin, CycleState(), POD, table([make_node()])).status.skip


def test_hints():
    """Waiting classes, the pod's claims, new volumes and volumes that moved are worth a try."""
    on_class, on_node, on_claim, on_volume = make_plugin(VolumeZone).events_to_register()
    here, there = make_volume(labels={ZONE: "a"}), make_volume(labels={ZONE: "b"})

    assert QueueingHint.QUEUE == on_class.hint(POD, None, make_class())
    assert QueueingHint.SKIP == on_class.hint(POD, None, make_class(mode="Immediate"))
    assert on_node.hint is None
    assert QueueingHint.QUEUE == on_claim.hint(POD, None, CLAIM)
    assert QueueingHint.SKIP == on_claim.hint(POD, None, make_claim("other"))
    assert QueueingHint.QUEUE == on_volume.hint(POD, None, here)
    assert QueueingHint.QUEUE == on_volume.hint(POD, there, here)
    assert QueueingHint.SKIP == on_volume.hint(POD, here, make_volume(labels={ZONE: "a", "x": "y"}))
