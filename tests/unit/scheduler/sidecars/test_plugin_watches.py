"""Kinds that plugins want to see: watched beside everything else, and said to be missing where they are."""

import asyncio

from berth.client.errors import DeadlineError
from berth.client.resources import Resource
from berth.client.watching.watch import WatchSource
from berth.client.write_guard import Terms, WriteGuard
from berth.out_of_tree.cluster_state.watched_objects import WatchedKind
from berth.scheduler.leading.fence import Fence, MirrorView
from berth.scheduler.loop.running_tasks import RunningTasks
from berth.scheduler.sidecars import plugin_watches
from tests.failures.reporting import reports

KIND = WatchedKind("example.com", "v1", "things")
RESOURCE = Resource("example.com", "v1", "things", namespaced=True)


class NoSuchKind:
    """A reflector whose kind the API server does not have: it goes on trying."""

    def __init__(self, _transport, source, *_):
        self.source, self.proofs = source, 0

    async def prove(self):
        self.proofs += 1
        await asyncio.Event().wait()

    async def run(self):
        await asyncio.Event().wait()

    async def wait_synced(self, _seconds):
        raise DeadlineError("things: not listed")


class Handler:
    def __init__(self):
        self.overdue = asyncio.Event()

    def on_overdue(self, why):
        self.why = why
        self.overdue.set()


async def test_a_kind_that_the_api_server_does_not_have(monkeypatch):
    """It is said which kind it is and what may be wrong; the watch goes on until it is stopped."""
    monkeypatch.setattr(plugin_watches, "Reflector", NoSuchKind)
    handler, mirrors = Handler(), []
    async with asyncio.TaskGroup() as group:
        running = RunningTasks(group)
        stop = plugin_watches.watch(None, running, mirrors, KIND, handler)
        await handler.overdue.wait()
        assert any(
            task.get_name() == "watch of things.v1.example.com for plugins" for task in running._running
        )
        (mirror,) = mirrors
        stop()

    assert [] == mirrors
    assert mirror.stopped.is_set()
    assert "things.v1.example.com not listed within 30 s: the API server has no such kind" in handler.why
    assert set() == running._running


@reports("plugin-kind-not-proven", log="`kind of plugins not proven, its last state stands`")
async def test_a_kind_that_is_not_proven_does_not_hold_everything_up(monkeypatch, caplog):
    """The fence waits for it, but not for ever, and not because its watch is away."""
    monkeypatch.setattr(plugin_watches, "LISTING_SECONDS", 0.01)
    reflector = NoSuchKind(None, WatchSource(RESOURCE))
    mirror = plugin_watches.PluginMirror(reflector)
    fence = Fence(MirrorView(lambda: [mirror], 0.0), WriteGuard(), Terms())
    fence.begin_term(raised=True)
    await fence.lower()

    assert 1 == reflector.proofs
    assert not fence.is_up()
    assert "kind of plugins not proven, its last state stands resource=things" in caplog.text


async def test_a_kind_that_no_plugin_wants_any_more_is_not_waited_for():
    """Its watch ended, so that no proof would come."""
    mirror = plugin_watches.PluginMirror(NoSuchKind(None, WatchSource(RESOURCE)))
    proof = asyncio.create_task(mirror.prove())
    await asyncio.sleep(0)
    mirror.stopped.set()

    async with asyncio.timeout(plugin_watches.LISTING_SECONDS / 2):
        await proof
