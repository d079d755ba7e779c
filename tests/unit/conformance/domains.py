"""Plugins whose answer for a node depends on pods on other nodes, and faults of their FilterOverlays."""

# ruff: noqa: ARG001, ARG002 - the kit and the SDK give their parameters

import numpy as np

from berth_sdk import Action, EventInterest, Plugin, Reason


class PodsPerRack(Plugin):
    """At most two pods to a rack; nodes without the label are in none."""

    name = "pods-per-rack"
    reasons = (Reason("node(s) were in a rack with too many pods"),)
    events = (EventInterest("Pod", (Action.DELETE,)), EventInterest("Node", (Action.ADD,)))
    wants_pods = True
    limit = 2
    rack_label = "example.com/rack"
    arguments_schema = {
        "type": "object",
        "properties": {"rackLabel": {"type": "string", "default": rack_label}},
        "additionalProperties": False,
    }

    def filter_nodes(self, pod, nodes):
        racks = [node.labels.get(self.rack_label) for node in nodes]
        counts = dict.fromkeys(racks, 0)
        for node, rack in zip(nodes, racks, strict=True):
            counts[rack] += len(nodes.pods_on(node.name))
        full = [rack is not None and counts[rack] >= self.limit for rack in racks]
        return np.array(full, np.uint8)


class PodsOfCluster(Plugin):
    """At most six pods in the whole cluster."""

    name = "pods-of-cluster"
    reasons = (Reason("cluster had too many pods"),)
    events = (EventInterest("Pod", (Action.DELETE,)),)
    wants_pods = True
    limit = 6

    def filter_nodes(self, pod, nodes):
        full = sum(len(nodes.pods_on(node.name)) for node in nodes) >= self.limit
        return np.full(len(nodes), full, np.uint8)


DOMAINS = (PodsPerRack, PodsOfCluster)


async def all_at_once(server, name, request, proceed):
    """Show each overlay of a call what the other ones change, too."""
    if name != "FilterOverlays":
        return await proceed(request)
    server.plugin.node_local = True
    try:
        return await proceed(request)
    finally:
        server.plugin.node_local = False


def ignoring(field):
    """Look at a field of no overlay."""

    async def call(server, name, request, proceed):
        if name == "FilterOverlays":
            for overlay in request.overlays:
                overlay.ClearField(field)
        return await proceed(request)

    return call
