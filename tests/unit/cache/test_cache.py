"""The cache's state table, case by case."""

import pytest

from berth.cache.cache import Cache
from berth.cache.errors import CacheCorruptedError, PodStateError
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod


def on(node_name, name="p", **spec):
    return make_pod(name, node_name=node_name, **spec)


@pytest.fixture
def cache():
    empty = Cache()
    for name in ("n1", "n2"):
        empty.add_node(make_node(name))
    return empty


def pods_on(cache, node_name):
    info = cache.node_info(node_name)
    return sorted(info.pods) if info else None


def follow(cache):
    snapshot = Snapshot()
    cache.update_snapshot(snapshot)
    return snapshot


def test_assuming_an_unknown_pod_counts_it(cache):
    cache.assume_pod(on("n1"))

    assert cache.is_assumed("default-p")
    assert ["default-p"] == pods_on(cache, "n1")


@pytest.mark.parametrize("known_as", [Cache.assume_pod, Cache.add_pod])
def test_a_known_pod_cannot_be_assumed(cache, known_as):
    known_as(cache, on("n1"))

    with pytest.raises(PodStateError, match=r"default-p\(default/p\) is in the cache, so can't be assumed"):
        cache.assume_pod(on("n2"))
    assert [] == pods_on(cache, "n2")


def test_a_pod_without_uid_is_refused(cache):
    """Pods without a UID would all be one pod."""
    pod = make_pod(node_name="n1")
    nameless = type(pod).of(spec=pod.spec).placed_on("n1")

    with pytest.raises(PodStateError, match="cannot get cache key for pod with empty UID"):
        cache.add_pod(nameless)
    with pytest.raises(PodStateError, match="cannot get cache key for pod with empty UID"):
        cache.assume_pod(nameless)


def test_forgetting_an_assumed_pod_frees_its_node(cache):
    cache.assume_pod(on("n1"))
    cache.forget_pod(on("n1"))

    assert not cache.is_assumed("default-p")
    assert [] == pods_on(cache, "n1")
    assert 0 == cache.pod_count()


def test_forgetting_an_unknown_pod_is_no_matter(cache):
    cache.forget_pod(on("n1"))

    assert 0 == cache.pod_count()


def test_forgetting_on_another_node_is_refused(cache):
    cache.assume_pod(on("n1"))

    with pytest.raises(PodStateError, match="was assumed on n2 but assigned to n1"):
        cache.forget_pod(on("n2"))
    assert cache.is_assumed("default-p")


def test_an_observed_pod_cannot_be_forgotten(cache):
    cache.assume_pod(on("n1"))
    cache.add_pod(on("n1"))

    assert not cache.is_assumed("default-p")
    with pytest.raises(PodStateError, match="wasn't assumed so cannot be forgotten"):
        cache.forget_pod(on("n1"))
    assert ["default-p"] == pods_on(cache, "n1")


def test_a_pod_observed_on_another_node_moves_there(cache):
    cache.assume_pod(on("n1"))
    cache.add_pod(on("n2"))

    assert [] == pods_on(cache, "n1")
    assert ["default-p"] == pods_on(cache, "n2")
    assert 0 == cache.assumed_count()


def test_adding_twice_is_refused_and_changes_nothing(cache):
    cache.add_pod(on("n1"))

    with pytest.raises(PodStateError, match="was already in added state"):
        cache.add_pod(on("n2"))
    assert ["default-p"] == pods_on(cache, "n1")


def test_an_update_counts_anew(cache):
    cache.add_pod(on("n1", requests={"cpu": "1"}))
    cache.update_pod(on("n1"), on("n1", requests={"cpu": "250m"}))

    assert 250 == cache.node_info("n1").requested["cpu"]


def test_an_update_may_be_another_pod_of_that_name(cache):
    """A recreated pod seen as an update replaces the old one."""
    cache.add_pod(on("n1"))
    cache.update_pod(on("n1"), on("n1", uid="second"))

    assert ["second"] == pods_on(cache, "n1")
    assert cache.get_pod("default-p") is None


def test_unknown_and_assumed_pods_cannot_be_updated(cache):
    with pytest.raises(PodStateError, match="is not added to scheduler cache, so cannot be updated"):
        cache.update_pod(on("n1"), on("n1"))
    cache.assume_pod(on("n1"))
    with pytest.raises(PodStateError, match=r"assumed pod .* should not be updated"):
        cache.update_pod(on("n1"), on("n1"))


