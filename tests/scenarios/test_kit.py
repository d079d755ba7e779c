"""The kit itself: time that a test moves, and a scheduler that works in it."""

import asyncio

import pytest

from tests.scenarios.kit.cluster import Cluster


async def test_a_pod_that_fits_is_bound_and_one_that_does_not_waits():
    """A whole way of a pod, and of one for which there is no room until a node comes."""
    cluster = Cluster()
    cluster.add_node("n0", cpu="2")
    cluster.add_pod("p0", cpu="2")
    cluster.add_pod("p1", cpu="2")
    await cluster.run()

    assert {"p0": "n0"} == cluster.bound
    assert "pool" == cluster.where("p1")

    cluster.add_node("n1", cpu="2")
    await cluster.tick(2)

    assert {"p0": "n0", "p1": "n1"} == cluster.bound


async def test_time_passes_only_on_request():
    """Running everything that can run takes no time; a tick takes exactly what it says."""
    cluster = Cluster()
    before = cluster.now
    await cluster.run()

    assert before == cluster.now

    await cluster.tick(3600)

    assert before + 3600 == cluster.now


async def test_waiting_for_nothing_is_an_error():
    """A test that waits for what never comes ends at once instead of hanging."""
    with pytest.raises(RuntimeError, match="never end"):
        asyncio.get_running_loop().nothing_to_do(None)


async def test_a_lagging_watch_shows_later():
    """While the watch is held, the scheduler's own binding stays an assumption."""
    cluster = Cluster()
    cluster.add_node()
    cluster.add_pod()
    cluster.watch.hold()
    await cluster.run()

    assert {"p0": "n0"} == cluster.bound
    assert "assumed" == cluster.where()

    cluster.watch.release()

    assert "placed" == cluster.where()
