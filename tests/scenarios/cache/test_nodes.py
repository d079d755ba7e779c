"""Nodes in the cache, in the order of the tree, and in the snapshot (core 3.3 to 3.9)."""

import pytest

from berth.objects.node import ContainerImage
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    Resources,
)
from tests.fakes import Permits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import WAIT, Doorkeeper
from tests.unit.snapshot.facts import facts

ZONE = "topology.kubernetes.io/zone"
LEGACY_ZONE = "failure-domain.beta.kubernetes.io/zone"


def seen(cluster):
    """The snapshot, up to date."""
    cluster.cache.update_snapshot(cluster.snapshot)
    return cluster.snapshot


def in_order(cluster):
    """The nodes in the order of a search."""
    snapshot = seen(cluster)
    return [snapshot.names[row] for row in snapshot.search_rows()]


def zoned(cluster, **zones):
    for zone, names in zones.items():
        for name in names.split():
            cluster.add_node(name, labels={ZONE: zone})
    return cluster


# 3.3, 3.4.


async def test_3_3_1_a_ghost_becomes_real_with_its_pods():
    """Whichever comes first, pods or node."""
    cluster = Cluster()
    cluster.add_pod(node_name="n0", cpu="1")
    cluster.add_node("n0")

    assert 1000 == seen(cluster).requested[0, 0]


async def test_3_3_2_an_update_of_an_unknown_node_adds_it():
    """The handlers may have missed its creation."""
    cluster = Cluster()
    node = cluster.add_node("n0")
    cluster.remove_node("n0")
    cluster.core.node_handler.on_update(node, node)

    assert ["n0"] == seen(cluster).names


async def test_3_3_3_removing_an_unknown_node_is_an_error():
    """A ghost is no node."""
    cluster = Cluster()
    cluster.add_pod(node_name="n0")
    node = cluster.add_node("n1")
    cluster.remove_node("n1")

    with pytest.raises(KeyError, match="node n1 is not found"):
        cluster.cache.remove_node(node)


async def test_3_3_4_and_11_5_3_a_removed_node_keeps_its_pods_as_a_ghost():
    """It is in no snapshot; it goes with its last pod, or comes back with all of them."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.add_pod(node_name="n0")
    cluster.remove_node("n0")
    gone = list(seen(cluster).names), cluster.cache.node_count()
    cluster.add_node("n0")
    back = int(seen(cluster).pod_count[0])
    cluster.remove_node("n0")
    cluster.delete_pod()

    assert (([], 1), 1, 0) == (gone, back, cluster.cache.node_count())


async def test_3_3_5_a_pod_moves_with_its_recreation():
    """A pod of the same name on another node is another pod: each node has what is on it."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.add_node("n1")
    cluster.add_pod(uid="first", node_name="n0")
    cluster.delete_pod()
    cluster.add_pod(uid="second", node_name="n1")
    snapshot = seen(cluster)

    assert {"n0": 0, "n1": 1} == dict(zip(snapshot.names, snapshot.pod_count.tolist(), strict=True))


async def test_3_4_1_every_change_gives_a_generation():
    """And nothing else does but the first look at the cluster."""
    cluster = Cluster()
    generations = [seen(cluster).generation]
    for change in (
        lambda: cluster.add_node("n0"),
        lambda: cluster.add_pod(node_name="n0"),
        lambda: None,
        cluster.delete_pod,
        lambda: cluster.remove_node("n0"),
    ):
        change()
        generations.append(seen(cluster).generation)

    assert [1, 2, 3, 3, 4, 5] == generations


async def test_3_4_2_no_generation_is_used_twice():
    """A node that comes back is a change like any other."""
    cluster = Cluster()
    found = []
    for _ in range(3):
        cluster.add_node("n0")
        found.append(seen(cluster).generation)
        cluster.remove_node("n0")
        found.append(seen(cluster).generation)

    assert sorted(set(found)) == found


# 3.5.


async def test_3_5_1_a_cycle_sees_what_happened_before_it():
    """And not what happens in the middle of it."""
    door = Doorkeeper()
    cluster = Cluster(door)
    cluster.add_node("n0")
    sizes = []
    door.during = lambda _: (
        cluster.node("n1") or (cluster.add_node("n1"), sizes.append(len(cluster.snapshot)))
    )
    cluster.add_pod()
    await cluster.run()

    assert [1] == sizes
    assert 2 == len(cluster.snapshot)


