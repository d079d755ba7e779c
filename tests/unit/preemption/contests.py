"""Crowded little clusters, and pods that have to preempt to get onto them."""

from datetime import UTC, datetime

import msgspec
from hypothesis import strategies as st

from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import (
    Affinity,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from berth.objects.taint import Taint
from berth.testing.builders import make_node, make_pod
from tests.unit.preemption.kit import budget, stage

WEB, DB = {"app": "web"}, {"app": "db"}
NODE_NAMES = ("n0", "n1", "n2")
PRIORITY = 2
TO_WEB = {
    key: Affinity(pod_anti_affinity=PodAffinity((PodAffinityTerm(LabelSelector(WEB), topology_key=key),)))
    for key in ("zone", "kubernetes.io/hostname")
}
NEAR_DB = Affinity(pod_affinity=PodAffinity((PodAffinityTerm(LabelSelector(DB), topology_key="zone"),)))
SPREAD = (TopologySpreadConstraint(1, "kubernetes.io/hostname", "DoNotSchedule", LabelSelector(WEB)),)

_amounts = st.builds(
    lambda cpu, memory: {"cpu": cpu, "memory": f"{memory}Gi"}, st.sampled_from("1223"), st.integers(0, 2)
)
_nodes = st.sampled_from(NODE_NAMES)
_aversions = st.sampled_from((None, None, *TO_WEB.values()))
_wishes = st.sampled_from((None, *TO_WEB.values(), NEAR_DB))
_spreads = st.sampled_from(((), SPREAD))
_starts = st.sampled_from((None, 1.0, 2.0))
_taints = st.sampled_from(((), (), (), (Taint("gpu", "", "NoSchedule"),)))
_labels = st.sampled_from(({}, WEB, DB))
_ports = st.sampled_from(((), (), (ContainerPort(80),)))


@st.composite
def _placed(draw, name, on, with_ports):
    # Two pods with one port are never on one node, unless a client bypassed the scheduler.
    ports = () if on in with_ports else draw(_ports)
    if ports:
        with_ports.add(on)
    pod = make_pod(
        name,
        labels=draw(_labels),
        requests=draw(_amounts),
        host_ports=ports,
        priority=draw(st.integers(-1, PRIORITY)),
        node_name=on,
        affinity=draw(_aversions),
    )
    began = draw(_starts)
    start = None if began is None else datetime.fromtimestamp(began, UTC)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, start_time=start))


@st.composite
def _incoming(draw, name, *, follows):
    """A pod without a node; with `follows` also one whose plugins look at other nodes."""
    wishes = {}
    if follows:
        wishes["affinity"] = draw(_wishes)
        wishes["topology_spread_constraints"] = draw(_spreads)
    return make_pod(
        name,
        labels=draw(_labels) if follows else {},
        requests=draw(_amounts),
        host_ports=draw(_ports),
        scheduler_name="default-scheduler",
        priority=PRIORITY if name == "high" else draw(st.integers(PRIORITY - 1, PRIORITY + 1)),
        nominated_node_name="" if name == "high" else draw(_nodes),
        **wishes,
    )


@st.composite
def contests(draw, *, follows=True):
    """A stage and the pod that wants onto it; with `follows` also one whose plugins look at other nodes."""
    allocatable = {"cpu": "4", "memory": "4Gi", "pods": "4"}
    nodes = [
        make_node(
            name,
            labels={"kubernetes.io/hostname": name, "zone": "ab"[i % 2]},
            allocatable=allocatable,
            taints=draw(_taints),
        )
        for i, name in enumerate(NODE_NAMES)
    ]
    with_ports = set()
    on = [*NODE_NAMES, *NODE_NAMES, *draw(st.lists(_nodes, max_size=3))]  # Most pods fit nowhere.
    placed = [draw(_placed(f"p{i}", name, with_ports)) for i, name in enumerate(on)]
    budgets = [budget("web", WEB, draw(st.integers(0, 1))), budget("db", DB, 0, disrupted=("p1",))]
    nominated = [draw(_incoming(f"next{i}", follows=False)) for i in range(draw(st.integers(0, 1)))]
    pod = draw(_incoming("high", follows=follows))
    return stage(nodes, placed, budgets=budgets[: draw(st.integers(0, 2))], nominated=nominated), pod
