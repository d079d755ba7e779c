"""The scheduler process: adapters started around a core, led by a lease, until it is told to stop.

    endpoint -> transports -> core -> watches synced -> (lease held) -> scheduling loop
                                          |
                                          +-- lost: leadership.py stops the loop, writes are refused

Everything durable is in the API server: a process that dies at any point leaves nothing to clean up.

Source: spec/core.md 0.1, 8.5; spec/config.md 15.
"""

import asyncio
import logging
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from berth.client.api import Api
from berth.client.credentials import load_endpoint
from berth.client.endpoint import Endpoint
from berth.client.events import EventRecorder, Reference
from berth.client.leases import LeaderElector, LeaseSettings, new_identity
from berth.client.pods import Pods, always
from berth.client.reflector import Reflector
from berth.client.resources import Resource
from berth.client.timing import SystemClock as ClientClock
from berth.client.timing import TokenBucket
from berth.client.transport import REQUEST_SECONDS, Transport
from berth.client.watch import Source
from berth.config.dump import to_v1
from berth.config.loading import Loaded
from berth.config.sidecars import SidecarSpec, SocketDirectory
from berth.framework.clock import SystemClock
from berth.framework.cycle_record import CycleRecord
from berth.out_of_tree.attaching import Attaching
from berth.out_of_tree.conditions import Condition, Kind
from berth.out_of_tree.extender import ExtenderSurroundings, HttpExtenders
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.watched_objects import ObjectsOfKind, WatchedKind, decode_object
from berth.plugins.registry import IN_TREE
from berth.scheduler.attempt_log import AttemptLog
from berth.scheduler.background import AsyncioBackground
from berth.scheduler.cache_debugger import CacheDebugger
from berth.scheduler.claim_writer import ApiClaimWriter
from berth.scheduler.component_pages import component_pages
from berth.scheduler.core_assembly import (
    ASYNC_API_CALLS,
    GENERIC_WORKLOAD,
    SchedulerCore,
    Shared,
    Surroundings,
    assemble,
)
from berth.scheduler.delegated_access import DelegatedAccess
from berth.scheduler.event_loop import collect_less_often
from berth.scheduler.event_recording import PodEvents
from berth.scheduler.explain import Explainer
from berth.scheduler.health import Check, ping
from berth.scheduler.leadership import Leadership
from berth.scheduler.needed_kinds import needed_groups
from berth.scheduler.plugin_admin import PluginAdmin
from berth.scheduler.plugin_directory import PluginDirectory
from berth.scheduler.plugin_list_file import PluginListFile
from berth.scheduler.plugin_readiness import OwnPod, PluginReadiness
from berth.scheduler.pod_group_writer import ApiPodGroupWriter
from berth.scheduler.pod_writer import PodWriter
from berth.scheduler.profiling import profiling_pages
from berth.scheduler.raw_keeping import RawKeeping
from berth.scheduler.scheduling_loop import SchedulingLoop
from berth.scheduler.serving import ALWAYS_ALLOWED, Endpoints, Review, SecureServer, listen
from berth.scheduler.serving_certificate import server_context
from berth.scheduler.volume_writer import ApiVolumeWriter
from berth.scheduler.watches import reflectors
from berth.telemetry.fan_out import fan_out
from berth.telemetry.logs import set_verbosity
from berth.telemetry.metrics import SchedulerMetrics
from berth.telemetry.pod_resources import pod_resource_text
from berth.telemetry.tracing import Tracing

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 64
LAST_WRITES_SECONDS = 5.0
LOOK_SECONDS = 0.02
PLUGIN_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Serving:
    """Where the process shows itself; port 0 stands for nowhere."""

    address: str = "127.0.0.1"
    port: int = 0
    certificate_file: str = ""
    key_file: str = ""
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED

    async def start(self, endpoints: Endpoints, review: Review) -> SecureServer | None:
        """Serve, if anything is to be served.

        Raises: StartError where address or certificate can't be used.
        """
        listener = listen(self.address, self.port)
        if listener is None:
            return None
        context = server_context(self.certificate_file, self.key_file)
        return await SecureServer.start(
            listener, context, endpoints, review=review, always_allowed=self.always_allowed
        )


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What a scheduler process is started with."""

    loaded: Loaded
    sidecars: tuple[SidecarSpec, ...] = ()
    plugins_file: str = ""
    """Where the sidecars are listed; changes of it are followed. Empty for a list that stays as it is."""
    directory: SocketDirectory | None = None
    """Where more of them may appear."""
    master: str = ""
    seed: int | None = None
    max_in_unschedulable_seconds: float = 300.0
    request_seconds: float = REQUEST_SECONDS
    tracing: Tracing = field(default_factory=Tracing)
    serving: Serving = field(default_factory=Serving)
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Every flag's value, to be shown."""
    on_record: Callable[[CycleRecord], None] = lambda _: None
    on_ready: Callable[[SchedulerCore], None] = lambda _: None


