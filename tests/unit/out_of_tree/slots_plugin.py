"""A plugin process that counts pods on nodes, and refuses to reserve for some; its argument is a socket."""

import sys
from hashlib import sha256

import numpy as np

from berth_sdk import Plugin, Reason, serve

MOST = 5


class Slots(Plugin):
    """Five pods a node and label; the fewer, the better. What it holds is in its memory."""

    name = "slots"
    reasons = (Reason("node(s) had no free slot"),)
    node_local = True
    pod_fields = ("/metadata/labels",)

    def __init__(self):
        self.on_node = {}
        super().__init__()

    def _of(self, pod, name):
        label = pod.metadata.labels.get("app", "")
        return sum(each == label for each in self.on_node.get(name, {}).values())

    def filter_nodes(self, pod, nodes):
        used = np.array([self._of(pod, node.name) for node in nodes])
        return (used >= MOST).astype(np.uint8)

    def score_nodes(self, pod, nodes):
        return np.array([100 - 13 * self._of(pod, node.name) for node in nodes])

    def reserve(self, pod, node):
        if sha256(pod.uid.encode()).digest()[0] % 4 == 0:
            return "not this one"
        self._put(pod.uid, pod.metadata.labels.get("app", ""), node.name)
        return None

    def unreserve(self, key, node_name):
        self.on_node.get(node_name, {}).pop(key.uid, None)

    def pod_upserted(self, placed):
        self._put(placed.uid, placed.pod.metadata.labels.get("app", ""), placed.node_name)

    def pod_removed(self, placed):
        self.on_node.get(placed.node_name, {}).pop(placed.uid, None)

    def state_reset(self, *, epoch_changed):
        del epoch_changed
        self.on_node.clear()

    def _put(self, uid, label, name):
        for there in self.on_node.values():
            there.pop(uid, None)
        self.on_node.setdefault(name, {})[uid] = label


if __name__ == "__main__":
    serve(Slots(), f"unix:{sys.argv[1]}")
