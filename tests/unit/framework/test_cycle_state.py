"""What plugins remember of one attempt."""

import numpy as np
import pytest

from berth.framework.attempts.cycle_state import CycleState


class Count:
    def __init__(self, n):
        self.n = n

    def clone(self):
        return Count(self.n)


def test_what_was_written_is_read():
    state = CycleState()
    count = Count(1)
    state.write(Count, count)

    assert count is state.read(Count)


def test_what_was_not_written_is_an_error():
    with pytest.raises(KeyError):
        CycleState().read(Count)


def test_a_clone_goes_its_own_way():
    """Values that can copy themselves are copied; others, and the pods to activate, are shared."""
    state, array = CycleState(), np.zeros(1)
    state.write(Count, Count(1))
    state.write("array", array)
    state.skip_filter = frozenset({"A"})
    state.skip_post_filter = True

    twin = state.clone()
    twin.read(Count).n = 2
    twin.write("more", 1)
    twin.pods_to_activate["default/p"] = "pod"

    assert 1 == state.read(Count).n
    assert state.get("more") is None
    assert array is twin.get("array")
    assert {"default/p": "pod"} == state.pods_to_activate
    assert (frozenset({"A"}), True) == (twin.skip_filter, twin.skip_post_filter)


def test_forgetting_is_for_good():
    state = CycleState()
    state.write("k", 1)
    state.delete("k")
    state.delete("k")

    assert "nothing" == state.get("k", "nothing")
