"""The operator as a process: mirrors first, then the lease, then one Scheduler after the other.

A standby watches too, so that it takes over at once.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from berth.client.api import Api
from berth.client.credentials import load_endpoint
from berth.client.errors import ClientError, LeaseLostError, NotFoundError
from berth.client.events import EventRecorder
from berth.client.leases import LeaderElector, LeaseSettings, new_identity
from berth.client.reflector import Reflector
from berth.client.resources import PODS, Resource
from berth.client.transport import Transport
from berth.client.watch import Source
from berth.operator.kinds import (
    FIELD_MANAGER,
    KEPT,
    MANAGED_BY,
    PLUGINS,
    SCHEDULERS,
    SERVICE_MONITORS,
    Json,
    Key,
)
from berth.operator.metrics import OperatorMetrics
from berth.operator.observed import Mirror, Observed
from berth.operator.reconciler import Reconciler
from berth.operator.rendering import Settings
from berth.operator.work_queue import WorkQueue
from berth.scheduler.delegated_access import DelegatedAccess
from berth.scheduler.serving import Endpoints, SecureServer, listen
from berth.scheduler.serving_certificate import server_context

log = logging.getLogger(__name__)

SYNC_SECONDS = 60.0
LOOK_FOR_KINDS_SECONDS = 60.0
# Everything is looked at again now and then, should an event ever have been missed.
RESYNC_SECONDS = 600.0
_KIND = "ServiceMonitor"


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """How to run. Without `lease` nobody is asked whether another operator leads; port 0 serves nothing."""

    image: str
    kubeconfig: str = ""
    lease: LeaseSettings | None = None
    bind_address: str = "0.0.0.0"  # noqa: S104 (in a pod, its own address)
    port: int = 0
    on_ready: Callable[[], None] = field(default=lambda: None)


async def run(settings: OperatorSettings, stop: asyncio.Event) -> None:
    """Run until `stop` is set.

    Raises: ConfigurationError, StartError before anything runs; LeaseLostError when another may lead.
    """
    endpoint = await asyncio.to_thread(load_endpoint, kubeconfig=settings.kubeconfig)
    try:
        async with AsyncExitStack() as stack:
            transports = [Transport(endpoint, max_connections=count) for count in (16, 2, 2)]
            for transport in transports:
                stack.push_async_callback(transport.aclose)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            operator = Operator(settings, transports[0], Api(transports[1]), Api(transports[2]), tasks=tasks)
            server = await operator.serve()
            if server is not None:
                stack.push_async_callback(server.close)
            try:
                await operator.until(stop)
            finally:
                await operator.finish()
    except BaseExceptionGroup as group:
        # What the body of a task group raises comes out wrapped; alone, it is the error that was raised.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


class Operator:
    """The running parts of one operator."""

    def __init__(
        self,
        settings: OperatorSettings,
        transport: Transport,
        leases: Api,
        events: Api,
        *,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._api = Api(transport)
        self._tasks = tasks
        self._running: list[asyncio.Task[Any]] = []
        self._recorder = EventRecorder(events)
        self._review = DelegatedAccess(events)
        self._metrics = OperatorMetrics()
        self._queue = WorkQueue(asyncio.get_running_loop().call_later)
        self._observed = Observed(self._queue.add, tuple(KEPT))
        self._monitors = False
        self._synced = False
        lease = settings.lease
        self._elector = LeaderElector(leases, lease, new_identity()) if lease is not None else None
        self._reconciler = Reconciler(
            self._api,
            self._observed,
            self._recorder,
            self._metrics,
            settings=lambda: Settings(settings.image, service_monitors=self._monitors),
            now=_now,
        )

    async def serve(self) -> SecureServer | None:
        """Serve health and metrics. Raises: StartError when the port is taken."""
        listener = listen(self._settings.bind_address, self._settings.port)
        if listener is None:
            return None
        ready = {"sync": lambda: "" if self._synced else "not everything is listed yet"}
        endpoints = Endpoints(
            self._metrics.text, _keep_metrics, dict, healthz={"lease": self._lease}, readyz=ready
        )
        return await SecureServer.start(listener, server_context(), endpoints, review=self._review)

    async def until(self, stop: asyncio.Event) -> None:
        """Watch, campaign and work until `stop` is set."""
        self._spawn(self._recorder.run(), "events")
        ours = f"{MANAGED_BY}={FIELD_MANAGER}"
        mirrors = [
            self._mirror(SCHEDULERS, self._observed.schedulers),
            self._mirror(PLUGINS, self._observed.plugins),
            self._mirror(PODS, self._observed.pods, ours),
            *(
                self._mirror(resource, self._observed.kept[kind], ours)
                for kind, resource in KEPT.items()
                if kind != _KIND
            ),
        ]
        working = self._spawn(self._lead(mirrors), "leadership")
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            stopped.cancel()
            working.cancel()
            await asyncio.gather(stopped, working, return_exceptions=True)

    async def finish(self) -> None:
        """Give the lease back and stop."""
        await self._recorder.drain(2.0)
        if self._elector is not None:
            await self._elector.release()
        for task in self._running:
            task.cancel()

    async def _lead(self, mirrors: list[Reflector[Json]]) -> None:
        for mirror in mirrors:
            await mirror.wait_synced(SYNC_SECONDS)
        await self._look_for_monitors()
        self._synced = True
        self._settings.on_ready()
        if self._elector is not None:
            await self._elector.acquire()
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._elector is not None:
                    tasks.create_task(self._elector.hold())
                tasks.create_task(self._follow_kinds())
                tasks.create_task(self._resync())
                tasks.create_task(self._work())
        except* LeaseLostError as lost:
            # Holding and working may both find it out; for the process it is one end.
            raise lost.exceptions[0] from None

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            if self._elector is not None and not self._elector.is_fresh():
                raise LeaseLostError("the lease is not fresh any more")
            started = time.monotonic()
            try:
                await self._reconciler.reconcile(key)
            except ClientError as error:
                pause = self._queue.failed(key)
                log.warning("tried again in %.1f s: scheduler=%s error=%s", pause, key, error)
                self._metrics.reconciled("error", time.monotonic() - started)
            else:
                self._queue.succeeded(key)
                self._metrics.reconciled("success", time.monotonic() - started)

    async def _resync(self) -> None:
        while True:
            for key in sorted(self._observed.everything()):
                self._queue.add(Key(*key))
            await asyncio.sleep(RESYNC_SECONDS)

    async def _follow_kinds(self) -> None:
        while True:
            await asyncio.sleep(LOOK_FOR_KINDS_SECONDS)
            if await self._look_for_monitors():
                for key in self._observed.everything():
                    self._queue.add(key)

    async def _look_for_monitors(self) -> bool:
        """Find out whether ServiceMonitors exist; says whether they are new."""
        if self._monitors:
            return False
        try:
            found = await self._api.call("GET", SERVICE_MONITORS.root)
        except NotFoundError:
            return False
        except ClientError as error:
            log.warning("not known whether %s exists: error=%s", SERVICE_MONITORS.plural, error)
            return False
        names = [one.get("name") for one in msgspec.json.decode(found).get("resources") or ()]
        self._monitors = SERVICE_MONITORS.plural in names
        if self._monitors:
            ours = f"{MANAGED_BY}={FIELD_MANAGER}"
            await self._mirror(SERVICE_MONITORS, self._observed.kept[_KIND], ours).wait_synced(SYNC_SECONDS)
        return self._monitors

    def _mirror(self, resource: Resource, mirror: Mirror, selector: str = "") -> Reflector[Json]:
        source = Source(resource, label_selector=selector)
        decode: Callable[[bytes], Json] = msgspec.json.decode
        reflector = Reflector(self._transport, source, decode, mirror)
        self._spawn(reflector.run(), f"watch of {resource.plural}")
        return reflector

    def _lease(self) -> str:
        healthy = self._elector is None or self._elector.is_healthy()
        return "" if healthy else "the lease ran out and was not renewed"

    def _spawn(self, work: Any, name: str) -> asyncio.Task[Any]:
        task = self._tasks.create_task(work, name=name)
        self._running.append(task)
        return task


async def _keep_metrics() -> None:
    """The operator's metrics have no new start."""


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
