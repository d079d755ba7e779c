"""Every order of take-overs, bindings, reads and late watches of two schedulers: no node is overcommitted.

The rules of the model are what other tests show of the real code: tests/unit/client/test_proof.py of the
fence's read, test_write_guard.py beside it of terms and bounds, test_fence.py and test_leadership.py here of
the order of both.
"""

import pytest

from tests.unit.scheduler.fence_model import RULES, counterexample


def test_no_order_of_events_overcommits_a_node():
    found, states = counterexample(RULES)

    assert found is None
    assert states > 10_000


@pytest.mark.parametrize("rule", sorted(RULES))
def test_without_any_one_rule_some_order_does(rule):
    """None of the rules is idle: the model finds what it is there for."""
    found, _ = counterexample(RULES - {rule})

    assert found
