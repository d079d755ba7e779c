"""A pod says why it waits even if the API server was away when the attempt failed."""

import pytest

from berth.cycle.failure import MAX_TRIES
from berth.framework.handle import PodGoneError
from tests.fakes import Binds, framework, make_core, pending

WHY = "no nodes available to schedule pods"


async def refused(failure):
    """A core in which an attempt has failed and its status could not be written."""
    w = make_core(framework(bind=[Binds()]))
    w.writer.failure = failure
    w.add_pod(pending())
    await w.turn()
    w.writer.failure = None
    return w


async def test_a_status_that_could_not_be_written_is_written_again():
    """After a while, as long as nothing else became of the pod."""
    w = await refused(ConnectionError("down"))
    assert [] == w.conditions
    w.background.advance(1.0)
    w.background.run()

    assert [WHY] == [condition.message for condition in w.conditions]


async def test_pauses_grow():
    """A server that stays away is asked ever less often."""
    w = await refused(ConnectionError("down"))
    w.writer.failure = ConnectionError("down")
    pauses = []
    for _ in range(8):
        (timer,) = w.background.timers
        pauses.append(timer.at - w.clock.monotonic())
        w.background.advance(pauses[-1])
        w.background.run()

    assert [1, 2, 4, 8, 16, 32, 60, 60] == pauses


@pytest.mark.parametrize(
    "overtake",
    [lambda w: w.queue.delete(pending()), lambda w: w.queue.activate([pending()]) or w.queue.pop()],
    ids=["deleted", "tried again"],
)
async def test_what_is_overtaken_is_not_written(overtake):
    """A pod that is gone or tried again has nothing, or something newer, to say."""
    w = await refused(ConnectionError("down"))
    overtake(w)
    w.background.advance(1.0)
    w.background.run()

    assert [] == w.conditions


async def test_a_pod_that_is_gone_is_not_written_again():
    """There is no pod to write to."""
    w = await refused(PodGoneError("gone"))

    assert [] == w.background.timers


async def test_a_status_that_is_never_taken_is_given_up():
    """After some minutes; the next attempt has its own to write."""
    w = await refused(ConnectionError("down"))
    w.writer.failure = ValueError("etcdserver: request is too large")
    for _ in range(MAX_TRIES - 1):
        w.background.advance(w.background.timers[0].at - w.clock.monotonic())
        w.background.run()

    assert [] == w.background.timers
