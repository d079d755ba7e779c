"""The order of the queue by a sidecar: keys asked for, changed, late, and hostile ones."""

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.framework.queueing.queued_pod import NO_KEY
from berth.framework.runtime import Framework, ProfilePlugins
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin
from berth.out_of_tree.queueing import sort_key_asker
from berth.scheduler.loop.background import AsyncioBackground
from berth_plugin_proto import identity_pb2, queueing_pb2
from berth_queues import Queues
from berth_sdk import Plugin
from berth_sdk.serving import Server
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import NAME, PROFILE, Harness, Scripted, running, until

QUEUE_SORT = identity_pb2.EXTENSION_POINT_QUEUE_SORT


class ByTeam(Plugin):
    """Sorts pods by a label; notes what it hears."""

    name = NAME

    def __init__(self):
        self.asked, self.gone, self.resets = [], [], 0

    def configure(self, arguments, profile):
        pass

    def sort_key(self, pod):
        self.asked.append(pod.name)
        if pod.labels.get("turn") == "none":
            raise LookupError(pod.name)
        return (int(pod.labels.get("turn", "0")), -1)

    def pods_left(self, uids):
        self.gone += uids

    def queue_reset(self, profile):
        assert PROFILE == profile
        self.resets += 1


class Counting(PluginMetrics):
    def __init__(self):
        super().__init__()
        self.keys = {}

    def sorted(self, plugin, outcome, count):
        assert plugin in (NAME, "queues")
        self.keys[outcome] = self.keys.get(outcome, 0) + count


class Ordered(Harness):
    """A harness whose queue the plugin orders."""

    def add(self, name, turn=None):
        """A pod with that turn is queued."""
        pod = self.pod(name, labels={} if turn is None else {"turn": str(turn)})
        self.queue.add(pod)
        return pod

    async def order(self, count):
        """The names of so many pods, once they are all ready."""
        await until(lambda: self.queue.sizes().active == count)
        return [self.queue.pop().pod.name for _ in range(count)]

    @property
    def counts(self):
        return self.host.metrics.keys


@asynccontextmanager
async def ordered(path, plugin=None, **options):
    """Such a harness, with a plugin of the SDK served or with none there yet."""
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        if plugin is not None:
            server = Server(plugin, f"unix:{path}")
            await server.start()
            stack.push_async_callback(server.stop, 0)
        harness = Ordered(path, background=AsyncioBackground(tasks), metrics=Counting(), **options)
        yield await stack.enter_async_context(running(harness))
        for each in harness.host.plugins.values():
            each.keys.close()


@pytest.fixture
def path():
    """A socket in a private folder."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        yield Path(folder, "p.sock")


async def test_pods_are_popped_as_the_plugin_says(path):
    """Keys are asked for many pods in a call, and the lowest is popped first."""
    plugin = ByTeam()
    async with ordered(path, plugin) as harness:
        await harness.up()
        for name, turn in (("c", 3), ("a", 1), ("b", 2)):
            harness.add(name, turn)

        assert ["a", "b", "c"] == await harness.order(3)
        assert ({"given": 3}, ["c", "a", "b"], 1) == (harness.counts, plugin.asked, plugin.resets)


async def test_a_failure_for_one_pod_is_the_key_zero(path):
    """The SDK gives a pod that the author's function fails for the key 0; others have theirs."""
    async with ordered(path, ByTeam()) as harness:
        await harness.up()
        for name, turn in (("after", 1), ("broken", "none"), ("before", -1)):
            harness.add(name, turn)

        assert ["before", "broken", "after"] == await harness.order(3)


async def test_the_plugin_changes_its_mind(path):
    """A key that the plugin sends by itself moves its pod; one of a pod it was not asked about is counted."""
    plugin = ByTeam()
    async with ordered(path, plugin) as harness:
        await harness.up()
        pods = [harness.add(name, turn) for name, turn in (("a", 1), ("b", 2))]
        await until(lambda: harness.queue.sizes().active == 2)
        plugin.requeue.sort_keys({pods[0].uid: (9,), "stranger": (0,)}, "a test")
        await until(lambda: "unknown" in harness.counts)

        assert ["b", "a"] == await harness.order(2)
        assert {"given": 2, "changed": 1, "unknown": 1} == harness.counts