def test_a_pod_that_changes_nodes_ends_the_process(cache):
    cache.add_pod(on("n1"))

    with pytest.raises(CacheCorruptedError):
        cache.update_pod(on("n1"), on("n2"))
    with pytest.raises(CacheCorruptedError):
        cache.remove_pod(on("n2"))


@pytest.mark.parametrize("known_as", [Cache.assume_pod, Cache.add_pod])
@pytest.mark.parametrize("known_node", ["n1", ""])
def test_removing_takes_a_pod_out_of_the_node_it_is_on(cache, known_as, known_node):
    known_as(cache, on("n1", requests={"cpu": "1"}))
    cache.remove_pod(on(known_node))

    assert [] == pods_on(cache, "n1")
    assert {} == cache.node_info("n1").requested
    assert (0, 0) == (cache.pod_count(), cache.assumed_count())


def test_removing_an_unknown_pod_is_refused(cache):
    with pytest.raises(PodStateError, match="is not found in scheduler cache, so cannot be removed"):
        cache.remove_pod(on("n1"))


def test_a_pod_before_its_node_makes_a_ghost(cache):
    """A ghost is in no snapshot; once its node comes, the pod is on it."""
    cache.add_pod(on("later"))
    assert "later" not in follow(cache).row_of

    cache.add_node(make_node("later"))
    snapshot = follow(cache)
    assert 1 == snapshot.pod_count[snapshot.row_of["later"]]


def test_a_ghost_goes_with_its_last_pod(cache):
    cache.add_pod(on("n1"))
    cache.remove_node(make_node("n1"))
    assert ["default-p"] == pods_on(cache, "n1")
    assert "n1" not in follow(cache).row_of

    cache.remove_pod(on("n1"))
    assert cache.node_info("n1") is None


def test_a_node_that_comes_back_has_its_pods(cache):
    """Whether or not a snapshot was taken in between."""
    cache.add_pod(on("n1"))
    snapshot = follow(cache)
    cache.remove_node(make_node("n1"))
    cache.add_node(make_node("n1", labels={"new": "yes"}))
    cache.update_snapshot(snapshot)

    row = snapshot.row_of["n1"]
    assert 1 == snapshot.pod_count[row]
    assert {"new": "yes"} == snapshot.nodes[row].labels


@pytest.mark.parametrize("name", ["never-seen", "ghost"])
def test_removing_a_node_that_is_not_there_is_an_error(cache, name):
    cache.add_pod(on("ghost"))

    with pytest.raises(KeyError, match=f"node {name} is not found"):
        cache.remove_node(make_node(name))


def test_an_update_of_an_unknown_node_adds_it(cache):
    cache.update_node(make_node("n9"), make_node("n9"))

    assert "n9" in follow(cache).row_of


def test_the_first_report_of_an_image_sets_its_size_while_it_lives(cache):
    """Later sizes count only once the last node with the image is gone."""
    snapshot = Snapshot()
    cache.add_node(make_node("n1", images={"app:1": 10}))
    cache.add_node(make_node("n2", images={"app:1": 99}))
    cache.update_snapshot(snapshot)
    assert (10, 2) == (snapshot.images.size_bytes("app:1"), snapshot.images.holders("app:1"))

    cache.remove_node(make_node("n1"))
    cache.update_snapshot(snapshot)
    assert (10, 1) == (snapshot.images.size_bytes("app:1"), snapshot.images.holders("app:1"))

    cache.update_node(make_node("n2"), make_node("n2"))
    cache.update_snapshot(snapshot)
    assert snapshot.image_on("app:1") is None

    cache.update_node(make_node("n2"), make_node("n2", images={"app:1": 99}))
    cache.update_snapshot(snapshot)
    assert 99 == snapshot.images.size_bytes("app:1")


def test_every_change_gives_a_generation_and_nothing_else_does(cache):
    snapshot = follow(cache)
    first = snapshot.generation
    cache.update_snapshot(snapshot)
    assert first == snapshot.generation

    cache.add_pod(on("n1"))
    cache.update_snapshot(snapshot)
    cache.remove_node(make_node("n2"))
    cache.update_snapshot(snapshot)
    assert first + 2 == snapshot.generation


def test_a_copy_of_the_snapshot_can_leave_a_pod_out(cache):
    """What explain needs: the cluster as it would be without the pod in question."""
    cache.add_pod(on("n1", "p"))
    cache.add_pod(on("n1", "q"))

    copy = cache.fresh_snapshot(without="default-p")

    assert ["default-q"] == list(copy.pods[copy.row_of["n1"]])
    assert 2 == cache.pod_count()
