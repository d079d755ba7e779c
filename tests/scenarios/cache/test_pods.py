"""What becomes of pods in the cache, between the watch and the scheduler's own decisions (core 3.1, 3.2)."""

import pytest

from berth.cache.errors import CacheCorruptedError, PodStateError
from berth.client.pods import Rejected
from berth.framework.status import SUCCESS
from tests.fakes import Permits, PreBinds
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import WAIT


async def assumed(**options):
    """A pod on its way to n0, whose binding was not observed."""
    cluster = Cluster(Permits("Waits", WAIT, 600), "NodeResourcesFit", **options)
    cluster.add_node("n0", cpu="2")
    cluster.add_pod(cpu="1")
    await cluster.run()
    assert "assumed" == cluster.where()
    return cluster


def on_node(cluster, name):
    info = cluster.cache.node_info(name)
    return sorted(pod.pod.name for pod in info.pods.values()) if info else None


async def test_3_1_1_the_cache_holds_pods_nodes_and_assumptions():
    """Pods by UID, nodes by name, ghosts among them."""
    cluster = await assumed()
    cluster.add_pod("p1", node_name="nowhere")

    assert (2, 1, 2) == (cluster.cache.pod_count(), cluster.cache.assumed_count(), cluster.cache.node_count())


async def test_3_1_2_a_pod_without_a_uid_is_refused():
    """All of them would be one pod."""
    cluster = await assumed()
    anonymous = cluster.cache.get_pod("default-p0").__class__.of()

    with pytest.raises(PodStateError, match="cannot get cache key for pod with empty UID"):
        cluster.cache.assume_pod(anonymous)


async def test_3_1_3_assumptions_never_expire():
    """A pod waits for its permission as long as it takes, and counts on its node."""
    cluster = await assumed()
    await cluster.tick(599)

    assert "assumed" == cluster.where()
    assert ["p0"] == on_node(cluster, "n0")


async def test_3_2_1_assuming_counts_at_once():
    """The next cycle sees the pod on its node."""
    cluster = await assumed()
    cluster.add_pod("p1", cpu="2")
    await cluster.run()

    assert ["p0"] == on_node(cluster, "n0")
    assert "pool" == cluster.where("p1")


async def test_3_2_2_a_known_pod_cannot_be_assumed():
    """Neither an assumed nor an observed one."""
    cluster = await assumed()
    pod = cluster.cache.get_pod("default-p0")

    with pytest.raises(
        PodStateError, match=r"pod default-p0\(default/p0\) is in the cache, so can't be assumed"
    ):
        cluster.cache.assume_pod(pod)


async def test_3_2_3_forgetting_an_unknown_pod_is_no_matter():
    """The binding of a pod that was deleted meanwhile is undone twice."""
    cluster = await assumed()
    pod = cluster.cache.get_pod("default-p0")
    cluster.cache.forget_pod(pod)
    cluster.cache.forget_pod(pod)

    assert [] == on_node(cluster, "n0")


async def test_3_2_4_forgetting_on_another_node_is_refused():
    """The pod is not where it is said to be."""
    cluster = await assumed()
    pod = cluster.cache.get_pod("default-p0").placed_on("n9")

    with pytest.raises(PodStateError, match=r"was assumed on n9 but assigned to n0"):
        cluster.cache.forget_pod(pod)


async def test_3_2_5_a_failed_binding_is_forgotten():
    """The node is free again."""
    cluster = Cluster("NodeResourcesFit")
    cluster.add_node("n0", cpu="2")
    cluster.pods_client.answer_next("bind", Rejected(403, "no"))
    cluster.add_pod(cpu="2")
    await cluster.run()

    assert [] == on_node(cluster, "n0")
    assert 0 == cluster.cache.assumed_count()


async def test_3_2_6_and_11_5_1_an_observed_pod_cannot_be_forgotten():
    """The binding was seen before its task failed: it stays on its node."""
    cluster = Cluster(PreBinds("Works"))
    cluster.add_node("n0")
    cluster.pods_client.answer_next("bind", Rejected(409, "late"), lands=True)
    cluster.pods_client.hold("bind")
    cluster.add_pod()
    await cluster.run()
    cluster.change_pod(spec={"node_name": "n0"})
    seen = cluster.where()
    with pytest.raises(PodStateError, match="wasn't assumed so cannot be forgotten"):
        cluster.cache.forget_pod(cluster.pod())
    cluster.pods_client.release("bind")
    await cluster.run()

    assert ("placed", "placed") == (seen, cluster.where())
    assert ["p0"] == on_node(cluster, "n0")


