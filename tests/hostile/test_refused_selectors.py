"""A selector of more than 8,192 labels and values is refused, and its owner hears so."""

import pytest

from berth.objects.label_selector import MAX_VALUES
from tests.hostile.growth_rows.row import decoded
from tests.hostile.growth_rows.selectors import labels as listed
from tests.hostile.growth_rows.selectors import like_all_of, owned, owned_by, service, values
from tests.hostile.growth_rows.storage import CLAIMED, claim, storage_class, volume
from tests.hostile.test_shapes_of_pods import match_label_keys, requirements_of_a_constraint
from tests.hostile.whole_core import WholeCore, pod_document

FOUND = "found {} labels and values; give at most 8192"
SIBLINGS = f"get constraints from pod: selector of the pod's services and controller: {FOUND}"


def of_services(n):
    return [service("s", listed(n))], like_all_of(n)


def of_a_controller(n):
    return [owned("ReplicaSet", matchExpressions=values(n))], owned_by("ReplicaSet")(n)


def of_a_claim(n):
    selector = {"matchLabels": listed(n)}
    offered = volume()
    offered["metadata"]["labels"] = listed(n)
    return [storage_class(), offered, claim(selector=selector)], CLAIMED


def of_a_constraint(n):
    return [], requirements_of_a_constraint(n)


def of_label_keys(n):
    return [], match_label_keys(n)


def failures(written, n):
    """What the events of a pod say that is tried once, beside objects with so many labels or values."""
    core = WholeCore()
    documents, fields = written(n)
    for document in documents:
        core.bring(decoded(document))
    core.take_over()
    core.schedule(decoded(pod_document("user", **fields)))
    return [note for _, _, reason, _, note in core.recorder.events if reason == "FailedScheduling"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param(of_services, SIBLINGS, id="services"),
        pytest.param(of_a_controller, SIBLINGS, id="controller"),
        pytest.param(of_a_claim, f'selector of persistentvolumeclaim "data": {FOUND}', id="claim"),
        pytest.param(of_a_constraint, f"get constraints from pod: {FOUND}", id="constraint"),
        pytest.param(of_label_keys, f"get constraints from pod: {FOUND}", id="matchLabelKeys"),
    ],
)
def test_the_owner_hears_how_many_there_may_be(written, said):
    """The pod stays pending from one more than may be; it is scheduled, or fails by other words, below."""
    assert [True] == [said.format(MAX_VALUES + 1) in note for note in failures(written, MAX_VALUES + 1)]
    assert not any("give at most" in note for note in failures(written, MAX_VALUES))