async def test_a_plugin_that_is_away_holds_up_no_pod(path):
    """Pods go on with the key 0, in PrioritySort's order; once it is there it is asked about all of them."""
    async with ordered(path) as harness:
        for name, turn in (("late", 2), ("early", 1)):
            harness.add(name, turn)
        await until(lambda: harness.queue.sizes().active == 2)
        assert [NO_KEY] * 2 == [record.sort_key for record in harness.queue._sub_queues.active]
        server = Server(ByTeam(), f"unix:{path}")
        await server.start()
        await until(lambda: harness.counts.get("changed") == 2)

        assert ["early", "late"] == await harness.order(2)
        await server.stop(0)


async def test_a_plugin_that_comes_again_is_asked_anew(path):
    """Another process knows nothing of what the one before was asked."""
    first, second = ByTeam(), ByTeam()
    async with ordered(path) as harness:
        server = Server(first, f"unix:{path}")
        await server.start()
        await harness.up()
        harness.add("p", 1)
        await until(lambda: harness.queue.sizes().active == 1)
        await server.stop(0)
        await until(lambda: not harness.connection.ready)
        server = Server(second, f"unix:{path}")
        await server.start()
        await until(lambda: second.asked)

        assert (["p"], 1) == (second.asked, second.resets)
        await server.stop(0)


async def test_the_plugin_hears_who_left(path, monkeypatch):
    """Pods that were bound or deleted are named in the next call, or in one of their own."""
    monkeypatch.setattr(sort_key_asker, "LEFT_SECONDS", 0.0)
    plugin = ByTeam()
    async with ordered(path, plugin) as harness:
        await harness.up()
        pod = harness.add("p", 1)
        await harness.order(1)
        harness.queue.delete(pod)
        await until(lambda: plugin.gone)

        assert [pod.uid] == plugin.gone


def keys(request, *parts):
    """An answer that gives each pod that key."""
    return queueing_pb2.SortKeysResponse(keys=[queueing_pb2.SortKey(parts=parts) for _ in request.pods])


async def test_a_late_plugin_holds_up_no_pod(path, monkeypatch):
    """A pod waits no longer than a call may take; once the plugin answers, its key moves it."""
    monkeypatch.setattr(sort_key_asker, "RETRY_SECONDS", 0.0)
    plugin, gate = Scripted(QUEUE_SORT), asyncio.Event()

    async def slowly(request, _context):
        await gate.wait()
        return keys(request, 5)

    plugin.replies["SortKeys"] = slowly
    async with plugin.served(path), ordered(path, timeout_seconds=0.05) as harness:
        await harness.up()
        harness.add("p")
        await until(lambda: harness.queue.sizes().active == 1)
        assert NO_KEY == harness.queue.record("default", "p").sort_key

        gate.set()
        harness.allow()
        await until(lambda: harness.queue.record("default", "p").sort_key[0] == 5)
        assert 1 == harness.counts["changed"]


@reports("sort-keys-fail", log="`pods queued without sort keys`, with the cause")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda _request: queueing_pb2.SortKeysResponse(), "0 sort keys for 1 pods"),
        (lambda request: keys(request, *range(9)), "a sort key of 9 parts, at most 8"),
    ],
)
async def test_an_answer_that_is_none(path, monkeypatch, answer, why, caplog):
    """A wrong answer is a failure of the plugin, its pods are queued without keys, and it is asked again."""
    monkeypatch.setattr(sort_key_asker, "RETRY_SECONDS", 0.0)
    plugin, answers = Scripted(QUEUE_SORT), [answer, lambda request: keys(request, 3)]

    async def once(request, _context):
        return answers.pop(0)(request) if answers else keys(request, 3)

    plugin.replies["SortKeys"] = once
    async with plugin.served(path), ordered(path) as harness:
        await harness.up()
        harness.add("p")
        await until(lambda: harness.queue.sizes().active == 1)
        assert why in harness.connection.last_failure
        assert "pods queued without sort keys err=plugin scripted: " in caplog.text
        await until(lambda: harness.queue.record("default", "p").sort_key[0] == 3)


