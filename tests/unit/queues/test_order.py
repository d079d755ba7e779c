"""The order of the queue by what queues have, asked as a scheduler asks it."""

import asyncio

import pytest

from berth_plugin_proto import queueing_pb2
from berth_queues import Queues
from berth_queues import keys as module
from berth_sdk import CycleOutcome, ObjectKey
from berth_sdk.testing import make_node, make_pod, running
from tests.unit.out_of_tree.scripted import until

CPU = {"cpu": "1"}


def node():
    return make_node("n0", allocatable={"cpu": "100", "memory": "100Gi", "pods": "1000"})


def pod(name, namespace="a", **fields):
    return make_pod(name, namespace=namespace, requests=CPU, **fields)


async def test_namespaces_take_turns():
    """A namespace that comes late with one pod is not behind a hundred of another."""
    async with running(Queues(), node()) as host:
        many = [pod(f"p{i}") for i in range(100)]
        keys = await host.sort_keys(*many, anew=True)
        (late,) = await host.sort_keys(pod("late", "b"))

    assert (keys[0], keys) == (late, sorted(keys))
    assert sum(key < late for key in keys) == 0


async def test_weights():
    """A namespace of weight 2 gets two pods placed for each one of another."""
    async with running(Queues(), node(), arguments={"weights": {"b": 2}}) as host:
        (first, second) = await host.sort_keys(pod("p"), pod("q"))
        (_, twice, third) = await host.sort_keys(*(pod(f"r{i}", "b") for i in range(3)))

    assert (first, True) == (twice, first < third < second)


async def test_critical_pods_are_first():
    """Pods of the cluster itself stand before everybody's share."""
    async with running(Queues(), node()) as host:
        (ordinary, critical) = await host.sort_keys(
            pod("p", "idle"), pod("dns", "busy", priority=2_000_000_000)
        )

    assert critical < ordinary


async def test_priorities_may_rule():
    """With `first: priority` shares decide among pods of one priority only."""
    async with running(Queues(), node(), arguments={"first": "priority"}) as host:
        (low, *_, high) = await host.sort_keys(
            pod("low", "b"), *(pod(f"p{i}") for i in range(9)), pod("high", priority=7)
        )

    assert high < low


async def test_an_end_brings_the_others_forward(monkeypatch):
    """When a pod ends, those of its namespace get lower keys."""
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    plugin = Queues()
    async with running(plugin, node()) as host:
        host.cluster.put_pod(make_pod("old", namespace="a", requests={"cpu": "50"}, node_name="n0"), "n0")
        (before,) = await host.sort_keys(pod("p"))
        stream = host.changed_sort_keys()
        first = asyncio.ensure_future(anext(stream))
        await until(lambda: plugin.requeue._listeners)
        host.cluster.remove_pod("pod-a-old")
        await host.update()
        changed = await first

    assert {"pod-a-p": (0, 1, 0, 10_000, 10_000)} == changed
    assert (0, 1, 0, 510_000, 510_000) == before


async def test_keys_are_worked_out_some_at_a_time(monkeypatch):
    """However many pods wait, calls are answered between the keys of some and those of the next."""
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(module, "PODS_AT_ONCE", 2)
    plugin = Queues()
    async with running(plugin, node()) as host:
        host.cluster.put_pod(make_pod("old", namespace="a", requests={"cpu": "50"}, node_name="n0"), "n0")
        await host.sort_keys(*(pod(f"p{i}") for i in range(5)))
        stream = host.changed_sort_keys()
        first = asyncio.ensure_future(anext(stream))
        await until(lambda: plugin.requeue._listeners)
        host.cluster.remove_pod("pod-a-old")
        await host.update()
        parts = [await first, await anext(stream), await anext(stream)]

    assert [["pod-a-p0", "pod-a-p1"], ["pod-a-p2", "pod-a-p3"], ["pod-a-p4"]] == [
        sorted(part) for part in parts
    ]


async def test_a_pod_that_fits_nowhere_lets_others_go_first(monkeypatch):
    """After an attempt in vain those behind it get the keys as if it were not there."""
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    plugin = Queues()
    async with running(plugin, node()) as host:
        huge = make_pod("huge", namespace="a", requests={"cpu": "90"})
        await host.sort_keys(huge, pod("p"))
        first = asyncio.ensure_future(anext(host.changed_sort_keys()))
        await until(lambda: plugin.requeue._listeners)
        await host.cycle_done(huge, CycleOutcome.UNSCHEDULABLE)
        changed = await first

    assert {"pod-a-p": (0, 1, 0, 10_000, 10_000)} == changed


@pytest.mark.parametrize(
    "arguments", [{"weights": {"a": 0}}, {"weight": -1}, {"first": "none"}, {"other": 1}]
)
async def test_arguments_are_checked(arguments):
    """Weights are above zero, and `first` is one of two words."""
    async with running(Queues(), node()) as host:
        assert await host.configure(arguments)


async def test_the_past_counts():
    """Of two queues that have nothing now the one goes first that used less before."""
    plugin = Queues()
    async with running(plugin, node(), arguments={"halfLifeSeconds": 60}) as host:
        await host.set_time(0.0)
        for name, parent in (("all", ""), ("a", "all"), ("b", "all")):
            key = ObjectKey("queues.berth.dev", "v1alpha1", "queues", "", name)
            host.cluster.put_object(key, {"spec": {"parent": parent, "namespaces": [name]}})
        host.cluster.put_pod(make_pod("old", namespace="a", requests={"cpu": "50"}, node_name="n0"), "n0")
        await host.update()
        await host.set_time(300.0)
        host.cluster.remove_pod("pod-a-old")
        await host.update()
        await host.sort_keys(pod("p", "a"), pod("q", "b"), anew=True)
        await host.set_time(302.0)
        sent = plugin.keys._sent

    assert sent["pod-b-q"] < sent["pod-a-p"]


async def tried_again(host):
    """The pods that the plugin first says are to be tried again."""
    async for message in host.queueing.Requeue(queueing_pb2.RequeueRequest()):
        if message.WhichOneof("action") == "requeue":
            return list(message.requeue.uids)
    raise AssertionError("the stream has ended")


async def test_a_share_that_grows_has_pods_tried_again(monkeypatch):
    """Pods that their queue's fair share had no room for are tried again when another queue wants less."""
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    plugin = Queues()
    async with running(plugin, node(), arguments={"reclaim": "FairShare"}) as host:
        for name, parent in (("all", ""), ("a", "all"), ("b", "all")):
            key = ObjectKey("queues.berth.dev", "v1alpha1", "queues", "", name)
            spec = {"namespaces": [name]} | ({"parent": parent} if parent else {"capacity": "Nodes"})
            host.cluster.put_object(key, {"spec": spec})
        for name, cores in (("a", "50"), ("b", "50")):
            placed = make_pod(f"placed-{name}", namespace=name, requests={"cpu": cores}, node_name="n0")
            host.cluster.put_pod(placed, "n0")
        await host.update()
        waiting = pod("p", "a")
        news = asyncio.create_task(tried_again(host))
        await until(lambda: plugin.requeue._listeners)
        await host.sort_keys(waiting, pod("q", "b"), anew=True)
        await host.cycle_done(waiting, CycleOutcome.UNSCHEDULABLE)
        await until(lambda: plugin.keys._entitled._short == {"Queue a"})
        host.cluster.remove_pod("pod-b-placed-b")
        await host.update()

        assert ["pod-a-p"] == await news
