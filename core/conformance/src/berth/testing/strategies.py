"""Hypothesis strategies for small clusters in which things clash.

Each field is drawn from a short list that holds the cases worth telling apart; that keeps drawing a cluster
cheap and lets failures shrink to something readable. Needs the `hypothesis` package.
"""

from collections.abc import Sequence

from hypothesis import strategies as st

from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.node import Amount, Node
from berth.objects.node_selector import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    Resources,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from berth.objects.taint import Taint, Toleration
from berth.testing.builders import make_node, make_pod

NODE_NAMES = ("n0", "n1", "n2", "n3")
NAMESPACES = ("default", "other")
NO_LABELS: dict[str, str] = {}

LABELS = (
    NO_LABELS,
    {"zone": "a"},
    {"zone": "b"},
    {"zone": "a", "gen": "12"},
    {"zone": "b", "gen": "1", "disk": "ssd"},
    {"gen": "old"},
)
TAINTS = (
    (),
    (Taint("gpu", "yes", "NoSchedule"),),
    (Taint("gpu", "yes", "PreferNoSchedule"), Taint("spot", "", "PreferNoSchedule")),
    (Taint("spot", "", "NoExecute"), Taint("gpu", "no", "PreferNoSchedule")),
)
TOLERATIONS = (
    (),
    (Toleration("gpu", "Exists"),),
    (Toleration("gpu", "Equal", "yes", "NoSchedule"),),
    (Toleration("spot", "Exists", "", "NoExecute"), Toleration("gpu", "", "yes")),
    (Toleration("", "Exists"),),
    (Toleration("node.kubernetes.io/unschedulable", "Exists"),),
)
AMOUNTS: tuple[dict[str, Amount], ...] = (
    {},
    {"cpu": "100m", "memory": "64Mi"},
    {"cpu": "1", "memory": "1Gi"},
    {"cpu": "0", "memory": "5Gi"},
    {"cpu": "2500m", "example.com/gpu": "1"},
    {"memory": "100Mi", "example.com/gpu": "0"},
)
ALLOCATABLE: tuple[dict[str, Amount], ...] = (
    {"cpu": "4", "memory": "16Gi", "pods": "110"},
    {"cpu": "1", "memory": "1Gi", "pods": "110"},
    {"cpu": "64", "memory": "512Gi", "pods": "2"},
    {"cpu": "4", "pods": "110"},
    {"cpu": "8", "memory": "64Gi", "pods": "110", "example.com/gpu": "2"},
)
PORTS = (
    (),
    (ContainerPort(80),),
    (ContainerPort(80, "10.0.0.1"),),
    (ContainerPort(80, "10.0.0.2"), ContainerPort(443)),
    (ContainerPort(80, "", "UDP"),),
)
IMAGES = ("app", "app:1", "registry.example.com/db:2")
IMAGES_ON_NODE: tuple[dict[str, int], ...] = (
    {},
    {"app:latest": 300 * 2**20},
    {"app:1": 3 * 2**30, "registry.example.com/db:2": 10**9},
)

IN_A = NodeSelectorTerm((Requirement("zone", "In", ("a",)),))
NOT_B = NodeSelectorTerm((Requirement("zone", "NotIn", ("b",)), Requirement("gen", "Exists")))
NEW = NodeSelectorTerm((Requirement("gen", "Gt", ("5",)),))
ON_N0 = NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n0",)),))
BROKEN = NodeSelectorTerm((Requirement("zone", "In", ()),))
PREFERENCES = (PreferredSchedulingTerm(3, IN_A), PreferredSchedulingTerm(50, NEW))
NODE_AFFINITIES = (
    None,
    NodeAffinity(NodeSelector((IN_A, NEW))),
    NodeAffinity(NodeSelector((NOT_B,)), PREFERENCES),
    NodeAffinity(NodeSelector((ON_N0,))),
    NodeAffinity(NodeSelector((BROKEN, IN_A))),
    NodeAffinity(NodeSelector()),
    NodeAffinity(None, PREFERENCES),
    NodeAffinity(None, ()),
)

WITH_ZONE_A = LabelSelector({"zone": "a"})
WITH_GEN = LabelSelector({}, (Requirement("gen", "Exists"),))
SPREADS = (
    (),
    (),
    (TopologySpreadConstraint(1, "zone", "DoNotSchedule", WITH_ZONE_A),),
    (
        TopologySpreadConstraint(2, "zone", "DoNotSchedule", WITH_GEN, 2, node_taints_policy="Honor"),
        TopologySpreadConstraint(1, "kubernetes.io/hostname", "ScheduleAnyway", WITH_GEN),
    ),
    (TopologySpreadConstraint(1, "gen", "ScheduleAnyway", WITH_ZONE_A, match_label_keys=("gen",)),),
)
NEAR_A = PodAffinityTerm(WITH_ZONE_A, topology_key="zone")
NEAR_GEN_ANYWHERE = PodAffinityTerm(WITH_GEN, namespace_selector=LabelSelector(), topology_key="gen")
POD_AFFINITIES = (
    None,
    None,
    PodAffinity((NEAR_A,)),
    PodAffinity((NEAR_GEN_ANYWHERE, NEAR_A)),
    PodAffinity((), (WeightedPodAffinityTerm(7, NEAR_A), WeightedPodAffinityTerm(1, NEAR_GEN_ANYWHERE))),
)

_containers = st.builds(
    Container,
    st.just("c"),
    st.sampled_from(IMAGES),
    st.sampled_from(AMOUNTS).map(Resources),
    st.sampled_from(PORTS),
)
_affinities = st.builds(
    Affinity,
    st.sampled_from(NODE_AFFINITIES),
    st.sampled_from(POD_AFFINITIES),
    st.sampled_from(POD_AFFINITIES),
)


@st.composite
def pods(draw: st.DrawFn, node_names: Sequence[str] = ()) -> Pod:
    """A pod that asks for this and that; on one of the nodes, if any are named."""
    return make_pod(
        f"p{draw(st.integers(0, 10**6))}",
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(st.sampled_from(LABELS)),
        containers=tuple(draw(st.lists(_containers, min_size=1, max_size=2))),
        tolerations=draw(st.sampled_from(TOLERATIONS)),
        node_selector=draw(st.sampled_from((None, {"zone": "a"}))),
        affinity=draw(_affinities),
        topology_spread_constraints=draw(st.sampled_from(SPREADS)),
        priority=draw(st.sampled_from((None, -1, 2))),
        node_name=draw(st.sampled_from(node_names)) if node_names else "",
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """A node that may be tainted, cordoned, or short of something."""
    return make_node(
        name,
        labels={"kubernetes.io/hostname": name} | draw(st.sampled_from(LABELS)),
        taints=draw(st.sampled_from(TAINTS)),
        unschedulable=draw(st.booleans()),
        allocatable=draw(st.sampled_from(ALLOCATABLE)),
        images=draw(st.sampled_from(IMAGES_ON_NODE)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    """One to four nodes, named n0 and so on."""
    return [draw(nodes(name)) for name in NODE_NAMES[: draw(st.integers(1, len(NODE_NAMES)))]]
