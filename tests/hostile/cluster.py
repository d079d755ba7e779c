"""A whole core on fakes with many nodes: what pods and nodes of any shape cost it, and what they leave."""

import asyncio

import msgspec

from berth.testing.builders import make_node, make_pod
from tests.default_core import DefaultCore

PROFILE = "default-scheduler"
ZONES = "abc"


def ordinary_node(i, **more):
    """A node with a hostname and a zone."""
    name = f"n{i}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": ZONES[i % len(ZONES)]}
    return make_node(name, labels=labels | more.pop("labels", {}), **more)


def waiting(name="waiting", **fields):
    """A pod that this scheduler is to place."""
    return make_pod(name, scheduler_name=PROFILE, **fields)


class Cluster(DefaultCore):
    """The core that the default configuration describes, with nodes of one kind and nothing on them."""

    def __init__(self, nodes=8):
        super().__init__()
        for i in range(nodes):
            self.core.node_handler.on_add(ordinary_node(i))
        self.take_over()

    def take_over(self):
        """Bring the snapshot up to date."""
        self.core.cache.update_snapshot(self.core.snapshot)
        return self.core.snapshot

    def place(self, *pods):
        """Other schedulers' pods appear, each on the node that it names, n0 unless it names one."""
        placed = [pod if pod.node_name else pod.placed_on("n0") for pod in pods]
        for pod in placed:
            self.core.pod_handler.on_add(pod)
        self.take_over()
        return placed

    def remove(self, *pods):
        """The pods are deleted."""
        for pod in pods:
            self.core.pod_handler.on_delete(pod)
        self.take_over()

    def update_node(self, new):
        """A node says something else than before."""
        old = self.core.snapshot.nodes[self.core.snapshot.row_of[new.name]]
        self.core.node_handler.on_update(old, new)
        self.take_over()
        return old

    def schedule(self, pod):
        """Have the pod tried once and deleted again; answers its node, or why it has none."""
        self.core.pod_handler.on_add(pod)
        record = self.core.queue.pop()
        assert record is not None, "the pod is ready"
        assert record.pod.uid == pod.uid, "no other pod is ready"
        before = len(self.recorder.events)
        asyncio.run(self.core.schedule_one.schedule(record))
        bound = self.core.cache.get_pod(pod.uid)
        notes = [
            note for _, _, reason, _, note in self.recorder.events[before:] if reason == "FailedScheduling"
        ]
        if bound is not None:
            self.core.cache.forget_pod(bound)
            self.core.queue.done(pod.uid)
        self.core.pod_handler.on_delete(pod)
        self.forget_writes()
        self.take_over()
        return bound.node_name if bound is not None else notes[-1]

    def nominated_by_turn(self, pod):
        """Try the pod, which is in the queue; answers the node that it is nominated to then."""
        record = self.core.queue.pop()
        assert record is not None, "the pod is ready"
        asyncio.run(self.core.schedule_one.schedule(record))
        return self.core.queue.nominator.node_of(pod.uid)

    def forget_writes(self):
        """Drop what the fakes remember, which is no part of the core."""
        self.background.close()
        del self.background.work[:], self.background.timers[:], self.background.names[:]
        del self.writer.bindings[:], self.writer.patches[:], self.writer.deleted[:]
        del self.recorder.events[:], self.recorder.related[:]

    def close(self):
        """Drop what was begun in the background."""
        self.background.close()


def changed(node, *, spec=None, status=None, metadata=None):
    """The node with other fields."""
    return msgspec.structs.replace(
        node,
        spec=msgspec.structs.replace(node.spec, **(spec or {})),
        status=msgspec.structs.replace(node.status, **(status or {})),
        metadata=msgspec.structs.replace(node.metadata, **(metadata or {})),
    )
