import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import QueueingHint
from berth.plugins.node_volume_limits import NodeVolumeLimits
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.storage import (
    claim_volume,
    listers_with,
    make_attachment,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
    put,
)
from berth.testing.verdicts import feasible, pre_filtered, reasons, verdicts

DRIVER, EBS = "csi.example.com", "ebs.csi.aws.com"
FULL = "node(s) exceed max volume count"
NODES = [make_node("n0"), make_node("n1")]


def user(name="p0", *claims, node_name="", volumes=(), **fields):
    every = (*map(claim_volume, claims), *volumes)
    return make_pod(name, volumes=every, node_name=node_name, **fields)


def bound_claims(*names):
    for name in names:
        yield make_claim(name, volume_name=f"v-{name}")
        yield make_volume(f"v-{name}", driver=DRIVER)


def limited(limit, *objects, **handle):
    csi_node = make_csi_node("n0", {DRIVER: limit, EBS: limit})
    return make_plugin(NodeVolumeLimits, listers=listers_with(csi_node, *objects), **handle)


def ephemeral():
    return {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}


def ebs(name):
    return {"name": "d", "awsElasticBlockStore": {"volumeID": name}}


@pytest.mark.parametrize(
    ("limit", "wanted", "used", "fits"),
    [
        pytest.param(1, ["a"], [], True, id="room"),
        pytest.param(1, ["a"], [["b"]], False, id="full"),
        pytest.param(2, ["a"], [["b"]], True, id="one left"),
        pytest.param(2, ["a", "b"], [["c"]], False, id="two wanted, one left"),
        pytest.param(1, ["a"], [["a"]], True, id="already there"),
        pytest.param(2, ["a", "b"], [["a"], ["a"]], True, id="shared volumes count once"),
        pytest.param(1, ["a", "a"], [], True, id="wanted twice, counted once"),
        pytest.param(0, ["a"], [], False, id="none allowed"),
        pytest.param(None, ["a"], [["b"]], True, id="no limit"),
    ],
)
def test_claims(limit, wanted, used, fits):
    """Distinct volumes of a driver on a node stay within its limit; the other node sets none."""
    plugin = limited(limit, *bound_claims("a", "b", "c"))
    placed = [user(f"u{i}", *names, node_name="n0") for i, names in enumerate(used)]
    pod = user("p0", *wanted)

    assert ({} if fits else {"n0": (FULL,)}) == reasons(plugin, pod, NODES, placed)
    supposed = table(NODES).what_if("n0", add=[PodInfo(other) for other in placed])
    assert fits == verdicts(plugin, pod, supposed)["n0"].ok


@pytest.mark.parametrize(
    ("volumes", "objects", "counted"),
    [
        pytest.param(
            [claim_volume("c0")], [make_claim("c0"), make_class(provisioner=DRIVER)], True, id="unbound"
        ),
        pytest.param([claim_volume("c0")], [make_claim("c0")], False, id="class is gone"),
        pytest.param([claim_volume("c0")], [make_claim("c0", storage_class=None)], False, id="no class"),
        pytest.param(
            [claim_volume("c0")],
            [make_claim("c0"), make_class(provisioner="kubernetes.io/aws-ebs")],
            True,
            id="in-tree provisioner",
        ),
        pytest.param(
            [claim_volume("c0")],
            [make_claim("c0"), make_class(provisioner="kubernetes.io/azure-file")],
            False,
            id="in-tree provisioner whose volumes do not count",
        ),
        pytest.param(
            [claim_volume("c0")],
            [
                make_claim("c0", volume_name="v0"),
                make_volume(aws_elastic_block_store={"volumeID": "aws://zone/vol-1"}),
            ],
            True,
            id="in-tree volume",
        ),
        pytest.param(
            [claim_volume("c0")],
            [make_claim("c0", volume_name="v0"), make_volume()],
            False,
            id="a volume that no driver serves",
        ),
        pytest.param([ebs("vol-1")], [], True, id="inline"),
        pytest.param([{"name": "d", "azureFile": {"shareName": "s"}}], [], False, id="inline, not counted"),
        pytest.param([{"name": "d", "csi": {"driver": DRIVER}}], [], False, id="inline CSI"),
    ],
)
def test_what_counts(volumes, objects, counted):
    """Volumes count for the driver that serves, or is going to serve, them."""
    assert counted != bool("n0" in feasible(limited(0, *objects), make_pod(volumes=tuple(volumes)), NODES))


