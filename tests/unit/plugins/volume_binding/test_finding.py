"""PreFilter, Filter and Score of VolumeBinding."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.node_selector import NodeSelector, NodeSelectorTerm
from berth.objects.volumes.storage import SELECTED_NODE, TopologyRequirement, TopologyTerm, VolumeNodeAffinity
from berth.plugins.volume_binding import VolumeBinding
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.storage import (
    claim_volume,
    listers_with,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)
from berth.testing.verdicts import pre_filtered, raw_scores, reasons

REACH = "node(s) didn't match PersistentVolume's node affinity"
NONE = "node(s) didn't find available persistent volumes to bind"
FULL = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
DRIVER = "csi.example.com"
NODES = [make_node(f"n{i}", labels={"host": f"n{i}", "zone": "ab"[i // 2]}) for i in range(3)]
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def plugin_with(*objects, **settings):
    return make_plugin(VolumeBinding, listers=listers_with(make_class(), *objects), **settings)


def pod_with(*claims, **fields):
    return make_pod(volumes=tuple(map(claim_volume, claims)), **fields)


def chosen(plugin, pod, nodes=NODES):
    """What each node that fits would give: volumes by claim, and claims for new volumes."""
    state, snapshot = CycleState(), table(nodes)
    assert plugin.pre_filter(state, pod, snapshot).status.ok
    codes = plugin.filter(state, pod, snapshot)
    fitting = [name for name, code in zip(snapshot.names, codes, strict=True) if not code]
    found = {name: plugin.volumes_on(state, snapshot, name) for name in fitting}
    return {
        name: ({claim.name: volume.name for claim, volume in here.static}, [c.name for c in here.provisions])
        for name, here in found.items()
    }


def on(*names):
    return {"near": {"host": names}}


def deleted(obj):
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=LATER))


SCRATCH = {"name": "s", "ephemeral": {"volumeClaimTemplate": {}}}


@pytest.mark.parametrize(
    ("objects", "volume", "text"),
    [
        ([], claim_volume("c0"), 'persistentvolumeclaim "c0" not found'),
        (
            [],
            SCRATCH,
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p0-s"',
        ),
        (
            [make_claim("c0", volume_name="v", phase="Lost")],
            claim_volume("c0"),
            'persistentvolumeclaim "c0" bound to non-existent persistentvolume "v"',
        ),
        ([deleted(make_claim("c0"))], claim_volume("c0"), 'persistentvolumeclaim "c0" is being deleted'),
        (
            [make_claim("p0-s")],
            SCRATCH,
            "PVC default/p0-s was not created for pod default/p0 (pod is not owner)",
        ),
        (
            [make_claim("c0", storage_class="now"), make_class("now", mode="Immediate")],
            claim_volume("c0"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [make_claim("c0", volume_name="v", bound=False)],
            claim_volume("c0"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [make_claim("c0", storage_class="gone")],
            claim_volume("c0"),
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [make_claim("c0", storage_class="silent"), make_class("silent", mode=None)],
            claim_volume("c0"),
            'VolumeBindingMode not set for StorageClass "silent"',
        ),
    ],
)
def test_claims_that_end_the_attempt(objects, volume, text):
    """A claim that cannot be bound with the pod is rejected before any node is looked at."""
    result = pre_filtered(plugin_with(*objects), CycleState(), make_pod(volumes=(volume,)), table(NODES))

    assert (text,) == result.status.reasons


def test_skip():
    """A pod without claims is not filtered."""
    assert pre_filtered(plugin_with(), CycleState(), make_pod(), table(NODES)).status.skip


def test_bound_claims():
    """A node has to be in reach of every bound volume, and each of them has to be there."""
    objects = [
        make_claim("far", volume_name="v-far"),
        make_volume("v-far", **on("n0", "n1")),
        make_claim("any", volume_name="v-any"),
        make_volume("v-any"),
        make_claim("lost", volume_name="v-lost"),
    ]
    plugin = plugin_with(*objects)

    assert {"n2": (REACH,)} == reasons(plugin, pod_with("any", "far"), NODES)
    assert {"n0": (GONE,), "n1": (GONE,), "n2": (REACH,)} == reasons(plugin, pod_with("far", "lost"), NODES)


def test_fields_in_a_volumes_affinity():
    """Only labels are asked about; a term that cannot be parsed holds nowhere."""
    field = Requirement("metadata.name", "In", ("n9",))
    terms = (NodeSelectorTerm((), (field,)),)
    broken = (NodeSelectorTerm((), (Requirement("metadata.name", "Exists", ()),)), NodeSelectorTerm())
    for required, rejected in ((terms, 0), (broken, 3)):
        affinity = VolumeNodeAffinity(NodeSelector(required))
        plugin = plugin_with(make_claim("c0", volume_name="v0"), make_volume("v0", node_affinity=affinity))
        assert rejected == len(reasons(plugin, pod_with("c0"), NODES))


def test_migrated_volume():
    """Where a driver took the plugin over, the volume's zone is looked up under the driver's label."""
    zone = {"near": {"topology.kubernetes.io/zone": ["a"]}}
    volume = make_volume("v0", aws_elastic_block_store={"volumeID": "vol-1"}, **zone)
    nodes = [
        make_node("old", labels={"topology.kubernetes.io/zone": "a"}),
        make_node("new", labels={"topology.kubernetes.io/zone": "b", "topology.ebs.csi.aws.com/zone": "a"}),
        make_node("off", labels={"topology.kubernetes.io/zone": "a"}),
    ]
    migrated = [make_csi_node(name, {}, migrated="x,kubernetes.io/aws-ebs") for name in ("new", "off")]
    plugin = plugin_with(make_claim("c0", volume_name="v0"), volume, *migrated)

    assert {"off": (REACH,)} == reasons(plugin, pod_with("c0"), nodes)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param([make_volume("a", size="5Gi"), make_volume("b", size="2Gi")], "b", id="the smallest"),
        pytest.param(
            [make_volume("a", size="2Gi"), make_volume("b", size="2Gi")], "a", id="the first of a size"
        ),
        pytest.param([make_volume("a", size="1023Mi")], None, id="too small"),
        pytest.param([make_volume("a", storage_class="other")], None, id="another class"),
        pytest.param([make_volume("a", phase="Released")], None, id="not available"),
        pytest.param([make_volume("a", modes=["ReadOnlyMany"])], None, id="other access modes"),
        pytest.param([make_volume("a", volume_mode="Block")], None, id="another mode"),
        pytest.param([make_volume("a", volume_mode="Filesystem")], "a", id="the default mode"),
        pytest.param([make_volume("a", volume_attributes_class_name="x")], None, id="other attributes"),
        pytest.param([deleted(make_volume("a"))], None, id="being deleted"),
        pytest.param([make_volume("a", kept_for=make_claim("c1"))], None, id="kept for another"),
        pytest.param(
            [make_volume("a", size="1Gi"), make_volume("b", size="9Gi", kept_for=make_claim("c0"))],
            "b",
            id="kept for the claim",
        ),
        pytest.param(
            [make_volume("a"), make_volume("b", kept_for=make_claim("c0"), **on("n9"))],
            None,
            id="kept for the claim and out of reach",
        ),
        pytest.param(
            [make_volume("a", kept_for=make_claim("c0"), phase="Bound")], "a", id="kept in any phase"
        ),
    ],
)
def test_one_claim(volumes, expected):
    """A claim gets the smallest free volume that will do, unless one is kept for it."""
    found = chosen(plugin_with(make_claim("c0"), *volumes), pod_with("c0"))

    assert (dict.fromkeys(["n0", "n1", "n2"], ({"c0": expected}, [])) if expected else {}) == found


def test_selector():
    """A claim may ask for labels."""
    volumes = [make_volume("a"), make_volume("b", labels={"speed": "fast"})]
    claim = make_claim("c0", selector=LabelSelector({"speed": "fast"}))

    assert ({"c0": "b"}, []) == chosen(plugin_with(claim, *volumes), pod_with("c0"))["n0"]


def test_several_claims():
    """Small claims choose first, nothing is chosen twice on a node, and each node chooses for itself."""
    volumes = [
        make_volume("a0", size="1Gi", **on("n0")),
        make_volume("b0", size="3Gi", **on("n0")),
        make_volume("a1", size="2Gi", **on("n1")),
        make_volume("any", size="4Gi"),
    ]
    claims = [make_claim("large", size="2Gi"), make_claim("small", size="1Gi")]

    assert {
        "n0": ({"small": "a0", "large": "b0"}, []),
        "n1": ({"small": "a1", "large": "any"}, []),
    } == chosen(plugin_with(*claims, *volumes), pod_with("large", "small"))


def test_a_claim_used_twice():
    """Each use takes a volume of its own."""
    volumes = [make_volume("a", size="1Gi"), make_volume("b", size="2Gi", **on("n0"))]
    plugin = plugin_with(make_claim("c0"), *volumes)

    assert {"n0"} == chosen(plugin, pod_with("c0", "c0")).keys()
    kept = plugin_with(make_claim("c0"), make_volume("a", kept_for=make_claim("c0")))
    assert {} == chosen(kept, pod_with("c0", "c0"))


def test_many_volumes_for_any_node():
    """Volumes that reach every node are offered in steps, with the same outcome."""
    volumes = [make_volume(f"v{i}", size=f"{9 - i % 9}Gi") for i in range(40)]
    claims = [make_claim("a", size="3Gi"), make_claim("b", size="3Gi"), make_claim("c", size="9Gi")]

    assert dict.fromkeys(["n0", "n1", "n2"], ({"a": "v6", "b": "v15", "c": "v0"}, [])) == chosen(
        plugin_with(*claims, *volumes), pod_with("a", "b", "c")
    )


def test_new_volumes():
    """What no free volume serves is made, where the class may; the allowed topologies are alternatives."""
    zone_b = (TopologyTerm((TopologyRequirement("zone", ("b", "c")),)),)
    objects = [
        make_class("made", provisioner=DRIVER),
        make_class("b-only", provisioner=DRIVER, allowed_topologies=zone_b),
        make_class("nowhere", provisioner=DRIVER, allowed_topologies=(TopologyTerm(),)),
        make_claim("free", storage_class="made"),
        make_claim("in-b", storage_class="b-only"),
        make_claim("no", storage_class="nowhere"),
        make_volume("v", storage_class="made", **on("n0")),
    ]
    plugin = plugin_with(*objects)

    assert {
        "n0": ({"free": "v"}, []),
        "n1": ({}, ["free"]),
        "n2": ({}, ["free"]),
    } == chosen(plugin, pod_with("free"))
    assert {"n0": (NONE,), "n1": (NONE,)} == reasons(plugin, pod_with("in-b"), NODES)
    assert dict.fromkeys(["n0", "n1", "n2"], (NONE,)) == reasons(plugin, pod_with("no"), NODES)


def test_selected_node():
    """A claim whose node is selected is made there and nowhere else, whatever volumes are free."""
    claim = make_claim("c0", storage_class="made", annotations={SELECTED_NODE: "n1"})
    plugin = plugin_with(
        make_class("made", provisioner=DRIVER), claim, make_volume("v", storage_class="made")
    )

    assert {"n1": ({}, ["c0"])} == chosen(plugin, pod_with("c0"))
    assert (NONE,) == reasons(plugin, pod_with("c0"), NODES)["n0"]


@pytest.mark.parametrize(
    ("capacity", "enough"),
    [
        (make_capacity("x", "made", "10Gi", node_topology=LabelSelector()), True),
        (make_capacity("x", "made", "9Gi", node_topology=LabelSelector()), False),
        (make_capacity("x", "made", "99Gi", maximum_volume_size="9Gi", node_topology=LabelSelector()), False),
        (make_capacity("x", "made", "1Gi", maximum_volume_size="10Gi", node_topology=LabelSelector()), True),
        (make_capacity("x", "made", None, node_topology=LabelSelector()), False),
        (make_capacity("x", "made", "10Gi"), False),
        (make_capacity("x", "other", "10Gi", node_topology=LabelSelector()), False),
        (make_capacity("x", "made", "10Gi", node_topology=LabelSelector({"zone": "z"})), False),
    ],
)
def test_capacity(capacity, enough):
    """Where the driver reports capacities, one of them has to reach the node and be enough for the claim."""
    objects = [make_class("made", provisioner=DRIVER), make_claim("c0", storage_class="made", size="10Gi")]
    tracked = plugin_with(*objects, capacity, make_csi_driver(DRIVER, storage_capacity=True))
    untracked = plugin_with(*objects, capacity, make_csi_driver(DRIVER))

    assert ({} if enough else dict.fromkeys(["n0", "n1", "n2"], (FULL,))) == reasons(
        tracked, pod_with("c0"), NODES
    )
    assert {} == reasons(untracked, pod_with("c0"), NODES)


def test_several_reasons():
    """A node may be out of reach and without volumes at once."""
    far = make_claim("far", volume_name="v")
    objects = [far, make_volume("v", kept_for=far, **on("n0")), make_claim("c0")]

    assert {"n0": (NONE,), "n1": (REACH, NONE), "n2": (REACH, NONE)} == reasons(
        plugin_with(*objects), pod_with("far", "c0"), NODES
    )


def test_changes_between_pods():
    """Volumes that come, go, change class or are assumed taken are seen by the next pod."""
    plugin = plugin_with(make_claim("c0"), make_volume("a"))
    listers = plugin.handle.listers
    assert ({"c0": "a"}, []) == chosen(plugin, pod_with("c0"))["n0"]
    listers.persistent_volumes.put(make_volume("a", storage_class="other"))
    listers.persistent_volumes.put(make_volume("b"))
    assert ({"c0": "b"}, []) == chosen(plugin, pod_with("c0"))["n0"]
    listers.assumed_volumes.assume(make_volume("b", kept_for=make_claim("c9")))
    assert {} == chosen(plugin, pod_with("c0"))
    listers.persistent_volumes.put(make_volume("b", version="2"))
    assert ({"c0": "b"}, []) == chosen(plugin, pod_with("c0"))["n0"]
    listers.persistent_volumes.remove(make_volume("b"))
    assert {} == chosen(plugin, pod_with("c0"))


def test_scores_of_storage():
    """With StorageCapacityScoring nodes score by how full their volumes or capacities would be."""
    objects = [
        make_class("made", provisioner=DRIVER),
        make_csi_driver(DRIVER, storage_capacity=True),
        make_claim("c0", storage_class="made", size="25Gi"),
        make_volume("v", storage_class="made", size="50Gi", **on("n0")),
        make_capacity("x", "made", "100Gi", node_topology=LabelSelector({"host": "n1"})),
    ]
    shape = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
    plugin = plugin_with(
        *objects, args=VolumeBindingArgs(shape=shape), gates={"StorageCapacityScoring": True}
    )
    nodes, state, pod = table(NODES), CycleState(), pod_with("c0")
    plugin.pre_filter(state, pod, nodes)

    assert [50, 75, 0] == plugin.score(state, pod, nodes).tolist()
    assert [0, 0, 0] == raw_scores(plugin, make_pod(), nodes).tolist()
    assert raw_scores(plugin_with(), make_pod(), nodes) is None


VOLUMES = st.lists(
    st.tuples(
        st.sampled_from(["1Gi", "2Gi", "3Gi"]),
        st.sampled_from([None, ("n0",), ("n1", "n2"), ("n2",)]),
        st.sampled_from([None, None, "c0", "c1"]),
        st.sampled_from(["wait", "made"]),
    ),
    max_size=6,
)
CLAIMS = st.lists(
    st.tuples(
        st.sampled_from(["1Gi", "2Gi"]),
        st.sampled_from(["wait", "made"]),
        st.sampled_from([None, None, "n1"]),
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(CLAIMS, VOLUMES)
def test_one_node_at_a_time(claims, volumes):
    """What all nodes together would give is what each node alone would."""
    objects = [make_class("made", provisioner=DRIVER)]
    for i, (size, storage_class, selected) in enumerate(claims):
        notes = {SELECTED_NODE: selected} if selected else None
        objects.append(make_claim(f"c{i}", size=size, storage_class=storage_class, annotations=notes))
    for i, (size, hosts, kept, storage_class) in enumerate(volumes):
        objects.append(
            make_volume(
                f"v{i}",
                size=size,
                storage_class=storage_class,
                near=hosts and {"host": hosts},
                kept_for=kept and make_claim(kept),
            )
        )
    plugin, pod = plugin_with(*objects), pod_with(*(f"c{i}" for i in range(len(claims))))
    alone = {}
    for node in NODES:
        alone |= chosen(plugin, pod, [node])

    assert alone == chosen(plugin, pod)