async def run(settings: ProcessSettings, stop: asyncio.Event, dump: asyncio.Event | None = None) -> None:
    """Schedule until `stop` is set, then end in order; each time `dump` is set, the log tells of the cache.

    Raises: ConfigurationError, BuildError, EventRegistrationError, StartError before anything runs.
    """
    configuration = settings.loaded.configuration
    endpoint = await asyncio.to_thread(
        load_endpoint, kubeconfig=configuration.client_connection.kubeconfig, master=settings.master
    )
    try:
        async with AsyncExitStack() as stack:
            process = await _start(settings, endpoint, stack)
            await _run(process, stack, stop, dump or asyncio.Event())
    except BaseExceptionGroup as group:
        # What the body of a task group raises comes out wrapped; alone, it is the error that was raised.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


async def _run(process: "Process", stack: AsyncExitStack, stop: asyncio.Event, dump: asyncio.Event) -> None:
    server = await process.serve()
    if server is not None:
        stack.push_async_callback(server.close)
    try:
        await process.until(stop, dump)
    finally:
        await process.finish()


async def _start(settings: ProcessSettings, endpoint: Endpoint, stack: AsyncExitStack) -> "Process":
    connection = settings.loaded.configuration.client_connection
    limiter = TokenBucket(connection.qps, connection.burst, ClientClock())
    seconds = settings.request_seconds
    transport = Transport(endpoint, max_connections=MAX_CONNECTIONS, limiter=limiter, request_seconds=seconds)
    stack.push_async_callback(transport.aclose)
    lease_transport = Transport(endpoint, max_connections=2)
    stack.push_async_callback(lease_transport.aclose)
    event_transport = Transport(endpoint, max_connections=4, request_seconds=seconds)
    stack.push_async_callback(event_transport.aclose)
    tasks = await stack.enter_async_context(asyncio.TaskGroup())
    return Process(settings, Transports(transport, lease_transport, event_transport), tasks)


@dataclass(frozen=True, slots=True)
class Transports:
    """Connections by purpose: neither leases nor events ever queue behind bindings, nor the other way."""

    main: Transport
    leases: Transport
    events: Transport


