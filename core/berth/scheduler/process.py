"""The scheduler process: adapters started around a core, led by a lease, until it is told to stop.

    endpoint -> transports -> core -> watches synced -> (lease held) -> scheduling loop
                                          |
                                          +-- lost: leadership.py stops the loop, writes are refused

    made in process_parts.py, started and ended here; lease and secure port run in control_thread.py

Everything durable is in the API server: a process that dies at any point leaves nothing to clean up.

Source: spec/core.md 0.1, 8.5; spec/config.md 15.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from berth.client.credentials import load_endpoint
from berth.client.endpoint import Endpoint
from berth.scheduler.control_thread import ControlThread
from berth.scheduler.leadership import Leadership
from berth.scheduler.loop_turns import LoopTurns
from berth.scheduler.process_parts import Control, Parts, make_parts
from berth.scheduler.process_settings import Port, ProcessSettings
from berth.scheduler.shown_parts import ShownParts
from berth.scheduler.transports import open_control_transports, open_transports

if TYPE_CHECKING:
    from berth.scheduler.serving import SecureServer

LAST_EVENTS_SECONDS = 5.0
# How long requests that were sent may wait for their answers, and what else ends by itself for its end.
LAST_ANSWERS_SECONDS = 1.0
SETTLE_SECONDS = 0.1
# A client that connects at the start is answered after so long, or once everything is listed where that is
# sooner: what serves takes half a second of imports, and lists and first decisions go before.
SERVE_WITHIN_SECONDS = 3.0
FIRST_DECISIONS_SECONDS = 0.1


async def run(settings: ProcessSettings, stop: asyncio.Event, dump: asyncio.Event | None = None) -> None:
    """Schedule until `stop` is set, then end in order; each time `dump` is set, the log tells of the cache.

    Raises: ConfigurationError, BuildError, EventRegistrationError, StartError before anything runs.
    """
    endpoints = await asyncio.to_thread(_endpoints, settings)
    try:
        async with AsyncExitStack() as stack:
            process = await _make(settings, endpoints, stack)
            await _run(process, stack, stop, dump or asyncio.Event())
    except BaseExceptionGroup as group:
        # What the body of a task group raises comes out wrapped; alone, it is the error that was raised.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


def _endpoints(settings: ProcessSettings) -> tuple[Endpoint, Endpoint]:
    """The API server twice, once for each loop: credentials that are renewed belong to one loop."""
    kubeconfig = settings.loaded.configuration.client_connection.kubeconfig
    first, second = (load_endpoint(kubeconfig=kubeconfig, master=settings.master) for _ in range(2))
    return first, second


async def _make(
    settings: ProcessSettings, endpoints: tuple[Endpoint, Endpoint], stack: AsyncExitStack
) -> "Process":
    turns = LoopTurns(asyncio.get_running_loop())
    thread = await stack.enter_async_context(ControlThread(turns))
    transports = open_transports(settings, endpoints[0], stack)
    control = Control(thread, open_control_transports(endpoints[1], thread, stack))
    tasks = await stack.enter_async_context(asyncio.TaskGroup())
    return Process(make_parts(settings, transports, control, tasks))


async def _run(process: "Process", stack: AsyncExitStack, stop: asyncio.Event, dump: asyncio.Event) -> None:
    process.serve(stack)
    try:
        await process.until(stop, dump)
    finally:
        await process.finish()


class Process:
    """One scheduler process, from its start to its end."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._spawn = parts.tasks.spawn
        self._prepared = self._stopping = False
        self._server: SecureServer | None = None
        self._leadership = Leadership(
            parts.elector,
            parts.loop,
            parts.fence,
            self._prepare,
            delayed=parts.settings.loaded.configuration.delay_cache_until_active,
        )

    def serve(self, stack: AsyncExitStack) -> None:
        """Show what the process shows of itself until the stack is left, if it is to be shown at all.

        Raises: StartError where address or certificate can't be used.
        """
        shown = self._parts.shown(self._leadership)
        shown.watch_metrics()
        port = self._settings.serving.open()
        if port is not None:
            stack.push_async_callback(self._close, port)
            self._spawn(self._serve(port, shown), "serving")

    async def _serve(self, port: Port, shown: ShownParts) -> None:
        self._server = await self._parts.control.run(self._start_server(port, shown))

    async def _start_server(self, port: Port, shown: ShownParts) -> "SecureServer":
        """Answer on the port. The control thread runs and times it, whatever keeps the scheduling loop."""
        synced = self._parts.first_sync.synced
        with suppress(TimeoutError):
            async with asyncio.timeout(SERVE_WITHIN_SECONDS):
                while not synced.is_set():  # noqa: ASYNC110 - an event of the other thread's loop
                    await asyncio.sleep(FIRST_DECISIONS_SECONDS)
                await asyncio.sleep(FIRST_DECISIONS_SECONDS)
        # A worker thread imports and assembles the pages: meanwhile the lease is renewed.
        endpoints = await asyncio.to_thread(
            shown.endpoints,
            synced=lambda: "" if synced.is_set() else "handlers are not fully synchronized",
            ending=lambda: "the process is ending" if self._stopping else "",
        )
        return await self._settings.serving.start(port, endpoints, self._parts.review)

    async def _close(self, port: Port) -> None:
        if self._server is not None:
            await self._parts.control.run(self._server.close())
        port.listener.close()

    async def until(self, stop: asyncio.Event, dump: asyncio.Event) -> None:
        """Watch, campaign and schedule until `stop` is set."""
        self._spawn(self._parts.recorder.run(), "events")
        hosted = self._parts.plugins.hosted
        for name, work in hosted.work() if hosted else ():
            self._spawn(work, name)
        self._spawn(self._parts.debugger.write_whenever(dump), "dump")
        leading = self._spawn(self._leadership.run(), "leadership")
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([leading, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            leading.cancel()
            await asyncio.gather(stopped, leading, return_exceptions=True)

    async def _prepare(self) -> None:
        """Watch, and wait until everything is known; once."""
        if self._prepared:
            return
        await self._parts.first_sync.run()
        self._prepared = True
        self._parts.upkeep.start()
        self._settings.on_ready(self._parts.core)
        self._spawn(self._parts.loop.follow(), "snapshot")

    async def finish(self) -> None:
        """Let what was sent be answered, give the lease back, write the last events, and stop everything.

        What has sent no binding yet needs none: its pod is on no node, and the successor takes it up.
        """
        parts = self._parts
        self._stopping = True
        parts.guard.close()
        parts.core.shared.queue.close()
        settled = await parts.guard.settled(LAST_ANSWERS_SECONDS)
        await self._leadership.release(settled=settled)
        parts.upkeep.end_recordings()
        await parts.background.settle(SETTLE_SECONDS)
        await parts.plugins.close()
        await parts.recorder.drain(LAST_EVENTS_SECONDS)
        parts.tasks.cancel()
