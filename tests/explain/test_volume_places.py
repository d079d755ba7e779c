"""Where a new node would have to be, for a pod with volumes."""

import pytest

from berth.explain import volume_places
from berth.explain.volume_places import ExplainedVolumes
from berth.framework.mirrors.store import Store
from berth.testing.builders import make_pod
from berth.testing.storage import claim_volume, make_claim, make_class, make_volume
from tests.explain.asking import Asked
from tests.explain.pending_pods import HOST, ZONE, ZONE_A, on

REGION = "topology.kubernetes.io/region"


def places(*objects, claims=("c",)):
    """Where a pod with these claims might be."""
    stores = Store(), Store()
    for one in objects:
        stores[type(one).__name__ == "PersistentVolume"].put(one)
    return ExplainedVolumes(*stores).of(make_pod("p", volumes=tuple(map(claim_volume, claims))))


BOUND = make_claim("c", volume_name="v")


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        pytest.param({"near": {ZONE: ["b", "c"], HOST: ["n7"]}}, [{ZONE: "b", HOST: "n7"}], id="affinity"),
        pytest.param({"labels": {ZONE: "b__c", "app": "x"}}, [{ZONE: "b"}], id="labels"),
        pytest.param({"labels": {REGION: "r"}, "near": {ZONE: ["b"]}}, [{REGION: "r", ZONE: "b"}], id="both"),
        pytest.param({}, [], id="anywhere"),
    ],
)
def test_the_place_of_a_volume(volume, found):
    """One of those that it has: the engine tries it."""
    assert found == places(BOUND, make_volume("v", **volume))


def test_the_places_of_volumes_that_a_claim_may_get():
    """Those of its class that belong to no other claim, beside the place of a volume that the pod has."""
    free = [make_volume(f"f{zone}", near={ZONE: [zone]}) for zone in "abab"]
    objects = (
        make_claim("d"),
        BOUND,
        make_volume("v", near={REGION: ["r"]}, kept_for=BOUND),
        make_volume("other", near={ZONE: ["x"]}, storage_class="fast"),
        make_volume("taken", near={ZONE: ["y"]}, kept_for=make_claim("e")),
        *free,
    )

    assert [{REGION: "r", ZONE: "a"}, {REGION: "r", ZONE: "b"}] == places(*objects, claims=("c", "d"))


def test_what_is_not_there_has_no_place():
    assert [] == places(claims=("c",))
    assert [] == places(BOUND)


def test_few_places_and_few_volumes(monkeypatch):
    """However many there are."""
    monkeypatch.setattr(volume_places, "MAX_VOLUMES", 10)
    volumes = [make_volume(f"v{i}", near={ZONE: [f"z{i}"]}) for i in range(20)]

    assert 3 == len(places(make_claim("c"), *volumes))
    assert [] == places(make_claim("c"), *[make_volume(f"v{i}") for i in range(10)], volumes[19])


async def test_a_new_node_where_the_only_free_volume_is():
    """Once it is there the pod is placed on it, and waits for its volume to be bound."""
    cluster = Asked()
    volume = make_volume("v", near={ZONE: ["b"]})
    on(ZONE_A, others=[make_class(), make_claim("c"), volume], volumes=(claim_volume("c"),))(cluster)
    await cluster.run()
    (proposal,) = (await cluster.explain()).proposals
    cluster.apply(proposal)
    await cluster.tick(20)
    found = await cluster.explain()

    assert proposal.sentence.endswith(f" with {ZONE}=b.")
    assert ("InPreBind", "new-node") == (found.state.kind, found.state.node)
