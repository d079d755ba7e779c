"""What is collected is bounded, whatever pods and plugins say."""

import asyncio

from berth.cache.cache import Cache
from berth.explain.attempt_log import AttemptLog
from berth.framework.status import unschedulable
from berth.live_page.collecting import (
    MAX_DECISIONS,
    MAX_MESSAGE,
    MAX_PLUGINS,
    MAX_TEXT,
    Collector,
)
from berth.live_page.history import History
from berth.live_page.node_map import NodeMap
from berth.live_page.recent_attempts import RecentAttempts
from berth.queue.sub_queues import QueueSizes
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import ManualClock
from tests.failures.reporting import reports
from tests.unit.telemetry.records import SIDECAR_SPAN_ID, interval, make_record


class Queue:
    """A queue in which these pods wait."""

    def __init__(self, *waiting):
        self._waiting = waiting

    def sizes(self):
        return QueueSizes(0, 0, len(self._waiting), 0)

    def record(self, namespace, name):
        return name if f"{namespace}/{name}" in self._waiting else None


class Cluster:
    """The parts that are read."""

    def __init__(self, *waiting, plugins=()):
        self.cache, self.attempts, self.recent = Cache(), AttemptLog(), RecentAttempts()
        queue, snapshot = Queue(*waiting), Snapshot()
        self.collector = Collector(
            cache=self.cache,
            snapshot=snapshot,
            queue=queue,
            attempts=self.attempts,
            recent=self.recent,
            history=History(queue.sizes, self.recent, ManualClock()),
            nodes=NodeMap(snapshot),
            plugins=lambda: plugins,
            leads=lambda: True,
            turn=asyncio.Lock(),
        )

    def tried(self, *records):
        for record in records:
            self.attempts.on_record(record)
            self.recent.on_record(record)

    async def state(self):
        return (await self.collector.collect()).state


def failed(name, message="no room"):
    return make_record(pod=make_pod(name), result="unschedulable", status=unschedulable(message))


def line(name, **changes):
    about = {
        "version": "1",
        "state": "ready",
        "circuit": "closed",
        "shadow": False,
        "profiles": [],
        "error": "",
    }
    return {"name": name, **about, **changes}


async def test_those_wait_that_are_in_the_queue():
    """A pod that is gone, or has a node meanwhile, does not."""
    cluster = Cluster("default/a", "default/c")
    cluster.tried(*(failed(name) for name in "abc"), make_record(pod=make_pod("d")))

    state = await cluster.state()
    assert ["c", "a"] == [each.name for each in state.pending]
    assert ["d", "c", "b", "a"] == [each.name for each in state.decisions]


async def test_decisions_are_bounded():
    """In number, and in what each says."""
    names = [f"p{i}" for i in range(2 * MAX_DECISIONS)]
    cluster = Cluster(*(f"default/{name}" for name in names))
    cluster.tried(*(failed(name, "x" * 10_000) for name in names))

    state = await cluster.state()
    assert (MAX_DECISIONS, MAX_DECISIONS) == (len(state.pending), len(state.decisions))
    assert {MAX_MESSAGE} == {len(each.message) for each in (*state.pending, *state.decisions)}


@reports("plugin-on-live-page", answer="the live page, the `error` of each of its `plugins`, cut to a bound")
async def test_plugins_are_bounded():
    """In number, and in what each says."""
    cluster = Cluster(plugins=[line(f"p{i}", error="x" * 10_000) for i in range(2 * MAX_PLUGINS)])

    plugins = (await cluster.state()).plugins
    assert MAX_PLUGINS == len(plugins)
    assert {MAX_TEXT} == {len(plugin.error) for plugin in plugins}


async def test_a_plugin_with_its_latency():
    """That of the calls by its name; none where it was not called."""
    cluster = Cluster(plugins=[line("gpu"), line("idle")])
    cluster.tried(make_record(intervals=[interval("gpu Filter", 0, 3, span_id=SIDECAR_SPAN_ID)]))

    called, idle = (await cluster.state()).plugins
    assert (1, 3000, 3000) == (called.calls, called.p50, called.p99)
    assert (0, 0, 0) == (idle.calls, idle.p50, idle.p99)


async def test_the_nodes_of_the_moment():
    """The snapshot follows the cache first, and the names are those of the shares."""
    cluster = Cluster()
    cluster.cache.add_node(make_node("a"))
    first = await cluster.collector.collect()
    cluster.cache.add_node(make_node("b"))
    second = await cluster.collector.collect()

    assert (1, 2) == (first.state.node_count, second.state.node_count)
    assert first.state.nodes != second.state.nodes
    assert b'"names":["a","b"]' in second.nodes
    assert 2 == len(second.state.resources[0].shares)


async def test_nothing_is_collected_within_a_turn_of_the_loop():
    """A cycle may have pods on trial in the snapshot."""
    cluster = Cluster()
    async with cluster.collector.turn:
        collecting = asyncio.create_task(cluster.collector.collect())
        await asyncio.sleep(0)
        assert not collecting.done()

    assert (await collecting).state.leads
