"""Pods that were promised a node (core 2.14)."""

from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo, NominatingMode, PostFilterResult
from berth.framework.status import SUCCESS, unschedulable
from tests.fakes import PostFilters
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import Doorkeeper

N1 = NominatingInfo(NominatingMode.OVERRIDE, "n1")
KEEP = PostFilters("Keeps", unschedulable("no way"))


def nominating(info=N1):
    return PostFilters("Nominates", SUCCESS, info)


def nominated(cluster, node):
    return [pod.name for pod in cluster.queue.nominator.nominated_pods_for_node(node)]


async def failed(*plugins, **fields):
    """A pod whose attempt failed."""
    cluster = Cluster(Doorkeeper(), *plugins)
    cluster.add_node("n1")
    cluster.add_pod(**fields)
    await cluster.run()
    return cluster


async def test_2_14_1_a_nomination_replaces_the_one_before():
    """A pod is nominated to one node at most."""
    cluster = await failed(nominating(), nominated_node_name="n0")

    assert ([], ["p0"]) == (nominated(cluster, "n0"), nominated(cluster, "n1"))


async def test_2_14_2_without_an_override_the_pods_status_counts():
    """No result, or one that leaves it, keeps the node of the status; an empty one is none."""
    kept = await failed(KEEP, nominated_node_name="n1")
    none = await failed(KEEP)

    assert (["p0"], []) == (nominated(kept, "n1"), nominated(none, "n1"))


async def test_2_14_3_and_11_4_3_a_pod_that_is_gone_is_not_nominated():
    """Nor is one that got a node meanwhile: the lister knows."""
    for change in (lambda c: c.delete_pod(), lambda c: c.change_pod(spec={"node_name": "n1"})):
        door = Doorkeeper()
        cluster = Cluster(door, nominating())
        cluster.add_node("n1")
        cluster.add_pod()
        door.during = lambda _, change=change, cluster=cluster: change(cluster)
        await cluster.run()

        assert [] == nominated(cluster, "n1")


async def test_2_14_4_and_11_4_4_and_10_11_an_empty_override_takes_it_back():
    """No node lists the pod afterwards."""
    cluster = await failed(nominating(CLEAR_NOMINATION), nominated_node_name="n1")

    assert [] == nominated(cluster, "n1")
    assert "" == cluster.nomination()


async def test_2_14_5_and_11_4_1_an_update_that_knows_of_none_leaves_it():
    """The API's status has yet to show what was decided here."""
    cluster = Cluster(Doorkeeper(), nominating())
    cluster.add_node("n1")
    cluster.add_pod()
    cluster.pods_client.hold("patch_status")
    await cluster.run()
    cluster.change_pod(labels={"a": "b"})

    assert ["p0"] == nominated(cluster, "n1")
    assert "" == cluster.nomination()


async def test_2_14_6_and_11_4_2_otherwise_updates_decide():
    """A node that appears in the status counts, and one that goes is gone."""
    cluster = await failed(KEEP)
    cluster.change_pod(status={"nominated_node_name": "n2"})
    set_by_update = nominated(cluster, "n2")
    cluster.change_pod(status={"nominated_node_name": ""})

    assert (["p0"], []) == (set_by_update, nominated(cluster, "n2"))


async def test_2_14_7_deletion_takes_it_back():
    """By UID; twice is no matter."""
    cluster = await failed(nominating())
    pod = cluster.pod()
    cluster.delete_pod()
    cluster.queue.nominator.delete(pod)

    assert [] == nominated(cluster, "n1")


async def test_2_14_8_nominations_are_listed_in_their_order():
    """The first promise first, with the pods as the queue has them."""
    cluster = Cluster(Doorkeeper(), nominating())
    cluster.add_node("n1")
    for name in ("b", "a", "c"):
        cluster.add_pod(name, priority=7)
        await cluster.run()

    assert ["b", "a", "c"] == nominated(cluster, "n1")
    assert {7} == {pod.priority for pod in cluster.queue.nominator.nominated_pods_for_node("n1")}


async def test_2_14_9_and_10_12_in_flight_only_the_name_is_known():
    """Priority 0 and no requests: it does not count against others."""
    cluster = await failed(nominating(), priority=7, cpu="1")
    async with cluster.paused():
        cluster.queue.activate([cluster.pod()])
        cluster.queue.pop()
        (pod,) = cluster.queue.nominator.nominated_pods_for_node("n1")

        assert ("p0", 0, ()) == (pod.name, pod.priority, pod.spec.containers)


async def test_2_14_10_being_assumed_takes_it_back():
    """The pod counts on its node from then on."""
    door = Doorkeeper()
    cluster = Cluster(door, nominating())
    cluster.add_node("n1")
    cluster.add_pod()
    await cluster.run()
    door.open()
    cluster.add_node("n2")
    cluster.watch.hold()
    await cluster.tick(2)

    assert "assumed" == cluster.where()
    assert [] == nominated(cluster, "n1")


async def test_2_14_11_a_result_without_a_nomination_leaves_it():
    """An absent nomination behaves as one that says to leave it."""
    assert None is PostFilterResult(SUCCESS).nominating_info
    cluster = await failed(PostFilters("Silent", SUCCESS), nominated_node_name="n1")

    assert (["p0"], "n1") == (nominated(cluster, "n1"), cluster.nomination())
