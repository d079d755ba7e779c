"""Kinds that plugins want to see: watched beside everything else, and said to be missing where they are."""

import asyncio

from berth.client.errors import DeadlineError
from berth.out_of_tree.watched_objects import WatchedKind
from berth.scheduler import plugins_elsewhere
from berth.scheduler.running_tasks import RunningTasks

KIND = WatchedKind("example.com", "v1", "things")


class NoSuchKind:
    """A reflector whose kind the API server does not have: it goes on trying."""

    def __init__(self, *_):
        pass

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
    monkeypatch.setattr(plugins_elsewhere, "Reflector", NoSuchKind)
    handler = Handler()
    async with asyncio.TaskGroup() as group:
        running = RunningTasks(group)
        stop = plugins_elsewhere._watch(None, running, KIND, handler)
        await handler.overdue.wait()
        assert any(
            task.get_name() == "watch of things.v1.example.com for plugins" for task in running._running
        )
        stop()

    assert "things.v1.example.com not listed within 30 s: the API server has no such kind" in handler.why
    assert set() == running._running
