"""Nodes, pods and namespaces: an event after which a waiting pod fits wakes it up."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.framework.interface import PermitPlugin, PermitResult
from berth.framework.status import Code, Status
from berth.objects.api_object import ObjectMeta
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    Resources,
    TopologySpreadConstraint,
)
from berth.objects.workloads import Namespace
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from berth.testing.builders import make_node, make_pod
from berth.testing.strategies import LABELS as NODE_LABELS
from berth.testing.strategies import NAMESPACES, NODE_AFFINITIES, PORTS, TAINTS, TOLERATIONS
from tests.fakes import Named
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.whole.stories import BACKOFF_IS_OVER_SECONDS, Story, missed, that_waits
from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import allocated, device, make_claim, make_class, make_slice

HOSTNAME = "kubernetes.io/hostname"
TEAMS = ({}, {"team": "a"}, {"team": "b"})
APPS = ({}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"})
ZONES = ({"zone": "a"}, {"zone": "a"}, {"zone": "b"}, {})
SELECTORS = st.sampled_from(
    [
        LabelSelector({"app": "a"}),
        LabelSelector({"app": "b"}),
        LabelSelector({}, (Requirement("app", "Exists"),)),
        LabelSelector({}, (Requirement("app", "NotIn", ("a",)),)),
        LabelSelector(),
    ]
)
NAMESPACE_SELECTORS = st.sampled_from(
    [
        None,
        None,
        LabelSelector(),
        LabelSelector({"team": "a"}),
        LabelSelector({}, (Requirement("team", "NotIn", ("a",)),)),
        LabelSelector({}, (Requirement("team", "DoesNotExist"),)),
    ]
)
KEYS = st.sampled_from([HOSTNAME, "zone"])
TERMS = st.builds(PodAffinityTerm, SELECTORS, namespace_selector=NAMESPACE_SELECTORS, topology_key=KEYS)
SIDES = st.none() | st.lists(TERMS, max_size=2).map(lambda terms: PodAffinity(tuple(terms)))
POLICIES = st.sampled_from(["Honor", "Ignore"])
SPREADS = st.lists(
    st.builds(
        TopologySpreadConstraint,
        st.just(1),
        KEYS,
        st.just("DoNotSchedule"),
        SELECTORS,
        st.sampled_from([1, 1, 3]),
        node_taints_policy=POLICIES,
        node_affinity_policy=POLICIES,
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda constraint: constraint.topology_key,
).map(tuple)
SIZES = (
    {"cpu": "2", "memory": "4Gi", "pods": "110"},
    {"cpu": "1", "memory": "4Gi", "pods": "110"},
    {"cpu": "4", "memory": "4Gi", "pods": "2"},
    {"cpu": "4", "memory": "4Gi", "pods": "110", "example.com/gpu": "1"},
)
REQUESTS = ({}, {"cpu": "1"}, {"cpu": "1500m"}, {"cpu": "2", "example.com/gpu": "1"}, {"memory": "3Gi"})

OF_PODS = {
    "affinity": {"affinity": st.builds(Affinity, st.none(), SIDES, SIDES)},
    "spreading": {"topology_spread_constraints": SPREADS, "tolerations": st.sampled_from(TOLERATIONS)},
    "taints": {"tolerations": st.sampled_from(TOLERATIONS)},
    "resources": {"requests": st.sampled_from(REQUESTS)},
    "ports": {"host_ports": st.sampled_from(PORTS)},
    "node affinity": {"affinity": st.builds(Affinity, st.sampled_from(NODE_AFFINITIES))},
}
TAINTED = {"taints": st.sampled_from(TAINTS), "unschedulable": st.sampled_from([False, False, True])}
OF_NODES = {
    "spreading": TAINTED,
    "taints": TAINTED,
    "resources": {"allocatable": st.sampled_from(SIZES)},
    "node affinity": {"labels": st.sampled_from(NODE_LABELS)},
}


@st.composite
def nodes(draw, name, subject):
    fields = {field: draw(values) for field, values in OF_NODES.get(subject, {}).items()}
    labels = fields.pop("labels", None) or draw(st.sampled_from(ZONES))
    return make_node(name, labels={HOSTNAME: name} | labels, **fields)


@st.composite
def pods(draw, name, subject, on=()):
    fields = {field: draw(values) for field, values in OF_PODS[subject].items()}
    where = {"node_name": draw(st.sampled_from(on))} if on else {}
    labels, namespace = draw(st.sampled_from(APPS)), draw(st.sampled_from(NAMESPACES))
    return make_pod(name, namespace=namespace, labels=labels, **fields, **where)


@st.composite
def namespaces(draw, name):
    return Namespace(
        metadata=ObjectMeta(name=name, uid=f"ns-{name}", labels=dict(draw(st.sampled_from(TEAMS))))
    )


@st.composite
def stories(draw, subject):
    names = [f"n{i}" for i in range(draw(st.integers(1, 3)))]
    there = [draw(nodes(name, subject)) for name in names]
    placed = [draw(pods(f"p{i}", subject, names)) for i in range(draw(st.integers(1, 4)))]
    waiting = draw(pods("waiting", subject))
    events = {
        "comes": draw(st.sampled_from([nodes("n9", subject), pods("p9", subject, names)])),
        "changes": nodes(draw(st.sampled_from(names)), subject),
        "is relabelled": namespaces(draw(st.sampled_from(NAMESPACES))),
        "goes": st.sampled_from([*there, *placed]),
        "other labels": st.tuples(st.sampled_from(placed), st.sampled_from(APPS)),
        "own labels": st.sampled_from(APPS),
        "own tolerations": st.sampled_from(TOLERATIONS),
        "shrinks": st.sampled_from(placed),
    }
    event = draw(st.sampled_from(sorted(events)))
    objects = [*(draw(namespaces(name)) for name in NAMESPACES), *there, *placed]
    return Story(objects, that_waits(waiting), event, draw(events[event]))


def happen(cluster, story):
    """Let the story's event happen."""
    match story.event:
        case "comes" | "changes" | "is relabelled":
            cluster.add(story.what)
        case "goes":
            cluster.remove(story.what)
        case "other labels":
            cluster.add(relabelled(*story.what))
        case "own labels":
            cluster.add(relabelled(cluster.pod("waiting", story.waiting.namespace), story.what))
        case "own tolerations":
            spec = story.waiting.spec
            kept = tuple(dict.fromkeys((*spec.tolerations, *story.what)))
            status = cluster.pod("waiting", story.waiting.namespace).status
            cluster.add(Pod.of(story.waiting.metadata, replace(spec, tolerations=kept), status))
        case "shrinks":
            small = tuple(replace(c, resources=Resources({})) for c in story.what.spec.containers)
            spec = replace(story.what.spec, containers=small)
            cluster.add(Pod.of(story.what.metadata, spec, story.what.status).placed_on(story.what.node_name))


