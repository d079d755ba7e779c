"""Why no node fits, in the words that users read."""

import numpy as np
import pytest

from berth.framework.attempts.diagnosis import Diagnosis, FitError, Rejections
from berth.framework.status import Code, Status, failed, unresolvable, unschedulable


def text(diagnosis):
    return str(FitError(diagnosis, len(diagnosis.node_names)))


def turned_down(rows, *statuses):
    """Each row by the status of that place."""
    return Rejections(
        np.array(rows), np.arange(1, len(rows) + 1), lambda code: statuses[min(code, len(statuses)) - 1]
    )


def names(n):
    return [f"n{i}" for i in range(n)]


def test_reasons_are_counted_and_sorted_as_text():
    """`10 b` stands before `2 a`."""
    diagnosis = Diagnosis(names(12))
    diagnosis.record(turned_down(range(10), unschedulable("b").from_plugin("B")))
    diagnosis.record(turned_down([10, 11], unschedulable("a").from_plugin("A")))

    assert "0/12 nodes are available: 10 b, 2 a." == text(diagnosis)


def test_each_reason_of_a_status_counts():
    diagnosis = Diagnosis(names(2))
    diagnosis.record(turned_down([0, 1], unschedulable("Insufficient cpu", "Too many pods")))

    assert "0/2 nodes are available: 2 Insufficient cpu, 2 Too many pods." == text(diagnosis)


def test_nodes_that_were_not_looked_at_count_for_the_absent_status():
    diagnosis = Diagnosis(names(3), absent=unresolvable("node(s) didn't satisfy plugin(s) [A]"))
    diagnosis.record(turned_down([0], unschedulable("x")))

    assert "0/3 nodes are available: 1 x, 2 node(s) didn't satisfy plugin(s) [A]." == text(diagnosis)


def test_a_pre_filter_message_stands_alone():
    diagnosis = Diagnosis(names(2), absent=unschedulable("b"), pre_filter_message="b")

    assert "0/2 nodes are available: b." == text(diagnosis)


def test_a_post_filter_message_follows():
    diagnosis = Diagnosis(names(1), post_filter_message="preemption: no.")
    diagnosis.record(turned_down([0], unschedulable("f")))

    assert "0/1 nodes are available: 1 f. preemption: no." == text(diagnosis)


def test_nothing_to_say_leaves_the_colon():
    assert "0/1 nodes are available:" == text(Diagnosis(names(1)))


def test_the_text_of_an_error_is_its_first_reason():
    diagnosis = Diagnosis(names(1), single={0: failed("broke")})

    assert "0/1 nodes are available: 1 broke." == text(diagnosis)


def test_a_node_evaluated_on_its_own_overrules():
    diagnosis = Diagnosis(names(2))
    diagnosis.record(turned_down([0, 1], unschedulable("crowd")))
    diagnosis.single[1] = unresolvable("alone")

    assert "0/2 nodes are available: 1 alone, 1 crowd." == text(diagnosis)
    assert unresolvable("alone") == diagnosis.node_status(1)


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        (Code.UNSCHEDULABLE, [True, False, False]),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [False, True, True]),
        (Code.PENDING, [False, False, False]),
    ],
)
def test_nodes_by_code_take_the_absent_ones_in(code, rows):
    diagnosis = Diagnosis(names(3), single={0: unschedulable(), 1: unresolvable()})

    assert rows == diagnosis.rows_with(code).tolist()


def test_a_status_says_its_error_first():
    status = Status(Code.ERROR, ("then this",), error=ValueError("first this"))

    assert ("first this", "then this") == status.reasons
    assert "first this, then this" == status.message
