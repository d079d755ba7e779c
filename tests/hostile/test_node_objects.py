"""Nodes of any size, as a kubelet's credentials suffice to write them, cost and keep what their size says."""

import pytest

from berth.objects.label_selector import Requirement
from berth.objects.node import ContainerImage
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm
from berth.objects.pods.pod_spec import Affinity, Container
from berth.objects.taint import Taint, Toleration
from berth.snapshot.columns.image_columns import MAX_NAMES, ImageColumns
from berth.snapshot.columns.node_columns import MAX_FEATURES
from berth.snapshot.columns.resource_columns import MAX_PLACES
from berth.testing.builders import ROOMY, make_pod
from tests.hostile.cluster import Cluster, changed, ordinary_node, waiting
from tests.hostile.work import calls, growth, kept_bytes

LINEAR = 1.2
GPU = "nvidia.com/gpu"


def resources(n, amount="2"):
    return {f"example.com/r{i}": amount for i in range(n)}


def has_all(n):
    expressions = tuple(Requirement(f"k{i}", "Exists") for i in range(n))
    return Affinity(NodeAffinity(NodeSelector((NodeSelectorTerm(expressions),))))


NODES = {
    "labels": (
        lambda n: {"metadata": {"labels": ordinary_node(0).labels | {f"k{i}": "v" for i in range(n)}}},
        lambda n: {"affinity": has_all(n)},
    ),
    "annotations": (
        lambda n: {"metadata": {"annotations": {f"k{i}": "v" for i in range(n)}}},
        lambda _: {},
    ),
    "taints": (
        lambda n: {"spec": {"taints": tuple(Taint("k", f"v{i}", "NoSchedule") for i in range(n))}},
        lambda n: {"tolerations": tuple(Toleration("k", "Equal", f"v{i}", "NoSchedule") for i in range(n))},
    ),
    "soft taints": (
        lambda n: {"spec": {"taints": tuple(Taint(f"k{i}", "v", "PreferNoSchedule") for i in range(n))}},
        lambda n: {"tolerations": tuple(Toleration(f"k{i}", "Exists") for i in range(n // 2))},
    ),
    "images": (
        lambda n: {"status": {"images": tuple(ContainerImage((f"i{i}:1",), 2**30) for i in range(n))}},
        lambda n: {"containers": [Container(f"c{i}", f"i{i}:1") for i in range(n)]},
    ),
    "names of an image": (
        lambda n: {"status": {"images": (ContainerImage(tuple(f"i{i}:1" for i in range(n)), 2**30),)}},
        lambda _: {},
    ),
    "extended resources": (
        lambda n: {"status": {"allocatable": dict(ROOMY) | resources(n)}},
        lambda n: {"requests": resources(n, "1")},
    ),
    "declared features": (
        lambda n: {"status": {"declared_features": tuple(f"f{i}" for i in range(n))}},
        lambda _: {},
    ),
}


def written_and_back(cluster, fields, pod):
    """A node is written, a pod tried, and the node is as before."""
    before = cluster.update_node(changed(ordinary_node(0), **fields))
    verdict = cluster.schedule(waiting(**pod))
    cluster.update_node(before)
    return verdict


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.close()


@pytest.mark.parametrize("shape", NODES)
def test_a_node_costs_what_its_size_says(shape, cluster):
    """Together with a pod of the same size that asks for all that it has."""
    node, pod = NODES[shape]

    def of_size(n):
        written_and_back(cluster, node(n), pod(n))
        return lambda: written_and_back(cluster, node(n), pod(n))

    assert growth(of_size, 100) < LINEAR


@pytest.mark.parametrize("shape", NODES)
def test_a_node_that_is_small_again_leaves_nothing(shape, cluster):
    """Neither columns nor room for them: beside what answers and signatures keep, a few kilobytes."""
    node, _ = NODES[shape]
    written_and_back(cluster, node(3000), {})

    assert kept_bytes(lambda: written_and_back(cluster, node(3000), {}), enough=100_000) < 100_000


@pytest.mark.parametrize("shape", NODES)
def test_a_large_node_takes_no_room_on_the_others(shape):
    """What only one node has takes as much memory beside 2,000 nodes as beside 20."""
    node, _ = NODES[shape]
    fields, kept = node(2000), []
    for size in (20, 2000):
        cluster = Cluster(size)
        large = changed(ordinary_node(0), **fields)
        cluster.update_node(large)
        cluster.update_node(ordinary_node(0))
        kept.append(kept_bytes(lambda c=cluster, n=large: c.update_node(n)))
        cluster.close()

    assert kept[1] < kept[0] + 3_000_000


def test_resources_beyond_the_places_count_like_any_other(cluster):
    """A node that offers more than there are places for takes pods by the same rule, and a place that is free
    goes to what waits for one."""
    crowd = changed(ordinary_node(0), status={"allocatable": dict(ROOMY) | resources(2 * MAX_PLACES)})
    cluster.update_node(crowd)
    cluster.update_node(changed(ordinary_node(1), status={"allocatable": dict(ROOMY) | {GPU: "1"}}))
    wants_gpu = {"requests": {GPU: "1"}}
    alone = cluster.schedule(waiting(**wants_gpu))
    apart = cluster.core.snapshot.resource_index(GPU)
    used = cluster.place(make_pod("uses-it", node_name="n1", **wants_gpu))
    full = cluster.schedule(waiting(**wants_gpu))
    cluster.update_node(ordinary_node(0))
    placed, still_full = cluster.core.snapshot.resource_index(GPU), cluster.schedule(waiting(**wants_gpu))
    cluster.remove(*used)

    assert ("n1", None) == (alone, apart)
    assert full == still_full
    assert full.startswith("0/8 nodes are available: 8 Insufficient nvidia.com/gpu.")
    assert placed is not None
    assert "n1" == cluster.schedule(waiting(**wants_gpu))


def test_a_resource_that_pods_held_before_a_node_offered_it_counts(cluster):
    """What is held of a resource without a place is not forgotten, nor is it once the place is given up."""
    cluster.place(make_pod("early", node_name="n1", requests={GPU: "1"}))
    offering = changed(ordinary_node(1), status={"allocatable": dict(ROOMY) | {GPU: "1"}})
    for _ in range(2):
        cluster.update_node(offering)

        assert "Insufficient" in cluster.schedule(waiting(requests={GPU: "1"}))
        assert 1 == int(cluster.core.snapshot.held(GPU)[1])

        cluster.update_node(ordinary_node(1))

        assert cluster.core.snapshot.offered(GPU) is None


def test_preemption_sees_resources_beyond_the_places(cluster):
    """A pod of higher priority makes room for itself where the resource that it needs has no place."""
    cluster.update_node(
        changed(ordinary_node(0), status={"allocatable": dict(ROOMY) | resources(2 * MAX_PLACES)})
    )
    cluster.update_node(changed(ordinary_node(1), status={"allocatable": dict(ROOMY) | {GPU: "1"}}))
    cluster.place(make_pod("low", node_name="n1", requests={GPU: "1"}, priority=0))
    nominated = []
    preemptor = waiting(requests={GPU: "1"}, priority=10)
    cluster.core.pod_handler.on_add(preemptor)
    nominated = cluster.nominated_by_turn(preemptor)
    cluster.core.pod_handler.on_delete(preemptor)

    assert "n1" == nominated


def test_labels_that_change_with_every_update_leave_nothing(cluster):
    """A value that no node has any more gives its number to the next one."""
    cluster.update_node(changed(ordinary_node(0), metadata={"labels": {"tick": "0", "common": "x"}}))
    snapshot = cluster.core.snapshot

    def tick(n):
        for i in range(n):
            labels = {"tick": f"t{i}", "kubernetes.io/hostname": f"h{i}"}
            cluster.update_node(changed(ordinary_node(0), metadata={"labels": labels}))
            snapshot.label("tick")
            snapshot.label("kubernetes.io/hostname")

    tick(10)

    assert kept_bytes(lambda: tick(1000), enough=50_000) < 50_000
    assert len(snapshot.label("kubernetes.io/hostname").values) <= 9


@pytest.mark.parametrize("shape", ["labels", "declared features", "names of an image"])
def test_a_thing_that_one_node_has_costs_a_place_in_a_table(shape):
    """A node of hundreds of thousands is taken over at once, and holds everything else up meanwhile."""
    change, _ = NODES[shape]

    def joining(n):
        cluster = Cluster(8)
        cluster.core.node_handler.on_add(changed(ordinary_node(9), **change(n)))
        return cluster.take_over

    assert calls(joining(4 * MAX_NAMES)) < calls(joining(MAX_NAMES)) + 100


def test_so_many_names_of_images_count():
    """ImageLocality looks at no more of a node than a kubelet reports."""
    change, _ = NODES["names of an image"]
    images = ImageColumns(64)
    images.set_row(0, changed(ordinary_node(0), **change(MAX_NAMES + 1)))

    assert 2**30 == images.size_bytes(f"i{MAX_NAMES - 1}:1")
    assert images.on_nodes(f"i{MAX_NAMES}:1", 1) is None


def test_so_many_declared_features_count(cluster):
    """A node that joins with hundreds of thousands is taken over in one step."""
    change, _ = NODES["declared features"]
    cluster.update_node(changed(ordinary_node(0), **change(MAX_FEATURES + 1)))
    snapshot = cluster.core.snapshot

    assert [True] + [False] * 7 == snapshot.declares(f"f{MAX_FEATURES - 1}").tolist()
    assert snapshot.declares(f"f{MAX_FEATURES}") is None
