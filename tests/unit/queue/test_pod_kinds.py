"""Pods that wait alike are asked about as one, and fare as if each were asked."""

from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.framework.queueing.object_events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.objects.pods.pod import PodCondition
from berth.queue.pools.pod_kinds import kind_of
from berth.queue.requeueing.hints import HintMap
from berth.testing.strategies import nodes, pods
from tests.hostile.cluster import Cluster
from tests.unit.queue.kit import (
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    POD_LABEL,
    PROFILE,
    Rejector,
    a_bench,
    a_pod,
    queue_it,
    skip_it,
)

NODE_ROOM = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)
OTHER_LABELS = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
SCALE_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)


@cache
def registrations():
    """What the default profile's plugins registered, and their names."""
    cluster = Cluster(1)
    hints = cluster.core.queue._strategies._profiles[PROFILE].hints
    cluster.close()
    return hints.registrations, sorted({name for pairs in hints.registrations.values() for name, _ in pairs})


@st.composite
def events(draw):
    """Something that happens to a node or to another pod."""
    before, after = draw(nodes("n0")), draw(nodes("n0"))
    gone, come = draw(pods(("n0",))), draw(pods(("n0", "")))
    return draw(
        st.sampled_from(
            [
                (NODE_ADD, None, after),
                *((event, before, after) for event in (NODE_LABEL, NODE_TAINT, NODE_ROOM)),
                (ASSIGNED_POD_ADD, None, come),
                (ASSIGNED_POD_DELETE, gone, None),
                *((event, gone, come) for event in (OTHER_LABELS, SCALE_DOWN)),
            ]
        )
    )


def crowd(draw):
    """Pods of a few kinds, each several times, and which plugins rejected and left pending each kind."""
    _, names = registrations()
    found = []
    for kind, pod in enumerate(draw(st.lists(pods(), min_size=1, max_size=3))):
        rejectors = draw(st.sets(st.sampled_from(names), min_size=1, max_size=3))
        pending = draw(st.sets(st.sampled_from(sorted(rejectors)), max_size=1))
        found += [(f"k{kind}-{i}", pod, rejectors, pending) for i in range(draw(st.integers(1, 3)))]
    return found


def fill(bench, wanted):
    """Have these pods wait in the pool."""
    for name, like, rejectors, pending in wanted:
        metadata = msgspec.structs.replace(like.metadata, name=name, uid=f"uid-{name}")
        ours = like.with_spec(msgspec.structs.replace(like.spec, scheduler_name=PROFILE))
        pod = msgspec.structs.replace(ours, metadata=metadata)
        bench.known[pod.key] = pod
        bench.queue.add(pod)
        bench.fail(bench.queue.pop(), *rejectors, pending=pending)
    bench.clock.seconds += 60


@given(st.data())
def test_pods_that_are_alike_fare_as_if_each_were_asked(data):
    """The same pods move to the same places, and metrics count the same."""
    found, names = registrations()
    together, alone = (a_bench([], hints=HintMap(found, apart)) for apart in ((), names))
    wanted = crowd(data.draw)
    for bench in (together, alone):
        fill(bench, wanted)
    event, old, new = data.draw(events())
    if isinstance(new, type(wanted[0][1])) and data.draw(st.booleans()):
        new = next(iter(together.known.values()))

    for bench in (together, alone):
        bench.queue.move_all(event, old, new)

    assert places(alone) == places(together)
    assert alone.metrics == together.metrics


def places(bench):
    """Where each pod is."""
    return {key: bench.where(pod) for key, pod in bench.known.items()}


def test_a_kind_is_asked_once():
    asked = []
    bench = a_bench([Rejector("A", {NODE_ADD: lambda pod, *_: asked.append(pod.name) or skip_it()})])
    for i in range(6):
        bench.pooled(f"p{i}", labels={"kind": str(i % 2)})

    bench.queue.move_all(NODE_ADD, None, None)

    assert len(asked) == 2
    assert {("A", "NodeAdd", "QueueSkip"): 6} == bench.metrics.hints


def test_the_pod_that_an_event_is_about_is_asked_apart():
    bench = a_bench(
        [Rejector("A", {POD_LABEL: lambda pod, _, new: queue_it() if pod.uid == new.uid else skip_it()})]
    )
    own = [bench.pooled(f"p{i}").pod for i in range(3)][1]

    bench.queue.move_all(POD_LABEL, own, own)

    assert ["p1"] == bench.pop_names()


def test_a_pod_that_changed_is_of_another_kind():
    bench = a_bench([Rejector("A", {NODE_ADD: lambda pod, *_: queue_it() if pod.labels else skip_it()})])
    old = bench.pooled("p0").pod
    bench.pooled("p1")
    bench.update(old, a_pod("p0", labels={"a": "b"}))

    bench.queue.move_all(NODE_ADD, None, None)

    assert ["p0"] == bench.pop_names()


ONLY_CONDITIONS = {"conditions": (PodCondition("PodScheduled", "False"),), "nominated_node_name": "n1"}


@pytest.mark.parametrize(
    ("status", "alike"),
    [
        pytest.param(ONLY_CONDITIONS, True, id="what its failed attempt wrote"),
        pytest.param({"resource_claim_statuses": ({"name": "a"},)}, False, id="claims made for it"),
        pytest.param({"extended_resource_claim_status": {}}, False, id="a claim for extended resources"),
    ],
)
def test_a_status_distinguishes_pods_unless_it_is_an_attempts(status, alike):
    plain, other = a_pod("p0"), a_pod("p1")
    other = msgspec.structs.replace(other, status=msgspec.structs.replace(other.status, **status))

    assert alike == (kind_of(QueuedPodInfo(plain, 0.0)) == kind_of(QueuedPodInfo(other, 0.0)))


def test_a_volume_made_for_the_pod_tells_it_apart():
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}
    one, other = (QueuedPodInfo(a_pod(name, volumes=(volume,)), 0.0) for name in ("p0", "p1"))

    assert kind_of(one) != kind_of(other)
