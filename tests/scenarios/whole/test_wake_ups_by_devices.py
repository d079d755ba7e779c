"""Devices: an event after which a waiting pod fits wakes it up."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.objects.decode import from_document
from berth.objects.devices.devices import DeviceTaintRule
from berth.objects.pods.pod_spec import PodResourceClaim
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from berth.testing.builders import ROOMY, make_node, make_pod
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.whole.stories import BACKOFF_IS_OVER_SECONDS, mended, missed
from tests.suite import examples
from tests.unit.plugins.dynamic_resources.kit import (
    DRIVER,
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    request,
)

RESOURCE = "example.com/gpu"
OF_X = [{"cel": {"expression": f'device.attributes["{DRIVER}"].?model.orValue("") == "x"'}}]
NODES = ("n0", "n1")
MODELS = st.sampled_from(["x", "y"])
ZONES = st.sampled_from(["a", "b"])
IN_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


@st.composite
def nodes(draw, name):
    amounts = draw(st.sampled_from([{}, {}, {RESOURCE: "1"}]))
    return make_node(name, labels={"zone": draw(ZONES)}, allocatable={**ROOMY, **amounts})


@st.composite
def slices(draw, name, node=None):
    where = {"node": node} if node else draw(st.sampled_from([{}, {"nodeSelector": IN_A}]))
    devices = []
    for i in range(draw(st.integers(0, 2))):
        taints = draw(st.sampled_from([{}, {}, {"taints": [{"key": "bad", "effect": "NoSchedule"}]}]))
        devices.append(device(f"d{i}", attributes={"model": {"string": draw(MODELS)}}, **taints))
    return make_slice(
        name, devices, generation=draw(st.integers(1, 2)), slices=draw(st.sampled_from([1, 1, 2])), **where
    )


@st.composite
def classes(draw, name):
    resource = draw(st.sampled_from([{}, {"extendedResourceName": RESOURCE}]))
    return make_class(name, selectors=draw(st.sampled_from([[], [], OF_X])), **resource)


@st.composite
def claims(draw, name):
    """A claim; one that asks for something else is another claim."""
    mode = draw(st.sampled_from([{}, {"count": 2}, {"allocationMode": "All"}]))
    selectors = draw(st.sampled_from([[], OF_X]))
    return make_claim(name, [request(selectors=selectors, **mode)], uid=f"{name} {mode} {len(selectors)}")


@st.composite
def holders(draw):
    """A claim of another pod: with a device, or without any."""
    return draw(
        st.sampled_from(
            [
                make_claim("held", status={}),
                allocated("held", ("s0", "d0"), reserved=["p0"]),
                allocated("held", ("s1", "d0"), reserved=["p0"]),
            ]
        )
    )


@st.composite
def taint_rules(draw):
    selector = draw(st.sampled_from([{"pool": "s0"}, {"driver": DRIVER}, {"device": "d0"}]))
    spec = {"deviceSelector": selector, "taint": {"key": "rule", "effect": "NoSchedule"}}
    return from_document({"metadata": {"name": "rule"}, "spec": spec}, DeviceTaintRule)


@st.composite
def waiting_pods(draw, names):
    if draw(st.integers(0, 3)) == 0:
        return make_pod("waiting", requests={RESOURCE: "1"})
    entries = tuple(PodResourceClaim(f"e{i}", name) for i, name in enumerate(names))
    return make_pod("waiting", resource_claims=entries)


@st.composite
def stories(draw):
    names = [f"c{i}" for i in range(draw(st.integers(1, 2)))]
    sound = [*map(nodes, NODES), classes("gpu"), *map(claims, names)]
    sound += [slices("s0", "n0"), slices("s1", "n1"), slices("shared")]
    spare = [holders(), taint_rules(), classes("also"), slices("s2", "n0")]
    sound += draw(st.sampled_from([[], [holders()], [taint_rules()]]))
    return draw(mended(sound, draw(waiting_pods(names)), spare))


@pytest.mark.parametrize("release", [(1, 36), (1, 37)])
@settings(max_examples=examples(120))
@given(data=st.data())
def test_what_makes_a_pod_fit_wakes_it_up(release, data):
    """No event that makes a pod's devices available is missed by the hints of who rejected it."""
    story = data.draw(stories())
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert [] == runner.run(missed(story, release=release)), story.event


async def test_the_class_that_backs_a_resource_goes():
    """The class that is next in line stands behind the resource then, and the pod is tried."""
    cluster = Cluster()
    cluster.add_node()
    cluster.add(make_slice("s", [device("d")]))
    cluster.add(make_class("gpu", extendedResourceName=RESOURCE))
    first = cluster.add(make_class("also", extendedResourceName=RESOURCE, selectors=OF_X))
    cluster.add_pod("waiting", requests={RESOURCE: "1"})
    await cluster.tick(BACKOFF_IS_OVER_SECONDS)

    assert "pool" == cluster.where("waiting")

    cluster.remove(first)
    await cluster.tick(1)

    assert "n0" == cluster.bound.get("waiting")
