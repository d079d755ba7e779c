"""Selectors and labels of a hundred thousand entries: read once, and not again for each pod or attempt."""

import json

import pytest

from berth.framework.mirrors.listers import Listers
from berth.objects.label_selector import LabelSelector, compile_selector
from berth.objects.pods.pod_decoding import decode_pod
from berth.plugins.controller_selector import ControllerSelectors
from berth.snapshot.placed.placed_pods import PlacedPods
from berth.snapshot.pod_info import PodInfo
from berth.testing.builders import make_pod
from tests.hostile.deciding import a_core, a_pod, place
from tests.hostile.growth_rows.pods import terms_that_mean_everybody
from tests.hostile.growth_rows.row import decoded, thing
from tests.hostile.growth_rows.selectors import labels, owned, service, values
from tests.hostile.whole_core import pod_document
from tests.hostile.work import calls

MANY = 5_000


def replication_controller(n):
    return thing("v1", "ReplicationController", "s", spec={"selector": labels(n)})


@pytest.fixture
def listers():
    return Listers()


def pod_of(owner="", **more):
    return decode_pod(json.dumps(pod_document("p", owner=owner, labels=labels(MANY) | more)).encode())


@pytest.mark.parametrize(
    ("store", "document", "pod"),
    [
        pytest.param("services", service("s", labels(MANY)), pod_of(), id="Service"),
        pytest.param(
            "replication_controllers",
            replication_controller(MANY),
            pod_of("ReplicationController"),
            id="ReplicationController",
        ),
        pytest.param(
            "replica_sets",
            owned("ReplicaSet", matchExpressions=values(MANY)),
            pod_of("ReplicaSet"),
            id="ReplicaSet",
        ),
        pytest.param(
            "stateful_sets",
            owned("StatefulSet", matchLabels=labels(MANY)),
            pod_of("StatefulSet"),
            id="StatefulSet",
        ),
    ],
)
def test_the_selector_of_siblings_is_made_once(store, document, pod, listers):
    """Whatever is asked of further pods, even of other labels: reading 5,000 entries takes 20,000 calls."""
    getattr(listers, store).put(decoded(document))
    selectors = ControllerSelectors(listers)
    first = selectors.of(pod)

    assert calls(lambda: selectors.of(pod)) < 2.2 * MANY
    assert first is selectors.of(pod)


def test_the_selector_of_siblings_follows_its_controller(listers):
    """A controller that asks for something else, or is gone, is noticed, and nothing is kept of it."""
    selectors, pod = ControllerSelectors(listers), pod_of("ReplicaSet")
    stored = decoded(owned("ReplicaSet", matchExpressions=values(MANY)))
    listers.replica_sets.put(stored)
    before = selectors.of(pod)
    listers.replica_sets.put(decoded(owned("ReplicaSet", matchExpressions=values(MANY - 1))))
    after = selectors.of(pod)
    listers.replica_sets.remove(stored)

    assert len(before.requirements[0].values) == len(after.requirements[0].values) + 1
    assert selectors.of(pod).empty


def test_labels_of_a_placed_pod_are_not_filed_one_by_one():
    """A pod of 5,000 labels comes and goes in as many calls as one of 2,000."""

    def come_and_go(n):
        counts, info = PlacedPods(4), PodInfo(make_pod(labels=labels(n)))
        counts.add(0, info)
        return calls(lambda: counts.add(0, info, -1))

    assert come_and_go(MANY) == come_and_go(2_000)


def test_labels_of_a_selector_are_checked_in_one_go():
    """Two calls a label: what each asks is made once, and its key is looked at."""
    selector = LabelSelector(labels(MANY))

    assert calls(lambda: compile_selector(selector)) < 2.1 * MANY


def test_labels_of_a_namespace_are_hashed_once():
    """Each cycle asks what placed pods' terms say of the pod, to which its namespace's labels belong."""
    core = a_core()
    place(core, a_pod("holder", **terms_that_mean_everybody(3)))
    terms, said = core.snapshot.placed.terms, CountedLabels(labels(MANY))
    asked = a_pod("asked")
    found = [terms.known_about(asked, said) for _ in range(3)]

    assert said.read == 1
    assert found[0] == found[2] == found[1] != {}


class CountedLabels(dict):
    """Labels that count how often all of them are read."""

    read = 0

    def items(self):
        self.read += 1
        return super().items()