def test_names_of_one_volume():
    """An in-tree volume is the same one inline, behind a claim, and with its zone in the name."""
    volume = make_volume(aws_elastic_block_store={"volumeID": "aws://zone/vol-1"})
    plugin = limited(1, make_claim("c0", volume_name="v0"), volume)
    placed = [user("u", "c0", node_name="n0")]

    assert ["n0", "n1"] == feasible(plugin, make_pod(volumes=(ebs("vol-1"),)), NODES, placed)
    assert ["n1"] == feasible(plugin, make_pod(volumes=(ebs("vol-2"),)), NODES, placed)


def test_attachments():
    """An attached volume counts beside those of pods, not twice with one, and again for a new user."""
    claims = list(bound_claims("a", "b"))
    attached = [make_attachment("x", DRIVER, "n0", "v-b"), make_attachment("y", DRIVER, "n0", "gone")]
    plugin = limited(1, *claims, *attached)

    assert {"n0": (FULL,)} == reasons(plugin, user("p", "a"), NODES)
    assert {"n0": (FULL,)} == reasons(plugin, user("p", "b"), NODES)
    assert {} == reasons(plugin, user("p", "b"), NODES, [user("u", "b", node_name="n0")])
    supposed = table(NODES).what_if("n0", add=[PodInfo(user("u", "b", node_name="n0"))])
    assert verdicts(plugin, user("p", "b"), supposed)["n0"].ok
    assert not verdicts(plugin, user("p", "a"), supposed)["n0"].ok


def test_missing_claim():
    """A claim that is not there rejects every node; a placed pod's does not count."""
    text = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    plugin = limited(1, *bound_claims("a"))

    assert dict.fromkeys(["n0", "n1"], (text,)) == reasons(plugin, user("p", "gone"), NODES)
    assert {} == reasons(plugin, user("p", "a"), NODES, [user("u", "gone", node_name="n0")])


def test_claims_of_other_pods():
    """An ephemeral claim that belongs to another pod is an error, a placed pod's where limits count."""
    pod = make_pod(volumes=(ephemeral(),))
    stranger = make_claim("p0-scratch", owner=make_pod("else"))
    text = "PVC default/p0-scratch was not created for pod default/p0 (pod is not owner)"
    placed = make_pod(volumes=(ephemeral(),), node_name="n0")

    assert dict.fromkeys(["n0", "n1"], (text,)) == reasons(limited(9, stranger), pod, NODES)
    found = verdicts(limited(9, stranger, *bound_claims("a")), user("p", "a"), table(NODES, [placed]))
    assert {"n0": "Error", "n1": "Success"} == {name: str(status.code) for name, status in found.items()}
    assert {} == reasons(limited(9, make_claim("p0-scratch", owner=pod)), pod, NODES)


def test_gate():
    """With VolumeLimitScaling a driver that asks for it has to be installed."""
    text = f"{DRIVER} CSI driver is not installed on the node"
    objects = [*bound_claims("a"), make_csi_driver(DRIVER, prevent_pod_scheduling_if_missing=True)]

    assert {} == reasons(limited(5, *objects), user("p", "a"), NODES)
    plugin = limited(5, *objects, gates={"VolumeLimitScaling": True})
    assert {"n1": (text,)} == reasons(plugin, user("p", "a"), NODES)


def test_skip():
    """Pods without claims and without volumes that a driver took over are not filtered."""
    plugin, nodes = limited(0), table(NODES)

    assert pre_filtered(plugin, CycleState(), make_pod(), nodes).status.skip
    assert not pre_filtered(plugin, CycleState(), make_pod(volumes=(ephemeral(),)), nodes).status.skip
    assert not pre_filtered(plugin, CycleState(), make_pod(volumes=(ebs("a"),)), nodes).status.skip