def relabelled(pod, labels):
    """The pod with these labels."""
    return replace(pod, metadata=replace(pod.metadata, labels=dict(labels)))


@pytest.mark.parametrize("subject", sorted(OF_PODS))
@settings(max_examples=examples(60))
@given(data=st.data())
def test_what_makes_a_pod_fit_wakes_it_up(subject, data):
    """No event that makes a waiting pod fit is missed by the hints of the plugins that rejected it."""
    story = data.draw(stories(subject))
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert [] == runner.run(missed(story, happen)), story.event


def needs(*terms):
    return Affinity(None, PodAffinity(terms), None)


def avoids(*terms):
    return Affinity(None, None, PodAffinity(terms))


def per_node(labels, **more):
    return PodAffinityTerm(LabelSelector(labels), topology_key=HOSTNAME, **more)


def add_host(cluster, name, **fields):
    cluster.add_node(name, labels={HOSTNAME: name}, **fields)


OF_BLUE = LabelSelector({"team": "blue"})
A, B = {"app": "a"}, {"app": "b"}


async def test_affinity_to_pods_of_selected_namespaces():
    """kubernetes/kubernetes#141953: a placed pod of a namespace that the selector picks wakes the pod."""
    cluster = Cluster()
    cluster.add(Namespace(metadata=ObjectMeta(name="blue", uid="b", labels={"team": "blue"})))
    add_host(cluster, "n0")
    cluster.add_pod("waiting", affinity=needs(per_node(A, namespace_selector=OF_BLUE)))
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)
    cluster.add_pod("peer", namespace="blue", labels=A, node_name="n0")
    await cluster.tick(1)

    assert "n0" == cluster.bound.get("waiting")


