"""Objects that are assumed to be written already."""

import pytest

from berth.framework.mirrors.listers import AssumeCache, Store
from berth.testing.storage import make_claim, make_volume


@pytest.fixture
def store():
    store = Store()
    store.put(make_volume("v0"))
    return store


def test_assumption(store):
    """An assumed object counts until it is given up."""
    cache, taken = AssumeCache(store), make_volume("v0", kept_for=make_claim())

    assert cache.assume(taken)
    assert taken == cache.get("v0") == cache.latest(store.get("v0"))
    assert taken != store.get("v0")
    cache.restore([taken])
    assert store.get("v0") == cache.get("v0")


def test_news(store):
    """A new version ends the assumption, and none can be made of an old version."""
    cache, taken, newer = AssumeCache(store), make_volume("v0", size="2Gi"), make_volume("v0", version="2")
    cache.assume(taken)
    store.put(newer)

    assert newer is cache.get("v0")
    assert not cache.assume(taken)
    assert newer is cache.get("v0")


def test_objects_that_are_gone(store):
    """What is not there cannot be assumed."""
    cache = AssumeCache(store)
    cache.assume(make_volume("v0", size="2Gi"))
    store.remove(make_volume("v0"))

    assert cache.get("v0") is None
    assert not cache.assume(make_volume("v0"))


def test_giving_up_an_older_assumption(store):
    """What was assumed otherwise meanwhile stays."""
    cache, first, second = AssumeCache(store), make_volume("v0", size="2Gi"), make_volume("v0", size="3Gi")
    cache.assume(first)
    cache.assume(second)
    cache.restore([first])

    assert second is cache.get("v0")


@pytest.mark.parametrize("change", ["newer", "gone"])
def test_nothing_is_kept_of_what_is_not_asked_about_again(store, change):
    """An assumption goes with its version, whether it is read or not."""
    cache = AssumeCache(store)
    cache.assume(make_volume("v0", size="2Gi"))
    if change == "gone":
        store.remove(make_volume("v0"))
    else:
        store.put(make_volume("v0", version="2"))

    assert {} == cache._assumed
