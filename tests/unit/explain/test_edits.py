"""Requests as small as a plugin's reason says, whatever the reason says."""

import pytest

from berth.explain.edits import more_than_said, no_more_than_said
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


@pytest.mark.parametrize(
    ("reason", "more"),
    [
        ("over quota: at most 1500m of cpu", "500m more of cpu (it leaves 1500m)"),
        ("at most 0 of cpu", "2 more of cpu (it leaves 0)"),
        (
            "at most 1 of cpu, at most 1Gi of memory",
            "1 more of cpu (it leaves 1) and 3Gi more of memory (it leaves 1Gi)",
        ),
        ("no room", ""),
    ],
)
def test_what_a_quota_would_have_to_leave(reason, more):
    """It is what the pod requests, less what the plugin says is left."""
    assert more == more_than_said(POD, [reason])
