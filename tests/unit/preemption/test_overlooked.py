"""Nodes without their victims: plugins look into rows that they turn down with them, and miss none."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.framework.attempts.cycle_state import CycleState
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_volume_limits import NodeVolumeLimits
from berth.plugins.volume_restrictions import VolumeRestrictions
from berth.preemption.screening import Screening
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import make_plugin
from berth.testing.storage import (
    claim_volume,
    listers_with,
    make_claim,
    make_csi_node,
    make_volume,
)
from berth.testing.verdicts import pre_filtered
from tests.suite import examples

DRIVER, PRIORITY = "csi.example.com", 5
NODES = [make_node(f"n{i}") for i in range(3)]
NAMES = "abc"
STORED = [
    *(make_claim(name, volume_name=f"v-{name}") for name in NAMES),
    *(make_volume(f"v-{name}", driver=DRIVER) for name in NAMES),
    *(make_csi_node(node.name, {DRIVER: 1}) for node in NODES),
]

# A node may hold more than its limit: it was lowered since.
shapes = st.tuples(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from("xy")), st.sets(st.just(80)))


def pod(name, shape, **fields):
    """A pod with these claims, disks and host ports."""
    claims, disks, ports = shape
    mounted = [{"name": d, "gcePersistentDisk": {"pdName": d}} for d in sorted(disks)]
    return make_pod(name, volumes=(*map(claim_volume, sorted(claims)), *mounted), host_ports=ports, **fields)


def rejected(plugin, state, asks, nodes):
    return (plugin.filter(state, asks, nodes) > 0).tolist()


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), shapes), max_size=6), shapes)
def test_6_4_law_a_node_without_its_victims_is_as_if_they_had_gone(placed, asks):
    """For the plugins that look at pods: where all pods together pass, fewer do."""
    pods = [
        pod(f"p{i}", shape, node_name=f"n{on}", priority=1 if goes else PRIORITY)
        for i, (on, goes, shape) in enumerate(without_shared_ports(placed))
    ]
    nodes, incoming = table(NODES, pods), pod("high", asks)
    freed = Screening().beneath(PRIORITY, nodes).everywhere()
    for kind in (NodePorts, VolumeRestrictions, NodeVolumeLimits):
        plugin = make_plugin(kind, listers=listers_with(*STORED))
        state = CycleState()
        result = pre_filtered(plugin, state, incoming, nodes)
        if not result.status.ok:
            continue
        alone = [
            rejected(plugin, state, incoming, nodes.what_if(node, remove=victims(nodes, row)))[0]
            for node, row in nodes.row_of.items()
        ]
        assert alone == rejected(plugin, state, incoming, freed)
        assert alone == rejected(plugin, state, incoming, freed.view(np.arange(3)))


def without_shared_ports(placed):
    """Two pods with one port are never on one node, unless a client bypassed the scheduler."""
    with_ports = set()
    for on, goes, (claims, disks, ports) in placed:
        yield on, goes, (claims, disks, set() if on in with_ports else ports)
        with_ports |= {on} if ports else set()


def victims(nodes, row):
    return [info for info in nodes.pods[row].values() if info.pod.priority < PRIORITY]
