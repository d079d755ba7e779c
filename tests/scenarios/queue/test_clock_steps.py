"""Somebody sets the machine's clock back or forward while pods wait: each waits what it would have waited."""

import pytest

from berth.framework.status import SUCCESS
from tests.scenarios.binding.plugins import waits
from tests.scenarios.kit.cluster import Cluster
from tests.scenarios.kit.plugins import QUEUE, SKIP, Doorkeeper, Gate
from tests.unit.queue.kit import NODE_ADD

HOUR = 3600.0
UNWINDOWED = {"SchedulerPopFromBackoffQ": False}
NEVER = {NODE_ADD: SKIP}


def tried_again(cluster):
    """When, by the clock that is not set."""
    return [round(moment - cluster.clock.ahead, 3) for moment in cluster.tried_at[1:]]


async def in_backoff(step):
    """A pod that broke backs off for a second, then for two, then for four."""
    cluster = Cluster(Doorkeeper(status=RuntimeError("broken")))
    await begun(cluster)
    cluster.clock.ahead += step
    await cluster.tick(20)
    return tried_again(cluster)


async def helped_by_an_event(step):
    """A rejected pod backs off before an event brings it back."""
    cluster = Cluster(Doorkeeper(hints={NODE_ADD: QUEUE}), gates=UNWINDOWED)
    await begun(cluster)
    cluster.clock.ahead += step
    cluster.add_node("n1")
    await cluster.tick(5)
    return tried_again(cluster)


async def in_the_pool(step):
    """No event helps: the pod is tried again by the flush of leftovers."""
    cluster = Cluster(Doorkeeper(hints=NEVER))
    await begun(cluster)
    cluster.clock.ahead += step
    await cluster.tick(400)
    return tried_again(cluster)


async def over_budget(step):
    """A pod whose cycle used a second of CPU is held back."""
    door = Doorkeeper()
    cluster = Cluster(door)
    door.during = lambda _: cluster.clock.loop.work(1.0)
    await begun(cluster)
    door.during, door.status = lambda _: None, SUCCESS
    cluster.clock.ahead += step
    held = cluster.queued().held_until
    await cluster.tick(200)
    return held, tried_again(cluster)


async def at_permit(step):
    """Each plugin's time limit runs on."""
    cluster = Cluster(waits(seconds=600.0))
    await begun(cluster)
    cluster.clock.ahead += step
    await cluster.tick(599)
    before = cluster.waiting_pods.get("default-p0") is not None
    await cluster.tick(2)
    return before, "rejected due to timeout after waiting 10m0s" in cluster.records[0].status.message


async def gated(step):
    """The pod's condition says what it waits for after a second."""
    cluster = Cluster(Gate("Gate", "p0"))
    await begun(cluster)
    cluster.clock.ahead += step
    before = cluster.condition()
    await cluster.tick(1)
    return before, cluster.condition().reason


async def begun(cluster):
    """A pod that waits on a cluster with a node."""
    cluster.add_node()
    cluster.add_pod()
    await cluster.run()


@pytest.mark.parametrize("step", [pytest.param(0.0, id="steady"), -HOUR, HOUR])
@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        (in_backoff, [1002.0, 1005.0, 1010.0, 1019.0]),
        (helped_by_an_event, [1002.0]),
        (in_the_pool, [1330.0]),
        (over_budget, (1101.0, [1102.0])),
        (at_permit, (True, True)),
        (gated, (None, "SchedulingGated")),
    ],
)
async def test_a_step_of_the_clock_changes_no_wait(wait, expected, step):
    assert expected == await wait(step)
