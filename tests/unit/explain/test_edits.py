"""Requests as small as a plugin's reason says, whatever the reason says."""

import pytest

from berth.explain.edits import no_more_than_said
from berth.testing.builders import make_pod

POD = make_pod("p", requests={"cpu": "2", "memory": "4Gi"})


def sentences(*reasons):
    return [edit.sentence for edit in no_more_than_said(POD, reasons)]


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        pytest.param("over quota: at most 1500m of cpu", "request at most 1500m of cpu (now 2)", id="one"),
        pytest.param(
            "at most 1 of cpu, at most 1Gi of memory.",
            "request at most 1 of cpu (now 2) and 1Gi of memory (now 4Gi)",
            id="two",
        ),
        pytest.param(
            "at most 1 of cpu; at most 500m of cpu", "request at most 500m of cpu (now 2)", id="the least"
        ),
        pytest.param(
            "at most 1 of cpu, at most 9Gi of memory", "request at most 1 of cpu (now 2)", id="enough"
        ),
    ],
)
def test_what_is_left_is_requested(reason, sentence):
    assert [sentence] == sentences(reason)


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("no room", id="nothing said"),
        pytest.param("at most 0 of cpu", id="nothing left"),
        pytest.param("at most 1x of cpu", id="no quantity"),
        pytest.param("at most 1 of example.com/gpu", id="not requested"),
        pytest.param("at most 3 of cpu", id="more than requested"),
        pytest.param(f"{'x' * 5000} at most 1 of cpu", id="far into a long text"),
    ],
)
def test_nothing_is_made_of_other_words(reason):
    assert [] == sentences(reason)
