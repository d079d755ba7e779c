"""Core 2.14 and 11.4: who was promised which node."""

from berth.framework.interface import CLEAR_NOMINATION, KEEP_NOMINATION, NominatingInfo, NominatingMode
from berth.queue.pools.nominator import Nominator, bare_reference
from tests.unit.queue.kit import a_bench, a_pod

TO_N1 = NominatingInfo(NominatingMode.OVERRIDE, "n1")


class Cluster:
    """A nominator over pods that a test gives."""

    def __init__(self, *pods, queued=()):
        self.known = {pod.key: pod for pod in pods}
        self.queued = {pod.key: pod for pod in queued}
        self.nominator = Nominator(
            lambda namespace, name: self.known.get(f"{namespace}/{name}"), self.queued.get
        )

    def on(self, node):
        return list(self.nominator.nominated_pods_for_node(node))


def test_an_override_names_the_node():
    """2.14 add 2: the attempt's own choice counts, not the pod's status."""
    pod = a_pod(nominated_node_name="n2")
    cluster = Cluster(pod, queued=[pod])
    cluster.nominator.add(pod, TO_N1)

    assert cluster.on("n1") == [pod]
    assert cluster.on("n2") == []
    assert list(cluster.nominator.nodes_with_nominations()) == ["n1"]


def test_otherwise_the_status_names_it():
    """2.14 add 2: without an override the nomination in the pod's status counts."""
    pod = a_pod(nominated_node_name="n2")
    cluster = Cluster(pod)
    for info in (None, KEEP_NOMINATION):
        cluster.nominator.add(pod, info)
        assert cluster.nominator.node_of(pod.uid) == "n2"


def test_clearing():
    """11.4.4: a failure with an empty override takes the nomination back."""
    pod = a_pod()
    cluster = Cluster(pod)
    cluster.nominator.add(pod, TO_N1)
    cluster.nominator.add(pod, CLEAR_NOMINATION)

    assert list(cluster.nominator.nodes_with_nominations()) == []


def test_gone_and_placed_pods_are_refused():
    """2.14 add 3 and 11.4.3: a pod that the lister does not know, or knows on a node, is not nominated."""
    pod = a_pod()
    for cluster in (Cluster(), Cluster(pod.placed_on("n9"))):
        cluster.nominator.add(pod, TO_N1)
        assert cluster.on("n1") == []


def test_an_update_that_knows_of_no_nomination():
    """11.4.1: a nomination in memory outlives an update that has none on either side."""
    old, new = a_pod(), a_pod(labels={"a": "b"})
    cluster = Cluster(new)
    cluster.nominator.add(old, TO_N1)
    cluster.nominator.update(old, new)

    assert cluster.nominator.node_of(new.uid) == "n1"


def test_updates_that_know():
    """11.4.2: a nomination that comes is taken over, one that goes is taken back."""
    bare, nominated = a_pod(), a_pod(nominated_node_name="n2")
    cluster = Cluster(bare)
    cluster.nominator.update(bare, nominated)
    assert cluster.nominator.node_of(bare.uid) == "n2"
    cluster.nominator.update(nominated, bare)

    assert cluster.nominator.node_of(bare.uid) == ""


def test_pods_not_queued_are_bare_references():
    """2.14 and Q12: a pod in flight is known by name only, with priority 0 and no requests."""
    pod = a_pod(priority=7, requests={"cpu": "1"})
    cluster = Cluster(pod)
    cluster.nominator.add(pod, TO_N1)
    assert cluster.on("n1") == [bare_reference(pod)]
    assert cluster.on("n1")[0].priority == 0
    cluster.queued[pod.key] = pod

    assert cluster.on("n1") == [pod]


def test_order_of_nomination():
    """2.14: pods come in the order in which they were nominated; a new nomination goes last."""
    pods = [a_pod(name) for name in "abc"]
    cluster = Cluster(*pods, queued=pods)
    for pod in (*pods, pods[0]):
        cluster.nominator.add(pod, TO_N1)

    assert [pod.name for pod in cluster.on("n1")] == ["b", "c", "a"]


def test_delete_is_idempotent():
    """2.14: taking back what is not there is no matter."""
    pod = a_pod()
    cluster = Cluster(pod)
    cluster.nominator.add(pod, TO_N1)
    cluster.nominator.delete(pod)
    cluster.nominator.delete(pod)

    assert cluster.on("n1") == []


def test_the_queue_nominates_new_pods():
    """2.7: a pod that enters activeQ as added or updated brings its nomination along."""
    bench = a_bench()
    pod = a_pod(nominated_node_name="n1")
    bench.known[pod.key] = pod
    bench.queue.add(pod)

    assert list(bench.queue.nominator.nominated_pods_for_node("n1")) == [pod]
    bench.queue.pop()
    assert list(bench.queue.nominator.nominated_pods_for_node("n1")) == [bare_reference(pod)]


def test_an_update_in_the_queue_updates_the_nomination():
    """2.13: wherever the pod waits, its update reaches the nominator, and its deletion takes it out."""
    bench = a_bench()
    old = bench.add()
    new = a_pod(nominated_node_name="n1")
    bench.update(old, new)
    assert bench.queue.nominator.node_of(new.uid) == "n1"
    bench.queue.delete(new)

    assert bench.queue.nominator.node_of(new.uid) == ""
