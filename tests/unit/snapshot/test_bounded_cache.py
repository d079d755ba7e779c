"""The least recently used entries are evicted, within bytes and a number of entries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.caching.signatures import Signature
from berth.framework.runtime import ProfilePlugins
from berth.objects.label_selector import from_labels
from berth.snapshot.bounded_cache import ENTRY_BYTES, BoundedCache, size_of

STEPS = st.lists(st.tuples(st.sampled_from(["put", "get", "drop"]), st.integers(0, 9)), max_size=60)


def of_entries(n):
    return BoundedCache((100 + ENTRY_BYTES) * n)


def test_what_is_asked_for_stays():
    """An entry that is asked for again and again outlives those that are not."""
    recent = of_entries(4)
    recent.put("asked", 1, 100)
    for i in range(10):
        assert recent.get("asked") == 1
        recent.put(i, i, 100)

    assert recent.peek("asked") == 1
    assert recent.peek(0) is None


def test_what_goes_is_answered():
    """Each entry that has to go is answered once, one that is too large at once."""
    recent = of_entries(4)

    gone = [value for i in range(8) for value in recent.put(i, i, 100)]
    assert [0, 1, 2, 3] == gone
    assert ["huge"] == recent.put("large", "huge", 1001)
    assert [4, 5, 6, 7] == [recent.peek(i) for i in range(4, 8)]


def test_the_number_of_entries_is_bounded():
    """Without sizes the oldest of too many entries is evicted; a value that is read again is not."""
    recent = BoundedCache(max_entries=2)
    recent.put("a", 1)
    recent.put("b", 2)
    recent.get("a")

    assert [2] == recent.put("c", 3)
    assert ["a", "c"] == list(recent)
    assert [3, 1] == list(recent.newest())


@given(steps=STEPS)
def test_the_bytes_are_those_of_what_is_kept(steps):
    """Whatever comes in which order: bounded, and counted right."""
    recent, kept = of_entries(5), {}
    for step, key in steps:
        if step == "get":
            assert recent.get(key) == kept.get(key)
        elif step == "drop":
            recent.drop(key)
            kept.pop(key, None)
        elif key not in kept:
            for gone in recent.put(key, key, 100):
                del kept[gone]
            kept[key] = key
        assert recent.size_bytes == len(kept) * (100 + ENTRY_BYTES) <= 5 * (100 + ENTRY_BYTES)
    assert kept == {key: recent.peek(key) for key in kept}


@pytest.mark.parametrize(
    "value",
    ["text", ("a", 2**70), from_labels({"app": "web"}), Signature(NodePlugins(ProfilePlugins())), None],
)
def test_values_of_any_kind_have_a_size(value):
    """Selectors, numbers of any length, and what has no parts at all."""
    assert 0 < size_of(value) < size_of((value, "more"))
