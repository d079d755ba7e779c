"""Tolerations against a taint."""

import pytest

from berth.objects.taint import Taint, Toleration

TAINT = Taint("k", "v", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", "Equal", "v", "NoSchedule"), True),
        (Toleration("k", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("k", "Equal", "other"), False),
        (Toleration("k", "Equal", "v", "NoExecute"), False),
        (Toleration("k", "", "v"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Equal", "v"), True),
        (Toleration("k", "Matches", "v"), False),
    ],
)
def test_tolerations(toleration, tolerated):
    assert tolerated is toleration.tolerates(TAINT)


@pytest.mark.parametrize(
    ("taint_value", "operator", "value", "tolerated"),
    [
        ("5", "Lt", "6", True),
        ("6", "Lt", "6", False),
        ("7", "Gt", "6", True),
        ("-7", "Gt", "-8", True),
        ("07", "Gt", "6", False),
        ("7", "Gt", "+6", False),
        ("v", "Gt", "6", False),
        ("9223372036854775808", "Gt", "6", False),
    ],
)
def test_comparisons_need_their_gate_and_plain_numbers(taint_value, operator, value, tolerated):
    taint, toleration = Taint("k", taint_value, "NoSchedule"), Toleration("k", operator, value)

    assert tolerated is toleration.tolerates(taint, comparisons=True)
    assert not toleration.tolerates(taint)
