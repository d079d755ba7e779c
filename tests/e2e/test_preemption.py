"""Hundreds of pods that preempt at once, watched event by event."""

from collections import Counter, defaultdict

import pytest

from berth.client.resources import PODS
from tests.e2e.default_cluster import default_cluster
from tests.kube_scheduler import EITHER

pytestmark = pytest.mark.e2e

NODES = 300
"""More than the 100 candidates that an attempt looks for."""
NODE_CPU = 4
# Only the last two have to go for three CPUs: what is more important is spared.
PLACED = {"first": (1, "middle"), "second": (1, "low"), "third": (2, "low")}
VICTIMS = ("second", "third")

COUNT, SUM = "scheduler_preemption_victims_count", "scheduler_preemption_victims_sum"
AFTER_FLUSH = "scheduler_pod_scheduled_after_flush_total"


def object_of(kind, name, api_version="v1", **fields):
    """An object of that kind."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def pod(name, cpu, priority_class, on=""):
    """A pod that asks for that many CPUs."""
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": str(cpu)}}}
    spec = {"containers": [container], "priorityClassName": priority_class} | ({"nodeName": on} if on else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def crowded(count=NODES):
    """Full nodes, each with a pod that may stay and two that may not."""
    resources = {"cpu": str(NODE_CPU), "memory": "64Gi", "pods": "20"}
    classes = [
        object_of("PriorityClass", name, "scheduling.k8s.io/v1", value=value)
        for name, value in (("high", 1000), ("middle", 10), ("low", 1))
    ]
    nodes = [
        object_of("Node", f"n{i}", status={"capacity": resources, "allocatable": resources})
        for i in range(count)
    ]
    pods = [
        pod(f"{name}-n{i}", cpu, importance, f"n{i}")
        for i in range(count)
        for name, (cpu, importance) in PLACED.items()
    ]
    return [*classes, *nodes, *pods]


class Ledger:
    """What every node holds, event by event; a pod counts until it is gone, however it ends."""

    def __init__(self):
        self.held = defaultdict(dict)
        self.node_of = {}
        self.fullest = Counter()
        self.evicted, self.moved = {}, []

    def look(self, kind, document):
        """Take an event in."""
        name, on = document["metadata"]["name"], document["spec"].get("nodeName")
        if not on:
            return
        if document["metadata"].get("deletionTimestamp"):
            self.evicted[name] = on
        if kind == "DELETED":
            self.held[on].pop(name)
            return
        if self.node_of.setdefault(name, on) != on:
            self.moved.append(name)
        self.held[on][name] = int(document["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        self.fullest[on] = max(self.fullest[on], sum(self.held[on].values()))

    def preemptors(self):
        """The node of each preemptor that is bound."""
        return {name: on for name, on in self.node_of.items() if name.startswith("high")}


@pytest.mark.parametrize("scheduler", EITHER)
async def test_as_many_pods_preempt_as_there_are_full_nodes(tmp_path, scheduler, api_server):
    """Each gets a node of its own, no node ever holds more than it has, and no pod is evicted in vain."""
    count = api_server.fraction(NODES, 2)
    ledger, objects = Ledger(), crowded(count)
    async with (
        default_cluster(tmp_path, objects, scheduler=scheduler, server=api_server) as cluster,
        cluster.watching(ledger.look),
    ):
        await cluster.create(PODS, [pod(f"high-{i}", 3, "high") for i in range(count)])
        await cluster.reach(lambda: len(ledger.preemptors()) == count)
        metrics = await cluster.metrics(COUNT, SUM, AFTER_FLUSH)

    assert NODE_CPU == max(ledger.fullest.values())
    assert {f"n{i}" for i in range(count)} == set(ledger.preemptors().values())
    assert {f"{name}-n{i}" for i in range(count) for name in VICTIMS} == set(ledger.evicted)
    assert [] == ledger.moved
    assert {COUNT: count, SUM: count * len(VICTIMS)} == {name: metrics[name] for name in (COUNT, SUM)}
    assert 0 == metrics.get(AFTER_FLUSH, 0)
