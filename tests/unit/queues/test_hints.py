"""Which pods are tried again after others have ended: those whose turn it is, as many as have room."""

import asyncio

import msgspec

from berth_queues import Queues
from berth_sdk import Action, ClusterEvent, Code, CycleOutcome
from tests.unit.out_of_tree.scripted import until
from tests.unit.queues.builders import at_work, cpu, evicted, pod, uid
from tests.unit.queues.test_order import tried_again

QUOTAS = {"a": cpu(4), "b": cpu(4)}


async def refused(host, *pods):
    """Let pods be tried in vain."""
    await host.sort_keys(*pods)
    for each in pods:
        status = (await host.filter(each)).status
        assert status.code == Code.PENDING.value
        await host.cycle_done(each, CycleOutcome.UNSCHEDULABLE)


async def worth(host, pods, *gone):
    """The names of those that are tried again once pods have ended."""
    events = [ClusterEvent("Pod", Action.DELETE, old=msgspec.json.encode(each)) for each in gone]
    *_, row = await host.hints(pods, *events)
    return [each["metadata"]["name"] for each, hint in zip(pods, row, strict=True) if hint]


async def test_no_more_than_there_is_room_for():
    """What has become free is tried for once: by the pods that came first."""
    full, waiting = [pod("b", f"b{i}", 2) for i in range(4)], [pod("a", f"a{i}") for i in range(5)]
    async with at_work(QUOTAS, arguments={"reclaim": "Never"}) as host:
        for each in full:
            host.cluster.put_pod(each, "n0")
        await refused(host, *waiting)

        assert ["a0", "a1"] == await worth(host, waiting, full[0])
        assert ["a0", "a1", "a2", "a3"] == await worth(host, waiting, full[1])


async def test_the_more_important_pod_of_a_queue_first():
    """A pod is worth an attempt before less important ones, whichever came first."""
    full, low, high = pod("b", "full", 8), pod("a", "low", 3, 1), pod("a", "high", 6, 9)
    async with at_work(QUOTAS, arguments={"reclaim": "Never"}) as host:
        host.cluster.put_pod(full, "n0")
        await refused(host, low, high)

        assert ["high"] == await worth(host, [low, high], full)


async def test_one_that_does_not_fit_holds_back_none():
    """Where the first has no room the next one has its turn."""
    full, large, small = [pod("b", f"b{i}", 4) for i in range(2)], pod("a", "large", 6, 9), pod("a", "small")
    async with at_work(QUOTAS, arguments={"reclaim": "Never"}) as host:
        for each in full:
            host.cluster.put_pod(each, "n0")
        await refused(host, large, small)

        assert ["small"] == await worth(host, [large, small], full[0])


async def test_what_a_queue_is_entitled_to():
    """A pod is tried without room, where its queue may take back what others have borrowed."""
    running, waiting = pod("a", "running", 4), pod("a", "waiting", 4)
    async with at_work(QUOTAS, "n0", "n1") as host:
        host.cluster.put_pod(running, "n0")
        host.cluster.put_pod(pod("b", "its-own", 4), "n0")
        await refused(host, waiting)
        host.cluster.put_pod(pod("b", "borrows", 2), "n1")
        await host.update()

        assert ["waiting"] == await worth(host, [waiting], running)


async def test_nodes_without_room_hold_back_none():
    """A pod that its queue has room for, and no node, stands in no other's way."""
    full, other, waiting = pod("b", "full", 8), pod("a", "nodes", 8), pod("a", "quota", 2)
    async with at_work(QUOTAS, arguments={"reclaim": "Never"}) as host:
        await host.sort_keys(other)
        await host.filter(other)
        await host.cycle_done(other, CycleOutcome.UNSCHEDULABLE)
        host.cluster.put_pod(full, "n0")
        await refused(host, waiting)

        assert ["quota"] == await worth(host, [waiting], full)


async def test_room_that_is_not_used():
    """Where the pod that had its turn fits on no node, the one behind it is tried a second later."""
    full, first, second = pod("b", "full", 8), pod("a", "first", 8), pod("a", "second", 8)
    plugin = Queues()
    async with at_work(QUOTAS, arguments={"reclaim": "Never"}, plugin=plugin) as host:
        await host.set_time(100.0)
        host.cluster.put_pod(full, "n0")
        await refused(host, first, second)
        assert ["first"] == await worth(host, [first, second], full)
        host.cluster.remove_pod(uid(full))
        host.attempts[uid(first)] += 1
        assert (await host.filter(first)).status.code == Code.SKIP.value
        await host.cycle_done(first, CycleOutcome.UNSCHEDULABLE)
        again = asyncio.ensure_future(tried_again(host))
        await until(lambda: plugin.requeue._listeners)
        await host.set_time(101.0)

        assert [uid(second)] == await again


async def test_a_pause_is_over_with_room():
    """A pod that its queue is entitled to, and for which none may leave, is tried once there is room."""
    full, waiting, other = pod("b", "full", 8, 2_000_000_000), pod("a", "waiting", 2), pod("b", "other", 0)
    async with at_work(QUOTAS) as host:
        await host.set_time(100.0)
        host.cluster.put_pod(full, "n0")
        host.cluster.put_pod(other, "n0")
        await refused(host, waiting)
        await evicted(host, waiting)

        assert [] == await worth(host, [waiting], other)
        assert ["waiting"] == await worth(host, [waiting], full)