def test_hints():
    """What raises a limit, frees a volume or brings a claim is worth a try."""
    registered = make_plugin(NodeVolumeLimits).events_to_register()
    on_node, on_driver, on_driver_gone, on_new, on_csi_node, on_pod, on_claim, on_detaching = registered
    pod, before = user("p", "a"), make_csi_node("n0", {DRIVER: 5})
    needed, idle = make_csi_driver(DRIVER, prevent_pod_scheduling_if_missing=True), make_csi_driver(DRIVER)

    assert on_node.hint is on_new.hint is None
    assert QueueingHint.QUEUE == on_driver.hint(pod, needed, idle)
    assert QueueingHint.SKIP == on_driver.hint(pod, idle, needed)
    assert QueueingHint.QUEUE == on_driver_gone.hint(pod, needed, None)
    assert QueueingHint.QUEUE == on_csi_node.hint(pod, before, make_csi_node("n0", {DRIVER: 5, EBS: None}))
    assert QueueingHint.QUEUE == on_csi_node.hint(pod, before, make_csi_node("n0", {DRIVER: 6}))
    assert QueueingHint.QUEUE == on_csi_node.hint(pod, before, make_csi_node("n0", {DRIVER: None}))
    assert QueueingHint.SKIP == on_csi_node.hint(pod, before, make_csi_node("n0", {DRIVER: 4}))
    assert QueueingHint.QUEUE == on_pod.hint(pod, user("u", "b", node_name="n0"), None)
    assert QueueingHint.SKIP == on_pod.hint(pod, user("u", "b"), None)
    assert QueueingHint.SKIP == on_pod.hint(pod, user("u", node_name="n0"), None)
    assert QueueingHint.QUEUE == on_claim.hint(pod, None, make_claim("a"))
    assert QueueingHint.SKIP == on_claim.hint(pod, None, make_claim("b"))
    gone = make_attachment("x", EBS, "n0", "v")
    assert QueueingHint.QUEUE == on_detaching.hint(pod, gone, None)
    assert QueueingHint.QUEUE == on_detaching.hint(make_pod(volumes=(ebs("a"),)), gone, None)
    other = make_attachment("x", DRIVER, "n0", "v")
    assert QueueingHint.SKIP == on_detaching.hint(make_pod(volumes=(ebs("a"),)), other, None)


NAMES = ("a", "b", "c")
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"), st.integers(0, 3), st.sampled_from(NAMES), st.sampled_from(["n0", "n1", "n2"])
        ),
        st.tuples(st.just("claim"), st.sampled_from(NAMES), st.sampled_from(["", "v0", "v1"])),
        st.tuples(st.just("volume"), st.sampled_from(["v0", "v1"]), st.sampled_from(["", DRIVER])),
        st.tuples(
            st.just("attach"), st.integers(0, 1), st.sampled_from(["v0", "v1"]), st.sampled_from(["n0", "n2"])
        ),
        st.tuples(st.just("limit"), st.sampled_from(["n0", "n2"]), st.integers(0, 2)),
        st.tuples(st.just("node"), st.sampled_from(["n0", "n1", "n2"])),
        st.just(("ask",)),
    ),
    max_size=14,
)


class ChangingCluster:
    """A cluster that changes by steps; a step taken twice is undone."""

    def __init__(self):
        self.listers, self.cache, self.snapshot = (
            listers_with(make_class(provisioner=DRIVER)),
            Cache(),
            Snapshot(),
        )
        self.pods, self.here = {}, set()
        self.plugin = make_plugin(NodeVolumeLimits, listers=self.listers)
        put(self.listers, *map(make_claim, NAMES))
        for name in ("n0", "n1", "n2"):
            self.node(name)
            self.limit(name, 1)

    def pod(self, number, claim, node):
        old = self.pods.pop(number, None)
        if old is not None:
            self.cache.remove_pod(old)
        else:
            self.pods[number] = user(f"u{number}", claim, node_name=node)
            self.cache.add_pod(self.pods[number])

    def claim(self, name, volume):
        put(self.listers, make_claim(name, volume_name=volume))

    def volume(self, name, driver):
        put(self.listers, make_volume(name, driver=driver))

    def attach(self, number, volume, node):
        attachment = make_attachment(f"x{number}", DRIVER, node, volume)
        known = self.listers.volume_attachments.get(attachment.name)
        if known is None:
            put(self.listers, attachment)
        else:
            self.listers.volume_attachments.remove(known)

    def limit(self, name, limit):
        put(self.listers, make_csi_node(name, {DRIVER: limit}))

    def node(self, name):
        (self.cache.remove_node if name in self.here else self.cache.add_node)(make_node(name))
        self.here ^= {name}

    def ask(self):
        self.cache.update_snapshot(self.snapshot)
        for claim in NAMES:
            fresh = make_plugin(NodeVolumeLimits, listers=self.listers)
            assert codes(fresh, claim, self.snapshot) == codes(self.plugin, claim, self.snapshot)


@settings(deadline=None)
@given(steps)
def test_kept_up_to_date(steps):
    """However things came and went, the verdicts are those of a plugin that sees them for the first time."""
    cluster = ChangingCluster()
    for name, *arguments in [*steps, ("ask",)]:
        getattr(cluster, name)(*arguments)


def codes(plugin, claim, nodes):
    state, pod = CycleState(), user("p", claim)
    plugin.pre_filter(state, pod, nodes)
    found = plugin.filter(state, pod, nodes)
    alone = [plugin.filter(state, pod, nodes.what_if(name))[0] for name in nodes.names]
    assert alone == found.tolist()
    return alone