async def test_3_5_2_ghosts_are_left_out():
    """Only nodes that exist have rows."""
    cluster = zoned(Cluster(), a="a1")
    cluster.add_pod(node_name="ghost")

    assert ["a1"] == seen(cluster).names


async def test_3_5_3_removed_nodes_leave():
    """With all that was counted on them."""
    cluster = zoned(Cluster(), a="a1 a2 a3")
    cluster.add_pod(node_name="a1")
    seen(cluster)
    cluster.remove_node("a1")

    assert {"a2", "a3"} == set(seen(cluster).names)
    assert facts(cluster.cache.fresh_snapshot()) == facts(cluster.snapshot)


async def test_3_5_4_derived_lists_follow_pods():
    """Pods with anti-affinity and used claims are known as they come and go."""
    away = PodAffinity((PodAffinityTerm(topology_key=ZONE),))
    cluster = zoned(Cluster(), a="a1")
    cluster.add_pod(
        node_name="a1",
        affinity=Affinity(pod_anti_affinity=away),
        volumes=({"persistentVolumeClaim": {"claimName": "data"}},),
    )
    snapshot = seen(cluster)
    held = len(list(snapshot.placed.terms.held())), dict(snapshot.claims)
    cluster.delete_pod()

    assert (1, {"default/data": 1}) == held
    assert {} == seen(cluster).claims


async def test_3_5_5_an_unknown_node_cannot_be_looked_up():
    """A KeyError that names it."""
    with pytest.raises(KeyError, match="n9"):
        seen(zoned(Cluster(), a="a1")).what_if("n9")


# 3.6.


async def test_3_6_1_requests_are_summed_in_the_schedulers_units():
    """CPU in milli, the rest in whole units; names that are not accounted for are dropped."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.add_pod(
        node_name="n0",
        requests={
            "cpu": "100.5m",
            "memory": "1Ki",
            "example.com/gpu": "2",
            "hugepages-2Mi": "4Mi",
            "odd": "1",
        },
    )

    assert {"cpu": 101, "memory": 1024, "example.com/gpu": 2, "hugepages-2Mi": 4 << 20} == {
        name: amount for name, amount in cluster.cache.node_info("n0").requested.items() if amount
    }


async def test_3_6_2_containers_without_requests_count_something():
    """100m and 200 MiB for scoring; an explicit zero is a request."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.add_pod("p0", node_name="n0")
    silent = list(cluster.cache.node_info("n0").non_zero)
    cluster.add_pod("p1", node_name="n0", requests={"cpu": "0", "memory": "0"})

    assert [100, 209715200] == silent == list(cluster.cache.node_info("n0").non_zero)


