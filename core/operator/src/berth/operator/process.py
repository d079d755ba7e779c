"""The operator as a process: mirrors first, then the lease, then one Scheduler after the other.

A standby watches too, so that it takes over at once.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ClientError, DeadlineError, LeaseLostError, NotFoundError
from berth.client.events import EventRecorder
from berth.client.leases import LeaderElector, LeaseSettings, new_identity
from berth.client.resources import CONFIG_MAPS, PODS, SCHEDULER_PLUGINS, SCHEDULERS, Resource
from berth.client.transport import Transport
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.client.wire import bounded
from berth.config.releases.release import followed
from berth.framework.clock import SYSTEM_CLOCK
from berth.operator.explain_api import ExplainApi
from berth.operator.failure_log import FailureLog
from berth.operator.issuing import Issuing
from berth.operator.kinds import (
    API_SERVICES,
    AUTHORITY,
    CLUSTER_ROLE_BINDINGS,
    EVENTS,
    EXPLAIN_API,
    FIELD_MANAGER,
    KEPT,
    MANAGED_BY,
    SECRETS,
    SERVICE_MONITORS,
    SERVING_SECRET,
    Json,
    SchedulerKey,
)
from berth.operator.metrics import OperatorMetrics
from berth.operator.mounts import FAILED_MOUNT
from berth.operator.observed import ClusterView, KindCache
from berth.operator.reconciler import Reconciler, ReconcileResult
from berth.operator.rendering import SchedulerDefaults
from berth.operator.reporting.leading_condition import LeadingConditions
from berth.operator.work_queue import WorkQueue
from berth.serving.delegated_access import DelegatedAccess
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.listening import listen

log = logging.getLogger(__name__)

SYNC_SECONDS = 60.0
LOOK_FOR_KINDS_SECONDS = 60.0
# Everything is looked at again now and then, should an event ever have been missed.
RESYNC_SECONDS = 600.0
WORKERS = 4
"""How many Schedulers are looked at at a time: one whose API calls hang does not hold up all others."""
_KIND = "ServiceMonitor"


_decode: Callable[[bytes], Json] = bounded(msgspec.json.decode)
_OURS = f"{MANAGED_BY}={FIELD_MANAGER}"


class OperatorSettings(msgspec.Struct, frozen=True):
    """How to run. Without `lease` there is no leader election; port 0 serves nothing.

    `namespaces` are those whose Schedulers are kept; none means all. `namespace` is its own.
    """

    schedulers: SchedulerDefaults
    kubeconfig: str = ""
    lease: LeaseSettings | None = None
    bind_address: str = "0.0.0.0"  # noqa: S104 (in a pod, its own address)
    port: int = 0
    namespace: str = "berth-system"
    namespaces: tuple[str, ...] = ()
    on_ready: Callable[[], None] = msgspec.field(default=lambda: None)


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
        self._recorder = EventRecorder(events, by_note=True)
        self._review = DelegatedAccess(events)
        self._metrics = OperatorMetrics()
        self._queue = WorkQueue(asyncio.get_running_loop().call_later)
        self._failures = FailureLog()
        self._observed = ClusterView(self._queue.add, tuple(KEPT))
        self._scopes = settings.namespaces or ("",)
        self._open: set[str] = set()
        self._monitors = False
        self._server = ""
        self._synced = False
        lease = settings.lease
        self._elector = LeaderElector(leases, lease, new_identity()) if lease is not None else None
        explain_service = settings.schedulers.explain_service
        self._issuing = Issuing(self._api, self._observed, settings.namespace, _now, explain_service)
        self._reconciler = Reconciler(
            self._api,
            self._observed,
            self._recorder,
            self._metrics,
            issuing=self._issuing,
            settings=self._found_settings,
            server=lambda: self._server,
            leading=LeadingConditions(SYSTEM_CLOCK.monotonic, self._queue.add_later),
            now=lambda: _now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        self._explain_api = ExplainApi(
            self._api,
            self._observed,
            self._metrics,
            partial(self._reconciler.event_of_all, settings.namespace),
            namespace=settings.namespace,
            settings=settings.schedulers,
        )

    def _found_settings(self) -> SchedulerDefaults:
        """The operator's choices for schedulers, with what it found in the cluster."""
        chosen = self._settings.schedulers
        release = followed(self._server) or chosen.release
        return msgspec.structs.replace(chosen, service_monitors=self._monitors, release=release)

    async def serve(self) -> SecureServer | None:
        """Serve health and metrics. Raises: StartError when the port is taken."""
        listener = listen(self._settings.bind_address, self._settings.port)
        if listener is None:
            return None
        endpoints = Endpoints(
            self._metrics.text,
            _keep_metrics,
            dict,
            healthz={"lease": self._lease},
            readyz=self.ready_checks(),
        )
        certificate = self._issuing.own_certificate()
        return await SecureServer.start(listener, certificate, endpoints, review=self._review)

    def ready_checks(self) -> dict[str, Callable[[], str]]:
        """The checks of /readyz: what each lacks, "" for nothing."""
        return {"sync": lambda: "" if self._synced else "not everything is listed yet"}

    async def until(self, stop: asyncio.Event) -> None:
        """Watch, campaign and work until `stop` is set."""
        self._spawn(self._recorder.run(), "events")
        common = self._common_mirrors()
        opening = [
            self._spawn(self._open_scope(scope, common), f"mirrors of {scope or 'all namespaces'}")
            for scope in self._scopes
        ]
        working = self._spawn(self._lead(opening), "leadership")
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
        if self._elector is None or self._elector.is_fresh():
            await self._explain_api.withdraw()
        if self._elector is not None:
            await self._elector.release()
        for task in self._running:
            task.cancel()

    def _common_mirrors(self) -> list[Reflector[Json]]:
        """Watch what belongs to no namespace, or to the operator's own."""
        own = {"fields": f"metadata.name={AUTHORITY}", "scope": self._settings.namespace}
        return [
            self._mirror(CLUSTER_ROLE_BINDINGS, self._observed.kept["ClusterRoleBinding"], _OURS),
            self._mirror(SECRETS, self._observed.authority, **own),
            self._mirror(CONFIG_MAPS, self._observed.published, **own),
        ]

    async def _open_scope(self, scope: str, common: Sequence[Reflector[Json]]) -> None:
        """Watch a namespace, and have its Schedulers looked at from when all of it is known."""
        mirrors = [
            *common,
            self._mirror(SCHEDULERS, self._observed.schedulers, scope=scope),
            self._mirror(SCHEDULER_PLUGINS, self._observed.plugins, scope=scope),
            self._mirror(PODS, self._observed.pods, _OURS, scope),
            self._mirror(EVENTS, self._observed.mounts, scope=scope, fields=f"reason={FAILED_MOUNT}"),
            self._mirror(
                SECRETS, self._observed.certificates, scope=scope, fields=f"metadata.name={SERVING_SECRET}"
            ),
            *(
                self._mirror(resource, self._observed.kept[kind], _OURS, scope)
                for kind, resource in KEPT.items()
                if kind != _KIND and resource.namespaced
            ),
        ]
        for mirror in mirrors:
            while not mirror.synced.is_set():
                try:
                    await mirror.wait_synced(SYNC_SECONDS)
                except DeadlineError:
                    plural = mirror.source.resource.plural
                    log.warning("not listed yet kind=%s namespace=%s", plural, scope or "all")
        self._open.add(scope)
        self._look_at_everything()

    async def _lead(self, opening: Sequence[asyncio.Task[None]]) -> None:
        # A namespace that may not be listed, or is not there, does not keep the others waiting.
        await asyncio.wait(opening, return_when=asyncio.FIRST_COMPLETED)
        await self._look_for_monitors()
        await self._ask_version()
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
                tasks.create_task(self._keep_explain_api())
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
        except* LeaseLostError as lost:
            # Holding and working may both find it out; for the process it is one end.
            raise lost.exceptions[0] from None

    async def _keep_explain_api(self) -> None:
        mirror = self._mirror(
            API_SERVICES, self._observed.api_services, fields=f"metadata.name={EXPLAIN_API}"
        )
        await mirror.synced.wait()
        await self._explain_api.run()

    def _is_open(self, namespace: str) -> bool:
        """Say whether all that is kept in a namespace is known; what is not this operator's never is."""
        return not self._open.isdisjoint(("", namespace))

    def _look_at_everything(self) -> None:
        for key in sorted(self._observed.everything()):
            self._queue.add(SchedulerKey(*key))

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            if self._elector is not None and not self._elector.is_fresh():
                raise LeaseLostError("the lease is not fresh any more")
            started = SYSTEM_CLOCK.monotonic()
            outcome = ReconcileResult.DONE
            try:
                if self._is_open(key.namespace):
                    outcome = await self._reconciler.reconcile(key)
            except Exception as error:  # noqa: BLE001 (one key's; it is tried again, and the others go on)
                outcome = ReconcileResult.FAILED
                self._queue.failed(key)
                self._failures.failed(key, error)
            else:
                self._failures.went_well(key)
                if outcome is ReconcileResult.DONE:
                    self._queue.succeeded(key)
                else:
                    self._queue.failed(key)
            result = "error" if outcome is ReconcileResult.FAILED else "success"
            self._metrics.reconciled(result, SYSTEM_CLOCK.monotonic() - started)

    async def _resync(self) -> None:
        while True:
            self._look_at_everything()
            await asyncio.sleep(RESYNC_SECONDS)

    async def _follow_kinds(self) -> None:
        while True:
            await asyncio.sleep(LOOK_FOR_KINDS_SECONDS)
            found, upgraded = await self._look_for_monitors(), await self._ask_version()
            if found or upgraded:
                self._look_at_everything()

    async def _ask_version(self) -> bool:
        """Ask which Kubernetes the API server is of; says whether it is another one than before."""
        try:
            answer = msgspec.json.decode(await self._api.call("GET", "/version"), type=dict[str, Any])
        except (ClientError, msgspec.DecodeError) as error:
            log.warning("not known which Kubernetes the API server is of err=%s", error)
            return False
        before, self._server = self._server, str(answer.get("gitVersion", ""))
        return before != self._server

    async def _look_for_monitors(self) -> bool:
        """Find out whether ServiceMonitors exist; says whether they are new."""
        if self._monitors:
            return False
        try:
            found = await self._api.call("GET", SERVICE_MONITORS.root)
        except NotFoundError:
            return False
        except ClientError as error:
            log.warning("not known whether a kind exists kind=%s err=%s", SERVICE_MONITORS.plural, error)
            return False
        names = [one.get("name") for one in msgspec.json.decode(found).get("resources") or ()]
        self._monitors = SERVICE_MONITORS.plural in names
        for scope in self._scopes if self._monitors else ():
            self._mirror(SERVICE_MONITORS, self._observed.kept[_KIND], _OURS, scope)
        return self._monitors

    def _mirror(
        self, resource: Resource, mirror: KindCache, selector: str = "", scope: str = "", fields: str = ""
    ) -> Reflector[Json]:
        source = WatchSource(resource, scope, fields, selector)
        reflector = Reflector(self._transport, source, _decode, mirror)
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


def _now() -> datetime:
    return datetime.fromtimestamp(SYSTEM_CLOCK.wall(), UTC)
