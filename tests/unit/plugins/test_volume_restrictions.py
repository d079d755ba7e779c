import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.plugins.volume_restrictions import VolumeRestrictions
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.storage import claim_volume, listers_with, make_claim
from berth.testing.verdicts import feasible, pre_filtered, reasons, verdicts

NO_DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)
NODES = [make_node("n0"), make_node("n1")]


def gce(name, read_only=False):
    return {"name": "d", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(name, read_only=False):
    return {"name": "d", "awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name, read_only=False):
    return {"name": "d", "iscsi": {"iqn": name, "readOnly": read_only}}


def rbd(monitors, image="i", pool="p", read_only=False):
    source = {"monitors": monitors, "image": image, "pool": pool, "readOnly": read_only}
    return {"name": "d", "rbd": source}


CONFLICTS = [
    (gce("a"), gce("a"), True),
    (gce("a"), gce("b"), False),
    (gce("a", True), gce("a", True), False),
    (gce("a", True), gce("a"), True),
    (gce("a"), gce("a", True), True),
    (aws("a", True), aws("a", True), True),
    (aws("a"), aws("b"), False),
    (aws("a"), gce("a"), False),
    (iscsi("a"), iscsi("a"), True),
    (iscsi("a", True), iscsi("a", True), False),
    (rbd(["m1", "m2"]), rbd(["m2", "m3"]), True),
    (rbd(["m1"]), rbd(["m2"]), False),
    (rbd(["m1"]), rbd(["m1"], image="other"), False),
    (rbd(["m1"]), rbd(["m1"], pool="other"), False),
    (rbd(["m1"], read_only=True), rbd(["m1"], read_only=True), False),
]


@pytest.mark.parametrize(("wanted", "used", "conflict"), CONFLICTS)
def test_disks(wanted, used, conflict):
    """A disk cannot be mounted for two pods of one node, unless its kind allows readers side by side."""
    holder = make_pod("holder", volumes=(used,), node_name="n0")
    plugin, pod = make_plugin(VolumeRestrictions), make_pod(volumes=(wanted,))

    assert ({"n0": (NO_DISK,)} if conflict else {}) == reasons(plugin, pod, NODES, [holder])


@pytest.mark.parametrize(("wanted", "used", "conflict"), CONFLICTS)
def test_disks_of_pods_added_on_trial(wanted, used, conflict):
    """The answer is the same for a node as it would be with a pod more."""
    holder = make_pod("holder", volumes=(used,), node_name="n0")
    plugin, pod = make_plugin(VolumeRestrictions), make_pod(volumes=(wanted,))
    node = table(NODES).what_if("n0", add=[PodInfo(holder)])

    assert conflict != verdicts(plugin, pod, node)["n0"].ok


def rwop(name="c0", **fields):
    return make_claim(name, modes=["ReadWriteOncePod"], **fields)


def with_claims(*names, **fields):
    return make_pod(fields.pop("name", "p0"), volumes=tuple(map(claim_volume, names)), **fields)


def test_claim_of_a_single_pod():
    """While another pod uses such a claim, no node will do, the holder's included."""
    plugin = make_plugin(VolumeRestrictions, listers=listers_with(rwop(), make_claim("shared")))
    holder = with_claims("c0", "shared", name="holder", node_name="n0")

    assert dict.fromkeys(["n0", "n1"], (IN_USE,)) == reasons(plugin, with_claims("c0"), NODES, [holder])
    assert ["n0", "n1"] == feasible(plugin, with_claims("shared"), NODES, [holder])
    assert ["n0", "n1"] == feasible(
        plugin, with_claims("c0"), NODES, [with_claims("c0", namespace="b", name="x", node_name="n0")]
    )


def test_disks_come_first():
    """A node with both problems names the disk."""
    plugin = make_plugin(VolumeRestrictions, listers=listers_with(rwop()))
    pod = make_pod(volumes=(gce("a"), claim_volume("c0")))
    holder = make_pod("holder", volumes=(gce("a"), claim_volume("c0")), node_name="n0")

    assert {"n0": (NO_DISK,), "n1": (IN_USE,)} == reasons(plugin, pod, NODES, [holder])


def test_missing_claim():
    """A claim that is not there ends the attempt."""
    result = pre_filtered(make_plugin(VolumeRestrictions), CycleState(), with_claims("gone"), table(NODES))

    assert ('persistentvolumeclaim "gone" not found',) == result.status.reasons


def test_skip():
    """Claims that no pod uses, and volumes of other kinds, leave nothing to filter."""
    plugin = make_plugin(VolumeRestrictions, listers=listers_with(rwop()))

    assert pre_filtered(plugin, CycleState(), with_claims("c0"), table(NODES)).status.skip
    assert pre_filtered(plugin, CycleState(), make_pod(), table(NODES)).status.skip


def test_following_pods():
    """A user evicted on trial frees the claim, in any namespace; simulations leave the cycle alone."""
    plugin = make_plugin(VolumeRestrictions, listers=listers_with(rwop()))
    holder = with_claims("c0", name="holder", node_name="n0")
    nodes, state, pod = table(NODES, [holder]), CycleState(), with_claims("c0")
    plugin.pre_filter(state, pod, nodes)
    twin = state.clone()
    beside = with_claims("c0", name="other", namespace="b", node_name="n0")

    plugin.remove_pod(twin, pod, PodInfo(beside), nodes)
    assert [0, 0] == plugin.filter(twin, pod, nodes).tolist()
    plugin.add_pod(twin, pod, PodInfo(holder), nodes)
    assert [2, 2] == plugin.filter(twin, pod, nodes).tolist() == plugin.filter(state, pod, nodes).tolist()


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(make_pod("x", volumes=(gce("a"),)), QueueingHint.QUEUE, id="held the disk"),
        pytest.param(make_pod("x", volumes=(gce("b"),)), QueueingHint.SKIP, id="held another disk"),
        pytest.param(
            make_pod("x", namespace="b", volumes=(gce("a"),)), QueueingHint.SKIP, id="other namespace"
        ),
        pytest.param(with_claims("c0", name="x"), QueueingHint.QUEUE, id="shared a claim"),
        pytest.param(with_claims("c1", name="x"), QueueingHint.SKIP, id="another claim"),
    ],
)
def test_deletion_hint(deleted, hint):
    """A deleted pod helps when it held a disk or a claim that the waiting one wants."""
    on_pod, on_node, _ = make_plugin(VolumeRestrictions).events_to_register()

    assert hint == on_pod.hint(make_pod(volumes=(gce("a"), claim_volume("c0"))), deleted, None)
    assert on_node.hint is None


def test_claim_hint():
    """A new claim helps the pods of its namespace that name it."""
    *_, on_claim = make_plugin(VolumeRestrictions).events_to_register()

    assert QueueingHint.QUEUE == on_claim.hint(with_claims("c0"), None, make_claim("c0"))
    assert QueueingHint.SKIP == on_claim.hint(with_claims("c0"), None, make_claim("c1"))
    assert QueueingHint.SKIP == on_claim.hint(with_claims("c0", namespace="b"), None, make_claim("c0"))