async def test_3_6_3_ports_are_those_of_containers_and_sidecars():
    """Only host ports; TCP and every address unless said otherwise."""
    cluster = Cluster()
    cluster.add_node("n0")
    sidecar = Container("side", ports=(ContainerPort(90),), restart_policy="Always")
    once = Container("once", ports=(ContainerPort(91),))
    main = Container("main", ports=(ContainerPort(80), ContainerPort(0, container_port=8080)))
    cluster.add_pod(node_name="n0", containers=(main,), init_containers=(sidecar, once))

    ports = cluster.cache.node_info("n0").ports
    assert {("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 90)} == {(p.ip, p.protocol, p.port) for p in ports}


async def test_3_6_4_claims_are_counted_by_pod():
    """A claim is used as long as one pod uses it."""
    cluster = Cluster()
    cluster.add_node("n0")
    volume = ({"persistentVolumeClaim": {"claimName": "data"}},)
    for name in ("p0", "p1"):
        cluster.add_pod(name, node_name="n0", volumes=volume)
    two = dict(cluster.cache.node_info("n0").claims)
    cluster.delete_pod("p0")

    assert ({"default/data": 2}, {"default/data": 1}) == (two, cluster.cache.node_info("n0").claims)


async def test_3_6_5_init_containers_count_by_their_maximum():
    """Whatever runs at one time is what the pod needs."""
    cluster = Cluster()
    cluster.add_node("n0")
    big = Container("big", resources=Resources(requests={"cpu": "3"}))
    main = Container("main", resources=Resources(requests={"cpu": "1"}))
    cluster.add_pod(node_name="n0", containers=(main, main), init_containers=(big,), overhead={"cpu": "500m"})

    assert 3500 == cluster.cache.node_info("n0").requested["cpu"]


async def test_3_6_6_removing_a_pod_that_is_not_there_is_an_error():
    """The sums are left as they are."""
    cluster = Cluster()
    cluster.add_node("n0")

    with pytest.raises(KeyError):
        cluster.cache.node_info("n0").remove_pod("missing")


# 3.7.


async def test_3_7_1_the_first_report_of_an_image_sets_its_size():
    """Later ones do not, until the last node that has it is gone."""
    cluster = Cluster()
    image = "app:1"
    for name, size in (("n0", 10), ("n1", 20)):
        cluster.add_node(name, images={image: size})
        seen(cluster)
    sizes = [(cluster.snapshot.images.size_bytes(image), cluster.snapshot.images.holders(image))]
    cluster.remove_node("n0")
    seen(cluster)
    sizes.append((cluster.snapshot.images.size_bytes(image), cluster.snapshot.images.holders(image)))
    cluster.remove_node("n1")
    seen(cluster)
    cluster.add_node("n2", images={image: 30})
    seen(cluster)
    sizes.append((cluster.snapshot.images.size_bytes(image), cluster.snapshot.images.holders(image)))

    assert [(10, 2), (10, 1), (30, 1)] == sizes


async def test_3_7_2_each_name_of_an_image_is_an_entry():
    """All of them are found."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.change_node("n0", status={"images": (ContainerImage(("app:1", "app:latest"), 5),)})

    assert [5, 5] == [seen(cluster).images.size_bytes(name) for name in ("app:1", "app:latest")]


# 3.8.


async def test_3_8_1_and_11_5_4_a_search_takes_one_node_of_each_zone_in_turn():
    """Zones of three, one and two nodes."""
    cluster = zoned(Cluster(), a="a1 a2 a3", b="b1", c="c1 c2")

    assert ["a1", "b1", "c1", "a2", "c2", "a3"] == in_order(cluster)


async def test_3_8_2_zones_and_nodes_stand_in_the_order_of_arrival():
    """A zone that becomes empty and reappears is the last one."""
    cluster = zoned(Cluster(), a="a1", b="b1 b2", c="c1")
    cluster.remove_node("a1")
    cluster.add_node("a9", labels={ZONE: "a"})
    cluster.remove_node("b1")

    assert ["b2", "c1", "a9"] == in_order(cluster)


async def test_3_8_3_legacy_labels_count_first():
    """The present name counts only where the legacy key is absent; no labels are a zone, too."""
    cluster = Cluster()
    cluster.add_node("old", labels={LEGACY_ZONE: "x", ZONE: "y"})
    cluster.add_node("x1", labels={ZONE: "x"})
    cluster.add_node("y1", labels={ZONE: "y"})
    cluster.add_node("none")

    assert ["old", "y1", "none", "x1"] == in_order(cluster)


async def test_3_8_4_and_10_7_a_node_that_changes_zones_goes_to_the_end_of_the_new_one():
    """Known to the next search; upstream's waits for the next node that comes or goes."""
    cluster = zoned(Cluster(), a="a1 a2", b="b1")
    cluster.change_node("a1", labels={ZONE: "b"})

    assert ["a2", "b1", "a1"] == in_order(cluster)


async def test_3_8_5_a_region_is_part_of_the_zone():
    """The same zone name in another region is another zone."""
    cluster = Cluster()
    for name, region in (("a1", "r1"), ("a2", "r1"), ("b1", "r2")):
        cluster.add_node(name, labels={ZONE: "z", "topology.kubernetes.io/region": region})

    assert ["a1", "b1", "a2"] == in_order(cluster)


# 3.9.


async def test_3_9_1_the_cache_shows_its_size():
    """Assumed pods, all pods, and nodes with ghosts."""
    cluster = Cluster(Permits("Waits", WAIT, 60))
    cluster.add_node("n0")
    cluster.add_pod("p0")
    cluster.add_pod("p1", node_name="ghost")
    await cluster.run()

    assert [1, 2, 2] == [
        cluster.metric("cache_size", type=kind) for kind in ("assumed_pods", "pods", "nodes")
    ]