async def test_pods_queued_after_a_failure_do_not_ask_one_by_one(path, monkeypatch):
    """Until the pause after a failed call is over pods are queued at once, and asked about together then."""
    monkeypatch.setattr(sort_key_asker, "RETRY_SECONDS", 3600.0)
    plugin = Scripted(QUEUE_SORT)
    plugin.replies["SortKeys"] = queueing_pb2.SortKeysResponse(keys=[queueing_pb2.SortKey()] * 7)
    async with plugin.served(path), ordered(path) as harness:
        await harness.up()
        harness.add("p0")
        await until(lambda: harness.counts.get("failed") == 1)
        for number in range(1, 20):
            harness.add(f"p{number}")
        await until(lambda: harness.queue.sizes().active == 20)

        assert 1 == len(plugin.requests("SortKeys"))


# What profiles name at queueSort stays.


async def attaching(harness):
    """What attaches plugins to a profile that the plugin orders."""
    framework = Framework(
        PROFILE, ProfilePlugins(queue_sort=[harness.plugin], by_name={NAME: harness.plugin})
    )
    return Attaching(harness.host, {PROFILE: framework}, {PROFILE: harness.handle}, lambda _work, _name: None)


async def test_an_order_cannot_be_taken_away(path):
    """The plugin is neither detached nor put into shadow: no other one orders the queue."""
    async with ordered(path, ByTeam()) as harness:
        await harness.up()
        there = await attaching(harness)
        with pytest.raises(AttachError, match="orders the queue and can't be taken out"):
            await there.detach(NAME)
        with pytest.raises(AttachError, match="orders the queue and can't stand in shadow"):
            await there.shadow(NAME, on=True)
        with pytest.raises(AttachError, match="orders the queue and can't stand in shadow"):
            await there.attach(DesiredPlugin(replace(harness.connection.spec, shadow=True)))

        assert "ready" == there.list()[0]["state"]


def test_an_attached_plugin_takes_no_place_of_the_only_one():
    """Profiles alone say which plugin orders the queue, whatever an entry's points are."""
    framework = Framework(PROFILE, ProfilePlugins(queue_sort=[SimpleNamespace(name="PrioritySort")]))
    spec = SidecarSpec(
        NAME, "unix:/p", extension_points=frozenset({ExtensionPoint.QUEUE_SORT, ExtensionPoint.SCORE})
    )
    EnabledPlugins(framework).enable(SimpleNamespace(name=NAME), spec, 1)

    assert ["PrioritySort"] == [each.name for each in framework.plugins.queue_sort]
    assert [(NAME, 1)] == [(each.name, weight) for each, weight in framework.plugins.score]


async def test_a_version_that_was_replaced_changes_no_keys(path):
    """What an old version says of the order counts no more once another one is asked."""
    plugin = ByTeam()
    async with ordered(path, plugin) as harness:
        await harness.up()
        pod = harness.add("p", 1)
        await until(lambda: harness.queue.sizes().active == 1)
        old = harness.connection
        new = harness.host.new_version(old.spec, dict(old.arguments))
        harness.plugin.use(harness.host.caller(new, PROFILE))
        plugin.requeue.sort_keys({pod.uid: (9,)}, "a test")
        await until(lambda: "unknown" in harness.counts)

        assert [1, -1] == list(harness.queue.record("default", "p").sort_key[:2])


# A plugin of the repository.


async def test_queues_order_a_queue(path):
    """However many pods one namespace submits first, another one's are next but one."""
    async with ordered(path, Queues(), name="queues", arguments={}) as harness:
        await harness.up()
        for number in range(6):
            harness.queue.add(harness.pod(f"a{number}", namespace="a", requests={"cpu": "1"}))
        await until(lambda: harness.queue.sizes().active == 6)
        for number in range(2):
            harness.queue.add(harness.pod(f"b{number}", namespace="b", requests={"cpu": "1"}))

        assert ["a0", "b0", "a1", "b1", "a2", "a3", "a4", "a5"] == await harness.order(8)
