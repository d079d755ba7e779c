"""What a plan costs grows with pods, nodes and victims, and with no product of them."""

from functools import partial

import msgspec

from berth_queues import Queues
from berth_queues.budgets import Budgets
from berth_queues.candidates import Candidates
from berth_queues.cluster import Cluster
from berth_queues.plan import Claimant, PlanState, Wanted
from berth_queues.planner import Planner
from berth_queues.queue_objects import QueueObject, queue_name
from berth_queues.settings import SYSTEM_CLUSTER_CRITICAL
from berth_queues.tree import QueueSpec
from berth_sdk import Action, Clock, ClusterEvent, ObjectKey
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.testing import make_node, make_pod
from tests.hostile.work import calls, growth
from tests.unit.queues.test_gangs import member
from tests.unit.queues.test_reclaim_rounds import decode

CORES = 8


def full(nodes, batch=0):
    """Nodes of eight cores, full of pods of one core of `batch`; `owner` has a quota of all."""
    cluster = Cluster(Clock())
    documents = [decode(make_node(f"n{i}"), decode_node) for i in range(nodes)]
    for index, node in enumerate(documents):
        cluster.put_node(index, node)
    for name, parent, quota in (("root", "", 0), ("batch", "root", batch), ("owner", "root", nodes * CORES)):
        above = queue_name(parent) if parent else ""
        spec = QueueSpec(queue_name(name), above, {"cpu": quota * 1000}, owns_nodes=not parent)
        cluster.registry.objects.by_name[name] = QueueObject(spec, (name,), None)
    cluster.registry.changed()
    for i in range(nodes * CORES):
        document = make_pod(f"p{i}", namespace="batch", requests={"cpu": "1"})
        document["metadata"]["uid"] = f"p{i}"
        cluster.place(decode(document, decode_pod), f"n{i % nodes}", 0)
    return cluster, documents


def planned(cluster, nodes, size):
    """A plan for a gang of that many whole nodes."""
    entitled = cluster.entitlement(by_fair_share=False)
    books = (cluster.ledger, cluster.promises, Budgets(), cluster.groups, cluster.devices, entitled)
    planner = Planner(PlanState(*books, SYSTEM_CLUSTER_CRITICAL), reclaims=True)
    wanted = [Wanted(f"w{i}", {"cpu": CORES * 1000, "pods": 1}) for i in range(size)]
    return planner.plan(Claimant("gang", queue_name("owner"), 0, wanted), Candidates(nodes))


def hinted(size):
    """The hints for a gang that waits, and a pod that is gone."""
    plugin, gone = Queues(("PodGroup",)), msgspec.json.encode(make_pod("gone", namespace="other"))
    pods = [
        decode_pod(msgspec.json.encode(member("a", f"p{i}", 1, "gang", native=True))) for i in range(size)
    ]
    key = ObjectKey("scheduling.k8s.io", "v1alpha2", "podgroups", "a", "gang")
    plugin.cluster.put_object(
        key, msgspec.json.encode({"spec": {"schedulingPolicy": {"gang": {"minCount": size}}}})
    )
    for each in pods:
        plugin.sort_key(each)
    return partial(plugin.queueing_hints, pods, [ClusterEvent("Pod", Action.DELETE, gone)])


async def test_hints_for_a_gang():
    """An event is worth an attempt for all pods of a gang or for none: the gang is added up once."""
    assert hinted(4)().all()
    assert growth(hinted, 8, 4) < 1.02


def test_a_gang_for_half_of_the_nodes():
    """Twice the nodes, pods and victims take twice the work."""

    def work(nodes):
        cluster, documents = full(nodes)
        return partial(planned, cluster, documents, nodes // 2)

    assert len(work(8)().victims) == 8 * CORES // 2
    assert growth(work, 8, 4) < 1.02


def test_pods_that_stay():
    """What a node's pods use is not added up for a plan: pods that may not leave cost it nothing."""

    def work(size):
        cluster, documents = full(4)
        for i in range(size):
            document = make_pod(f"stays{i}", namespace="other", requests={"cpu": "0"})
            document["metadata"]["uid"] = f"stays{i}"
            cluster.place(decode(document, decode_pod), f"n{i % 4}", 0)
        return partial(planned, cluster, documents, 2)

    assert len(work(16)().victims) == 2 * CORES
    assert calls(work(4)) == calls(work(64))


def test_a_queue_within_its_quota():
    """Where no queue has too much, no node and no pod is looked at."""

    def work(nodes):
        return partial(planned, *full(nodes, batch=nodes * CORES), 1)

    assert work(4)() is None
    assert calls(work(4)) == calls(work(8))