async def test_labels_of_a_namespace():
    """A namespace that gets the label which a term selects wakes the pod."""
    cluster = Cluster()
    add_host(cluster, "n0")
    cluster.add_pod("peer", namespace="other", labels=A, node_name="n0")
    cluster.add_pod("waiting", affinity=needs(per_node(A, namespace_selector=OF_BLUE)))
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)
    cluster.add(Namespace(metadata=ObjectMeta(name="other", uid="o", labels={"team": "blue"})))
    await cluster.tick(1)

    assert "n0" == cluster.bound.get("waiting")


async def test_one_of_several_anti_affinity_terms():
    """kubernetes/kubernetes#139161: the departure of a pod that one of the terms means is enough."""
    cluster = Cluster()
    add_host(cluster, "n0")
    cluster.add_pod("blocking", labels=A, node_name="n0")
    cluster.add_pod("waiting", affinity=avoids(per_node(A), per_node(B)))
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)
    cluster.delete_pod("blocking")
    await cluster.tick(1)

    assert "n0" == cluster.bound.get("waiting")


@pytest.mark.parametrize("relabels", [False, True])
async def test_the_only_peer_of_a_pod_with_affinity_to_itself_goes(relabels):
    """kubernetes/kubernetes#141354: the pod may start a domain once no other pod satisfies its affinity."""
    cluster = Cluster()
    add_host(cluster, "full", cpu="1")
    add_host(cluster, "free")
    cluster.add_pod("peer", labels=A, cpu="1", node_name="full")
    cluster.add_pod("waiting", labels=A, cpu="1", affinity=needs(per_node(A)))
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)
    if relabels:
        cluster.add(relabelled(cluster.pod("peer"), B))
    else:
        cluster.delete_pod("peer")
    await cluster.tick(1)

    assert "free" == cluster.bound.get("waiting")


async def test_namespaces_that_match_no_labels():
    """kubernetes/kubernetes#141526: NotIn selects the namespaces without that label, and not every one."""
    cluster = Cluster()
    elsewhere = LabelSelector({}, (Requirement("kubernetes.io/metadata.name", "NotIn", ("team-x",)),))
    named = {"kubernetes.io/metadata.name": "team-x"}
    cluster.add(Namespace(metadata=ObjectMeta(name="team-x", uid="x", labels=named)))
    add_host(cluster, "n0")
    cluster.add_pod("first", namespace="team-x", labels=A, node_name="n0")
    cluster.add_pod("second", namespace="team-x", affinity=avoids(per_node(A, namespace_selector=elsewhere)))
    await cluster.run()

    assert "n0" == cluster.bound.get("second")


async def test_a_claim_that_is_deleted_while_it_has_its_devices():
    """kubernetes/kubernetes#140831: no update comes first, and the pod that waits for the device is tried."""
    cluster = Cluster()
    cluster.add_node()
    cluster.add(make_class())
    cluster.add(make_slice("s", [device("d")]))
    holder = cluster.add(allocated("holder", ("s", "d")))
    cluster.add(make_claim("c0"))
    cluster.add_pod("waiting", resource_claims=(PodResourceClaim("e", "c0"),))
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)

    assert "pool" == cluster.where("waiting")

    cluster.remove(holder)
    await cluster.tick(1)

    assert "n0" == cluster.bound.get("waiting")


class DelaysTheFirst(Named, PermitPlugin):
    """Lets the pod called first wait until its time is over."""

    def permit(self, state, pod, node_name):
        del state, node_name
        return PermitResult(Status(Code.WAIT), 20) if pod.name == "first" else PermitResult()


async def test_a_pod_that_gives_up_a_claim_which_another_shares():
    """kubernetes/kubernetes#140269: what was in flight is written by no one, and the other pod is tried."""
    cluster = Cluster(DelaysTheFirst("Delays"), "NodeResourcesFit", "DynamicResources")
    cluster.add_node()
    cluster.add(make_class())
    cluster.add(make_slice("s", [device("d")]))
    cluster.add(make_claim("c0"))
    for name in ("first", "second"):
        cluster.add_pod(name, resource_claims=(PodResourceClaim("e", "c0"),))
        await cluster.run()

    assert "pool" == cluster.where("second")

    await cluster.tick(21)

    assert "n0" == cluster.bound.get("second")
