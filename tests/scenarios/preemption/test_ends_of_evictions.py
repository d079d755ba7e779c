"""The end of an asynchronous preemption, and a preemptor that is gated around it: no order leaves it waiting.

kube-scheduler 1.36.2 leaves a preemptor gated where the end is seen first (kubernetes/kubernetes#139162,
#139330, #139331). Nothing here is left to the flush.
"""

from itertools import permutations

import pytest

from berth.objects.node import Taint
from berth.objects.pods.pod import Pod
from tests.scenarios.preemption.stage import HIGH, MIDDLE, arrives, crowded, evicted, place

AFTER_FLUSH = "pod_scheduled_after_flush_total"
OTHERS = (Taint(key="others", effect="NoSchedule"),)
REFUSED = OSError("refused")
EITHER_FIRST = (("delete", "patch_status"), ("patch_status", "delete"))
# Less than the five minutes of the flush, and more than any backoff.
A_WHILE = 30


class Eviction:
    """What happens to one victim and its preemptor, each when the test has it."""

    def __init__(self, cluster):
        self.cluster, self.victim = cluster, cluster.pod("low")

    async def woken(self):
        """An event has the preemptor queued: a node comes on which only other pods may go."""
        self.cluster.add_node("n1", cpu="4", taints=OTHERS)
        await self.cluster.run()

    async def shown(self):
        """The watch says that the victim is leaving."""
        self.cluster.watch.release()
        await self.cluster.run()

    async def answered(self):
        """The API server's answer to the deletion comes."""
        self.cluster.pods_client.release_answers("delete")
        await self.cluster.run()

    async def gone(self):
        """The kubelet is done with the victim."""
        self.cluster.api.end_deletion(self.victim)
        await self.cluster.run()


ORDERS = [
    order
    for order in permutations(("woken", "shown", "answered", "gone"))
    if order.index("shown") < order.index("gone")
]


async def evicting():
    """A preemptor whose victim's deletion has landed: no answer has come yet, and the watch lags."""
    cluster = crowded()
    cluster.api.grace_seconds = 3600
    place(cluster, "low")
    cluster.pods_client.hold_answers("delete")
    cluster.add_pod("high", cpu="4", priority=HIGH)
    cluster.watch.hold(Pod)
    await cluster.run()
    return cluster


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
async def test_a_preemptor_that_is_queued_while_its_victim_is_deleted(order):
    """It is bound once the victim is gone, in whatever order the end and the event that gates it come."""
    cluster = await evicting()
    eviction = Eviction(cluster)
    for step in order:
        await getattr(eviction, step)()
        if step == "woken":
            assert ("shown" in order[: order.index("woken")]) == (cluster.where("high") != "gated")
    await cluster.tick(A_WHILE)

    assert ({"high": "n0"}, ["low"]) == (cluster.bound, evicted(cluster))
    assert 0 == cluster.metric(AFTER_FLUSH)


async def counting_on_another():
    """`high` counts on the eviction of `low` for `lower`, whose nomination it takes back meanwhile.

    Neither the deletion nor that write has reached the API server.
    """
    cluster = crowded()
    place(cluster, "low")
    cluster.pods_client.hold("delete")
    await arrives(cluster, "lower", priority=MIDDLE)
    cluster.pods_client.hold("patch_status")
    await arrives(cluster)
    return cluster


@pytest.mark.parametrize("grace_seconds", [0, 20])
@pytest.mark.parametrize("order", EITHER_FIRST, ids="-".join)
async def test_a_preemptor_that_counts_on_the_eviction_for_another(order, grace_seconds):
    """It is bound once the victim is gone, whether or not it still writes then."""
    cluster = await counting_on_another()
    cluster.api.grace_seconds = grace_seconds
    for verb in order:
        cluster.pods_client.release(verb)
        await cluster.run()
    await cluster.tick(A_WHILE)

    assert ({"high": "n0"}, ["low"]) == (cluster.bound, evicted(cluster))
    assert 0 == cluster.metric(AFTER_FLUSH)


@pytest.mark.parametrize("order", EITHER_FIRST, ids="-".join)
async def test_a_preemptor_that_counted_on_an_eviction_that_fails(order):
    """It evicts the victim itself, whether or not it still wrote when that failed."""
    cluster = await counting_on_another()
    cluster.api.grace_seconds = 0
    cluster.pods_client.answer_next("delete", REFUSED)
    for verb in order:
        cluster.pods_client.release(verb)
        await cluster.run()
    await cluster.tick(A_WHILE)

    assert ({"high": "n0"}, ["low", "low"]) == (cluster.bound, evicted(cluster))
    assert 0 == cluster.metric(AFTER_FLUSH)
