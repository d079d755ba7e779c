"""Pods that preempt through an API server, as its watch shows it."""

from collections import Counter

from berth.sandbox import SandboxOptions
from berth.sandbox.store import EventType
from tests.unit.scheduler_at_work import eventually, node, scheduling

NODE_CPU = 4


def pod(name, cpu, priority_class="", on=""):
    spec = {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": str(cpu)}}}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if on:
        spec["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def priority_class(name, value):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


class Watcher:
    """Follows every write of a pod; remembers the fullest that a node ever was, and who was evicted."""

    def __init__(self, sandbox):
        self.pods = sandbox.store.collection("pods")
        self.position, self.on_node, self.fullest = 0, {}, Counter()
        self.deleted, self.targets = set(), set()

    def follow(self):
        events = self.pods.read(self.position)
        self.position += len(events)
        for event in events:
            self._look(event.type, event.entry.decode())

    def _look(self, kind, document):
        name, on = document["metadata"]["name"], document["spec"].get("nodeName")
        conditions = document.get("status", {}).get("conditions", ())
        if any(c["type"] == "DisruptionTarget" and c["status"] == "True" for c in conditions):
            self.targets.add(name)
        if kind is EventType.DELETED:
            self.deleted.add(name)
            self.on_node.pop(name, None)
        elif on:
            cpu = int(document["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            self.on_node[name] = (on, cpu)
            used = sum(amount for where, amount in self.on_node.values() if where == on)
            self.fullest[on] = max(self.fullest[on], used)

    def bound(self, prefix):
        self.follow()
        return {name: on for name, (on, _) in self.on_node.items() if name.startswith(prefix)}


async def test_fifty_pods_preempt_on_full_nodes(tmp_path):
    """50 pods each need a node of 60 that two pods fill: all are bound, and no more pods had to go."""
    names = [f"n{i}" for i in range(60)]
    nodes = [node(name) for name in names]
    low = [pod(f"low-{i}-{name}", 2, on=name) for i in range(2) for name in names]
    objects = [priority_class("high", 1000), *nodes, *low]
    # Kubelets run and stop pods; the watcher reads each event, so none may be forgotten.
    options = SandboxOptions(pod_grace_seconds=0.05, history_limit=1_000_000)
    async with scheduling(tmp_path / "kubeconfig", *objects, options=options) as (sandbox, core):
        watcher = Watcher(sandbox)
        sandbox.load([pod(f"high-{i}", 3, "high") for i in range(50)])
        await eventually(lambda: len(watcher.bound("high")) == 50)

        assert NODE_CPU >= max(watcher.fullest.values())
        assert 100 == len(watcher.deleted) == len(watcher.targets)
        assert 50 == len(set(watcher.bound("high").values()))
        assert (0, 0, 0, 0) == core.queue.sizes()
        assert [] == list(core.queue.nominator.nodes_with_nominations())