class Process:
    """The running parts of one scheduler process."""

    def __init__(
        self,
        settings: ProcessSettings,
        transports: Transports,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        self._recorder = EventRecorder(Api(transports.events))
        self._elector = self._new_elector(Api(transports.leases))
        self._background = AsyncioBackground(tasks)
        enabled = settings.loaded.gates.enabled
        self._metrics = SchedulerMetrics(
            pod_groups=enabled(GENERIC_WORKLOAD), asynchronous_calls=enabled(ASYNC_API_CALLS)
        )
        self._attempts = AttemptLog()
        self._tell = fan_out(
            settings.tracing.on_record, self._metrics.on_record, self._attempts.on_record, settings.on_record
        )
        self._watching = self._synced = self._prepared = self._stopping = False
        self.review = DelegatedAccess(Api(transports.events))
        clock = SystemClock()
        may_write = self._elector.is_fresh if self._elector else always
        writer = PodWriter(Pods(transports.main, may_write=may_write))
        # Our own pod is ours to write about whether we lead or not.
        self._own_pods = Pods(transports.events, may_write=always)
        self._host = PluginHost(
            settings.sidecars,
            settings.loaded.profiles,
            sampled=settings.tracing.sampled,
            metrics=self._metrics.plugins,
            landed=writer.landed,
            on_condition=self._tell_condition,
        )
        self._host.objects.start = partial(self._watch_for_plugins, transports.main)
        self._extenders = HttpExtenders(
            settings.loaded.extenders,
            ExtenderSurroundings(
                self._host.nodes, self._host.pods, settings.tracing.sampled, writer.landed, may_write
            ),
        )
        self._core = assemble(
            settings.loaded,
            {**IN_TREE, **self._host.factories()},
            self._surroundings(Api(transports.main), writer, may_write, clock),
        )
        self._host.rewire = self._core.rewire
        self._raw = RawKeeping(self._host, transports.main)
        self._raw.keep(wanted=bool(self._host.versions) or self._extenders.want_objects)
        self._attaching = Attaching(self._host, self._core.frameworks, self._core.handles, self._spawn)
        self._attaching.enable_listed(settings.sidecars)
        self._loop = SchedulingLoop(self._core, clock)
        self._leadership = Leadership(
            self._elector,
            self._loop,
            self._prepare,
            delayed=settings.loaded.configuration.delay_cache_until_active,
        )
        groups = needed_groups(
            settings.loaded.profiles, out_of_tree=bool(settings.sidecars or settings.directory)
        )
        self._mirrors = list(reflectors(transports.main, self._core, self._host, groups=groups))
        nodes, pods = self._mirrors[:2]
        self._debugger = CacheDebugger(self._core, nodes, pods, self._loop.turn)
        self._running: list[asyncio.Task[Any]] = []
        self._show_metrics()

    def _surroundings(
        self, api: Api, writer: PodWriter, may_write: Callable[[], bool], clock: SystemClock
    ) -> Surroundings:
        settings = self._settings
        return Surroundings(
            writer=writer,
            volume_writer=ApiVolumeWriter(api, may_write=may_write),
            claim_writer=ApiClaimWriter(api, may_write=may_write),
            pod_group_writer=ApiPodGroupWriter(api, may_write=may_write),
            recorder=PodEvents(self._recorder),
            background=self._background,
            clock=clock,
            chance=random.Random(settings.seed),
            on_record=self._on_record,
            before_plugins=self._connect_plugins,
            queue_metrics=self._metrics.queue,
            preemption_metrics=self._metrics.preemption,
            pod_group_metrics=self._metrics.pod_groups,
            call_metrics=self._metrics.calls,
            event_handled=self._metrics.event_handled,
            max_in_unschedulable_seconds=settings.max_in_unschedulable_seconds,
            extenders=self._extenders,
        )

    def _show_metrics(self) -> None:
        shared = self._core.shared
        self._metrics.watch_tracing(self._settings.tracing)
        self._metrics.watch_plugins(self._attaching.conditions)
        self._metrics.watch_queue(shared.queue.sizes)
        self._metrics.watch_cache(shared.cache)
        self._metrics.watch_equal_pods(shared.equal_pods.outcomes)
        self._metrics.watch_tasks(shared.at_work)
        if self._core.dispatcher is not None:
            self._metrics.watch_calls(self._core.dispatcher.pending)
        if self._elector is not None:
            election = self._settings.loaded.configuration.leader_election
            self._metrics.watch_leadership(election.resource_name, lambda: self._leadership.leads)

    async def serve(self) -> SecureServer | None:
        """Show what the process shows of itself, if it is to be shown anywhere."""
        return await self._settings.serving.start(self._endpoints(), self.review)

    def _endpoints(self) -> Endpoints:
        configuration = self._settings.loaded.configuration
        leading: dict[str, Check] = {}
        if self._elector is not None:
            leading["leaderElection"] = self._leadership.check
        return Endpoints(
            self._metrics.text,
            self._metrics.reset,
            lambda: to_v1(configuration),
            healthz=leading or {"ping": ping},
            readyz={
                **leading,
                "shutdown": lambda: "the process is ending" if self._stopping else "",
                "sched-handler-sync": lambda: "" if self._synced else "handlers are not fully synchronized",
            },
            set_verbosity=set_verbosity if configuration.enable_profiling else None,
            plugins=PluginAdmin(self._attaching, self._raw.begin).mount,
            explain=Explainer(self._core, self._attempts, self._loop.turn).explain,
            cache=self._debugger.report,
            resource_metrics=self._resource_metrics,
            pages={
                **component_pages(self._settings.flags, self._core.feature_enabled),
                **(profiling_pages() if configuration.enable_profiling else {}),
            },
        )

    def _resource_metrics(self) -> bytes:
        return pod_resource_text(self._debugger.pods.objects()) if self._leadership.leads else b""

    async def until(self, stop: asyncio.Event, dump: asyncio.Event) -> None:
        """Watch, campaign and schedule until `stop` is set."""
        self._spawn(self._recorder.run(), "events")
        for name, work in self._host.work():
            self._spawn(work, name)
        self._spawn(self._debugger.write_whenever(dump), "dump")
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
        log.info("Starting informers and waiting for sync...")
        for reflector in self._mirrors if not self._watching else ():
            self._spawn(reflector.run(), f"watch of {reflector.source.resource.plural}")
        self._watching = True
        for reflector in self._mirrors:
            await reflector.synced.wait()
        self._synced = True
        log.info("Sync completed")
        collect_less_often()
        # Plugins are told of the first generation before the first pod is tried.
        self._core.shared.cache.update_snapshot(self._core.shared.snapshot)
        await self._host.settle(PLUGIN_GRACE_SECONDS)
        self._prepared = True
        self._follow_plugins()
        if (pod := OwnPod.from_environment(os.environ)) is not None:
            readiness = PluginReadiness(self._attaching, self._own_pods, pod)
            self._spawn(readiness.follow(), "readiness of plugins")
        self._settings.on_ready(self._core)
        self._spawn(self._loop.follow(), "snapshot")

    def _follow_plugins(self) -> None:
        """Take over what changes in the list of plugins and in the directory where they appear."""
        settings = self._settings
        listed = {spec.name: spec for spec in settings.sidecars}
        directory = PluginDirectory(settings.directory, listed, self._attaching, self._raw.begin)
        if settings.plugins_file:
            file = PluginListFile(
                settings.plugins_file, listed, self._attaching, self._raw.begin, use_directory=directory.use
            )
            self._spawn(file.follow(), "list of plugins")
        if settings.plugins_file or settings.directory is not None:
            self._spawn(directory.follow(), "directory of plugins")

    async def finish(self) -> None:
        """Let the last writes out, give the lease back, and stop everything else."""
        self._stopping = True
        self._attaching.end_recordings()
        self._core.shared.queue.close()
        await self._background.settle(LAST_WRITES_SECONDS)
        await self._extenders.close()
        self._host.shadows.close()
        await self._recorder.drain(LAST_WRITES_SECONDS)
        await self._observe_own_bindings(LAST_WRITES_SECONDS)
        await self._leadership.release()
        for task in self._running:
            task.cancel()

    async def _observe_own_bindings(self, seconds: float) -> None:
        """Wait until the watch has told of them, so that a successor's watch has had its time, too."""
        end = asyncio.get_running_loop().time() + seconds
        cache, now = self._core.shared.cache, asyncio.get_running_loop().time
        while cache.assumed_count() and now() < end:  # noqa: ASYNC110 - the cache has no event for it
            await asyncio.sleep(LOOK_SECONDS)

    def _connect_plugins(self, shared: Shared) -> None:
        self._host.open(shared.cache, shared.snapshot)
        self._host.attend(shared.queue, shared.waiting_pods)

    def _on_record(self, record: CycleRecord) -> None:
        self._host.shadows.ending(record)
        self._tell(record)
        for name, work in self._host.cycles_done(record):
            self._background.spawn(work, name)

    def _watch_for_plugins(self, transport: Transport, kind: WatchedKind, handler: ObjectsOfKind) -> None:
        resource = Resource(kind.group, kind.version, kind.resource, namespaced=True)
        source = Source(resource, label_selector=kind.label_selector)
        reflector = Reflector(transport, source, decode_object, handler)
        self._spawn(reflector.run(), f"watch of {kind.resource} for plugins")

    def _spawn(self, work: Any, name: str) -> asyncio.Task[Any]:
        task = self._tasks.create_task(work, name=name)
        self._running.append(task)
        return task

    def _new_elector(self, api: Api) -> LeaderElector | None:
        election = self._settings.loaded.configuration.leader_election
        if not election.leader_elect:
            return None
        settings = LeaseSettings(
            election.resource_namespace,
            election.resource_name,
            election.lease_duration.seconds,
            election.renew_deadline.seconds,
            election.retry_period.seconds,
        )
        return LeaderElector(api, settings, new_identity(), announce=self._announce)

    def _tell_condition(self, plugin: str, condition: Condition) -> None:
        """Let users know when a plugin can be asked again, or no more."""
        if condition.kind in (Kind.READY, Kind.CIRCUIT_CLOSED):
            text = f"plugin {plugin}: {condition.kind} is {condition.holds}: {condition.reason}"
            note = f"{text}: {condition.message}" if condition.message else text
            reason = f"Plugin{'' if condition.holds else 'Not'}{condition.kind}"
            self._tell_of_lease(note, "Normal" if condition.holds else "Warning", reason, plugin)

    def _announce(self, note: str) -> None:
        self._tell_of_lease(note, "Normal", "LeaderElection", "LeaderElection")

    def _tell_of_lease(self, note: str, kind: str, reason: str, action: str) -> None:
        """Record an event about the lease, which stands for all schedulers of that name."""
        election = self._settings.loaded.configuration.leader_election
        lease = Reference(
            "coordination.k8s.io/v1", "Lease", election.resource_namespace, election.resource_name
        )
        self._recorder.event(
            lease,
            controller=self._settings.loaded.profiles[0].scheduler_name,
            type=kind,
            reason=reason,
            action=action,
            note=note,
        )
