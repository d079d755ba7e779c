"""Volumes: an event after which a waiting pod fits wakes it up."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.objects.label_selector import LabelSelector
from berth.objects.volumes.storage import TopologyRequirement, TopologyTerm
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from berth.testing.builders import make_node, make_pod
from berth.testing.storage import (
    claim_volume,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)
from tests.scenarios.whole.stories import mended, missed
from tests.suite import examples

DRIVER = "csi.example"
ZONE = "topology.kubernetes.io/zone"
IN_A = (TopologyTerm((TopologyRequirement(ZONE, ("a",)),)),)
NODES = ("n0", "n1")
FLAGS = st.sampled_from([None, False, True])
SIZES = st.sampled_from(["1Gi", "2Gi"])
PLACES = st.sampled_from([{}, {ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}])
LIMITS = st.sampled_from([{}, {DRIVER: None}, {DRIVER: 0}, {DRIVER: 1}, {DRIVER: 2}])


def nodes(name):
    return PLACES.map(lambda labels: make_node(name, labels=labels))


def claim_and_volume(name):
    """A claim that is bound to a volume, of any driver or of none."""
    modes = st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod"])
    claims = st.builds(
        lambda mode, bound: make_claim(name, volume_name=f"v-{name}", modes=[mode], bound=bound),
        modes,
        st.sampled_from([True, True, False]),
    )
    volumes = st.builds(
        lambda driver, near, labels: make_volume(
            f"v-{name}",
            driver=driver,
            phase="Bound",
            near={key: [value] for key, value in near.items()} or None,
            labels=labels,
        ),
        st.sampled_from(["", DRIVER, DRIVER]),
        PLACES,
        PLACES,
    )
    return [claims, volumes]


def claim_to_bind(name):
    """A claim that gets a volume once its pod has a node: one that is there, or one to be made."""
    claims = st.builds(lambda size: make_claim(name, storage_class="wait", size=size), SIZES)
    volumes = st.builds(
        lambda near, size: make_volume(
            f"v-{name}", near={key: [value] for key, value in near.items()} or None, size=size
        ),
        PLACES,
        SIZES,
    )
    return [claims, volumes]


def claim_to_provision(name):
    """A claim whose volume is made once its pod has a node."""
    capacities = st.builds(
        lambda place, amount: make_capacity("left", "csi", amount, node_topology=LabelSelector(place)),
        PLACES,
        st.sampled_from([None, "1Gi", "4Gi"]),
    )
    return [st.builds(lambda size: make_claim(name, storage_class="csi", size=size), SIZES), capacities]


CLASSES = [
    st.just(make_class("wait")),
    st.builds(
        lambda places: make_class("csi", provisioner=DRIVER, allowed_topologies=places),
        st.sampled_from([(), IN_A]),
    ),
    st.builds(
        lambda tracks, needs: make_csi_driver(
            DRIVER, storage_capacity=tracks, prevent_pod_scheduling_if_missing=needs
        ),
        FLAGS,
        FLAGS,
    ),
]
OF_CLAIMS = {"bound": claim_and_volume, "to bind": claim_to_bind, "to provision": claim_to_provision}


def user(name, claims, node=""):
    return make_pod(name, volumes=tuple(map(claim_volume, claims)), node_name=node)


@st.composite
def stories(draw):
    claims = [f"c{i}" for i in range(draw(st.integers(1, 2)))]
    sound = [*map(nodes, NODES), *CLASSES]
    sound += [LIMITS.map(lambda limits, name=name: make_csi_node(name, limits)) for name in NODES]
    for name in claims:
        sound += OF_CLAIMS[draw(st.sampled_from(sorted(OF_CLAIMS)))](name)
    others = [
        make_claim("other", volume_name="v-other"),
        make_volume("v-other", driver=DRIVER, phase="Bound"),
    ]
    spare = [
        st.builds(user, st.just("p0"), st.sampled_from([["other"], claims]), st.sampled_from(NODES)),
        st.builds(lambda node: make_attachment("a", DRIVER, node, "v-other"), st.sampled_from(NODES)),
        *CLASSES[2:],
    ]
    story = draw(mended(sound, user("waiting", claims), spare))
    return story._replace(objects=[*others, *story.objects])


@pytest.mark.parametrize("release", [(1, 36), (1, 37)])
@settings(max_examples=examples(150))
@given(data=st.data())
def test_what_makes_a_pod_fit_wakes_it_up(release, data):
    """No event that makes a pod's volumes usable is missed by the hints of the plugins that rejected it."""
    story = data.draw(stories())
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert [] == runner.run(missed(story, release=release)), story.event