async def test_3_2_7_the_watch_confirms_an_assumption():
    """Before or after the binding's answer, the pod counts once."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.add_pod()
    cluster.watch.hold()
    await cluster.run()
    before = cluster.where()
    cluster.watch.release()

    assert ("assumed", "placed", ["p0"]) == (before, cluster.where(), on_node(cluster, "n0"))


async def test_3_2_8_and_11_5_2_a_pod_that_is_seen_on_another_node_is_there():
    """Another scheduler was faster: the assumed node is free, the real one is not."""
    cluster = await assumed()
    cluster.change_pod(spec={"node_name": "n1"})

    assert ([], ["p0"]) == (on_node(cluster, "n0"), on_node(cluster, "n1"))
    assert "placed" == cluster.where()


async def test_3_2_9_adding_twice_is_refused(caplog):
    """The state is left as it is."""
    cluster = Cluster()
    pod = cluster.add_pod(node_name="n0")
    cluster.core.pod_handler.on_add(pod)

    assert "pod default-p0(default/p0) was already in added state" in caplog.text
    assert ["p0"] == on_node(cluster, "n0")


async def test_3_2_10_only_observed_pods_can_be_updated():
    """Unknown and assumed ones are refused."""
    cluster = await assumed()
    pod = cluster.cache.get_pod("default-p0")
    stranger = cluster.add_pod("p9", scheduler_name="another")

    with pytest.raises(PodStateError, match=r"assumed pod default-p0.* should not be updated"):
        cluster.cache.update_pod(pod, pod)
    with pytest.raises(PodStateError, match="is not added to scheduler cache, so cannot be updated"):
        cluster.cache.update_pod(stranger, stranger)


async def test_3_2_11_an_update_counts_anew():
    """What the pod asks for now is what its node has less of."""
    cluster = Cluster()
    cluster.add_node("n0")
    pod = cluster.add_pod(node_name="n0", cpu="1")
    cluster.add_pod(node_name="n0", cpu="3")

    assert 3000 == cluster.cache.node_info("n0").requested["cpu"]
    assert "1" == pod.spec.containers[0].resources.requests["cpu"]


async def test_3_2_12_a_recreated_pod_may_come_as_an_update():
    """Old and new may have different UIDs."""
    cluster = Cluster()
    cluster.add_node("n0")
    cluster.add_pod(uid="old", node_name="n0")
    cluster.add_pod(uid="new", node_name="n0")

    assert (None, ["p0"]) == (cluster.cache.get_pod("old"), on_node(cluster, "n0"))


async def test_3_2_13_a_pod_that_moves_between_nodes_ends_the_process():
    """The cache cannot be trusted any more: neither an update nor a deletion may name another node."""
    cluster = Cluster()
    pod = cluster.add_pod(node_name="n0")

    with pytest.raises(CacheCorruptedError):
        cluster.core.pod_handler.on_update(pod, pod.placed_on("n1"))
    with pytest.raises(CacheCorruptedError):
        cluster.core.pod_handler.on_delete(pod.placed_on("n1"))


async def test_3_2_14_removing_an_unknown_pod_is_refused(caplog):
    """It is logged, and nothing else."""
    cluster = Cluster()
    pod = cluster.add_pod(node_name="n0")
    cluster.delete_pod()
    cluster.core.pod_handler.on_delete(pod)

    assert "is not found in scheduler cache, so cannot be removed from it" in caplog.text


async def test_3_2_15_a_removed_pod_need_not_name_its_node():
    """Whatever the last known state said, the cached pod is taken out."""
    cluster = await assumed()
    cluster.core.pod_handler.on_delete(cluster.pod(), final_state_unknown=True)

    assert [] == on_node(cluster, "n0")
    assert 0 == cluster.cache.assumed_count()


async def test_3_2_16_and_11_5_5_a_pod_before_its_node_makes_a_ghost():
    """It is in no snapshot; once its node comes, the pod is on it."""
    cluster = Cluster()
    cluster.add_pod(node_name="n0", cpu="1")
    cluster.cache.update_snapshot(cluster.snapshot)
    ghost = list(cluster.snapshot.names), cluster.cache.node_count()
    cluster.add_node("n0")
    cluster.cache.update_snapshot(cluster.snapshot)

    assert ([], 1) == ghost
    assert (["n0"], 1) == (cluster.snapshot.names, int(cluster.snapshot.pod_count[0]))


async def test_3_2_17_a_ghost_goes_with_its_last_pod():
    """Nothing is left of a node that never came."""
    cluster = Cluster()
    for name in ("p0", "p1"):
        cluster.add_pod(name, node_name="n0")
    cluster.delete_pod("p0")
    with_one = cluster.cache.node_count()
    cluster.delete_pod("p1")

    assert (1, 0) == (with_one, cluster.cache.node_count())


async def test_3_2_18_a_pod_that_is_deleted_before_its_binding_is_seen_leaves():
    """The watch shows the deletion only, with the state that it last knew."""
    cluster = Cluster(PreBinds("Works", SUCCESS))
    cluster.add_node("n0")
    cluster.pods_client.hold("bind")
    cluster.add_pod()
    await cluster.run()
    cluster.delete_pod()
    cluster.pods_client.release("bind")
    await cluster.run()

    assert ([], 0) == (on_node(cluster, "n0"), cluster.cache.pod_count())
