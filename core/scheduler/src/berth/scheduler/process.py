"""The scheduler process: adapters started around a scheduler, led by a lease, until it is asked to stop.

    transports -> events, leases, write guard -> writers -> plugins -> scheduler -> watches
        -> for each shard: fence, loop, leadership -> pages

    watches synced -> (the shard's lease held) -> its scheduling loop
                           |
                           +-- lost: leadership.py stops that loop, its writes are refused

Everything is put together here, in `Process`; lease and secure port run in control_thread.py. Everything
durable is in the API server: a process that dies at any point leaves nothing to clean up.

Source: cmd/kube-scheduler/app/server.go Run (Kubernetes v1.36).
"""

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.connections.request_counts import BOUNDS
from berth.client.endpoint import Endpoint
from berth.client.events import EventRecorder
from berth.client.leases import new_identity
from berth.client.pods import PodWrites
from berth.client.resources import POD_GROUPS
from berth.client.transport import Transport
from berth.client.watching.handling import BOUNDS as HANDLING_BOUNDS
from berth.client.watching.reflector import Reflector
from berth.client.write_guard import Terms
from berth.config.shards import Shard
from berth.explain.attempt_log import AttemptLog
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.clock import SystemClock
from berth.framework.core_ports import CorePorts
from berth.live_page.collecting import Collector
from berth.live_page.history import History
from berth.live_page.node_map import NodeMap
from berth.live_page.recent_attempts import RecentAttempts
from berth.out_of_tree.connections.conditions import PluginCondition
from berth.scheduler.core_metrics import CoreMetrics
from berth.scheduler.identity import identity_of
from berth.scheduler.leading.campaign import Campaign
from berth.scheduler.leading.election import LeaseEvents, new_campaigns, write_guard
from berth.scheduler.leading.fence import Fence, MirrorView, WatchedMirror
from berth.scheduler.leading.leadership import Leadership
from berth.scheduler.leading.leaderships import (
    Leaderships,
    held,
    lease_failures,
    lease_name,
    margins,
    shard_of_records,
)
from berth.scheduler.leading.lease_condition import LeaseCondition
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.control_thread import ControlThread
from berth.scheduler.loop.event_loop import give_back_regularly
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.loop.running_tasks import RunningTasks
from berth.scheduler.loop.scheduling_loop import SchedulingLoop, follow
from berth.scheduler.pages.cache_debugger import CacheDebugger
from berth.scheduler.pages.explain_access import ExplainAccess, published
from berth.scheduler.pages.status_pages import StatusPages
from berth.scheduler.process_options import ProcessOptions
from berth.scheduler.process_recording import new_recording
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.secure_port import SecurePort
from berth.scheduler.sidecars.out_of_tree_plugins import OutOfTreePlugins
from berth.scheduler.sidecars.plugin_upkeep import PluginUpkeep
from berth.scheduler.transports import Transports, open_transports
from berth.scheduler.watching.first_sync import FirstSync
from berth.scheduler.watching.needed_kinds import needed_groups
from berth.scheduler.watching.raw_keeping import RawKeeping
from berth.scheduler.watching.server_kinds import ServerKinds, server_kinds
from berth.scheduler.watching.watches import reflectors
from berth.scheduler.writing.event_recording import PodEvents
from berth.scheduler.writing.own_pod_conditions import OwnPod, OwnPodConditions
from berth.scheduler.writing.set_aside_events import SetAsideEvents, set_aside_now, set_aside_total
from berth.scheduler.writing.writers import Writers
from berth.serving.delegated_access import DelegatedAccess
from berth.serving.listening import reached_at
from berth.telemetry.fan_out import fan_out
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.telemetry.traces.tracing import Tracing

LAST_EVENTS_SECONDS = 5.0
# How long requests that were sent may wait for their answers, and what else ends by itself for its end.
LAST_ANSWERS_SECONDS = 1.0
SETTLE_SECONDS = 0.1


def _ignore(_: object) -> None:
    """Do nothing."""


async def run(
    options: ProcessOptions,
    stop: asyncio.Event,
    dump: asyncio.Event | None = None,
    *,
    tracing: Tracing | None = None,
    on_record: Callable[[CycleRecord], None] = _ignore,
    on_ready: Callable[[Scheduler], None] = _ignore,
) -> None:
    """Schedule until `stop` is set, then end in order; each time `dump` is set, the log shows the cache.

    `on_record` is called with the record of each attempt, `on_ready` once everything is listed.

    Raises: ConfigurationError, BuildError, EventRegistrationError, StartError before anything runs.
    """
    endpoints = await asyncio.to_thread(_endpoints, options)
    try:
        async with AsyncExitStack() as stack:
            turns = LoopTurns(asyncio.get_running_loop())
            control = await stack.enter_async_context(ControlThread(turns))
            transports = open_transports(options, endpoints, control, stack)
            process = Process(
                options,
                transports=transports,
                server=await server_kinds(transports.requests),
                control=control,
                group=await stack.enter_async_context(asyncio.TaskGroup()),
                tracing=tracing or Tracing(),
                on_record=on_record,
                on_ready=on_ready,
            )
            stack.push_async_callback(process.port.close)
            try:
                await process.until(stop, dump or asyncio.Event())
            finally:
                await process.finish()
    except BaseExceptionGroup as group:
        # What the body of a task group raises comes out wrapped; alone, it is the error that was raised.
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


def _endpoints(options: ProcessOptions) -> tuple[Endpoint, Endpoint]:
    """The API server twice, once for each loop: credentials that are renewed belong to one loop."""
    kubeconfig = options.loaded.configuration.client_connection.kubeconfig
    first, second = (load_endpoint(kubeconfig=kubeconfig, master=options.master) for _ in range(2))
    return first, second


class Process:
    """One scheduler process: its parts by name, from its start to its end."""

    def __init__(
        self,
        options: ProcessOptions,
        *,
        transports: Transports,
        server: ServerKinds,
        control: ControlThread,
        group: asyncio.TaskGroup,
        tracing: Tracing,
        on_record: Callable[[CycleRecord], None],
        on_ready: Callable[[Scheduler], None],
    ) -> None:
        """Make the parts, each of those before it; nothing runs yet.

        Raises: BuildError, EventRegistrationError, StartError.
        """
        loaded = options.loaded
        self._options = options
        self.identity = identity_of(loaded, transports.requests.host)
        self._on_ready = on_ready
        self._prepared = self._stopping = False
        self._preparing = asyncio.Lock()
        every_profile = tuple(profile.scheduler_name for profile in loaded.profiles)
        self._shards = options.shards or (Shard("", every_profile),)
        self.clock = SystemClock()
        self.tasks, self.background = RunningTasks(group), AsyncioBackground(group)
        self.attempts = AttemptLog()
        self.metrics = SchedulerMetrics.following(loaded.gates)
        self.recorder = EventRecorder(Api(transports.events))
        lease_events = {shard.name: LeaseEvents(self.recorder, loaded, shard.name) for shard in self._shards}
        identity = new_identity()
        self.campaigns = self._new_campaigns(identity, transports.leases, lease_events, control)
        self.guard = write_guard(tuple(self.campaigns.values()))
        self.writers = Writers.over(
            transports.requests,
            self.guard,
            self.background,
            server.served(POD_GROUPS),
        )
        self.plugins = self._new_plugins(
            transports.requests, tracing, lease_events[self._shards[0].name].plugin_condition
        )
        ports = self._new_ports()
        self.recording = new_recording(options, ports)
        pod_ready, self.turn = asyncio.Event(), asyncio.Lock()
        self.recent = RecentAttempts() if options.live_page else None
        self.scheduler = self._new_scheduler(
            ports if self.recording is None else self.recording.ports,
            pod_ready.set,
            self.plugins.with_records(self._sinks(tracing, on_record), self.background),
        )
        self.driven = self.scheduler if self.recording is None else self.recording.recorded(self.scheduler)
        self._own_pods = PodWrites(transports.events)
        self.upkeep = self._new_upkeep(transports)

        self.mirrors = self._new_mirrors(transports.requests, server)
        self.first_sync = FirstSync(self.mirrors, self.scheduler, self.plugins.settle, self.tasks)
        self.debugger = CacheDebugger(self.scheduler, self.mirrors[0], self.mirrors[1], self.turn)
        self.leaderships = self._new_leaderships(pod_ready)
        self.live = None if self.recent is None else self._new_live_page(self.recent)
        self.port = self._new_port(control, transports.reviews, identity)
        self._show_in_metrics(tracing, transports)

    def _new_campaigns(
        self, identity: str, leases: Transport, events: Mapping[str, LeaseEvents], control: ControlThread
    ) -> dict[str, Campaign]:
        serving = self._options.serving
        address = reached_at(serving.address, serving.port)
        return new_campaigns(
            Api(leases),
            self._options.loaded.configuration.leader_election,
            events,
            control,
            identity=identity,
            annotations={
                shard.name: published(identity, shard, address, lambda: self.port.fingerprint)
                for shard in self._shards
            },
        )

    def _new_mirrors(self, requests: Transport, server: ServerKinds) -> list[Reflector[Any]]:
        options, profiles = self._options, self._options.loaded.profiles
        set_aside = SetAsideEvents(self.recorder, profiles[0].scheduler_name, self.clock)
        groups = needed_groups(profiles, out_of_tree=bool(options.sidecars or options.directory))
        return list(
            reflectors(
                requests,
                self.driven,
                self.plugins,
                groups=groups,
                server=server,
                report=set_aside.report,
            )
        )

    def _new_plugins(
        self, requests: Transport, tracing: Tracing, on_condition: Callable[[str, PluginCondition], None]
    ) -> OutOfTreePlugins:
        return OutOfTreePlugins(
            self._options,
            writers=self.writers,
            metrics=self.metrics.plugins,
            sampled=tracing.sampled,
            on_condition=on_condition,
            transport=requests,
            tasks=self.tasks,
        )

    def _new_upkeep(self, transports: Transports) -> PluginUpkeep:
        return PluginUpkeep(
            self._options,
            plugins=self.plugins,
            scheduler=self.scheduler,
            raw=RawKeeping(self.plugins, transports.requests),
            own_pods=self._own_pods,
            tasks=self.tasks,
        )

    def _new_ports(self) -> CorePorts:
        writers = self.writers
        return CorePorts(
            pods=writers.pods,
            volumes=writers.volumes,
            claims=writers.claims,
            pod_groups=writers.pod_groups,
            background=self.background,
            clock=self.clock,
            chance=random.Random(self._options.seed),
        )

    def _sinks(
        self, tracing: Tracing, on_record: Callable[[CycleRecord], None]
    ) -> Callable[[CycleRecord], None]:
        """All that keep or export the record of an attempt."""
        shown = () if self.recent is None else (self.recent.on_record,)
        return fan_out(tracing.on_record, self.metrics.on_record, self.attempts.on_record, *shown, on_record)

    def _new_scheduler(
        self,
        ports: CorePorts,
        on_ready: Callable[[], None],
        on_record: Callable[[CycleRecord], None],
    ) -> Scheduler:
        options = self._options
        return Scheduler(
            options.loaded,
            plugins=self.plugins,
            ports=ports,
            recorder=PodEvents(self.recorder, self.writers.pod_groups.resource.api_version),
            metrics=_core_metrics(self.metrics),
            on_record=on_record,
            on_ready=on_ready,
            max_in_unschedulable_seconds=options.max_in_unschedulable_seconds,
            shard_of=shard_of_records(self._shards),
        )

    def _new_leaderships(self, pod_ready: asyncio.Event) -> Leaderships:
        election = self._options.loaded.configuration.leader_election
        view = MirrorView(self._every_mirror, election.renew_deadline.seconds, clock=self.clock)
        return Leaderships(
            {shard.name: self._new_leadership(shard.name, view, pod_ready) for shard in self._shards},
            elected=election.leader_elect,
        )

    def _new_leadership(self, shard: str, view: MirrorView, pod_ready: asyncio.Event) -> Leadership:
        campaign = self.campaigns.get(shard)
        terms = Terms() if campaign is None else Terms(campaign.is_fresh)
        fence = Fence(view, self.guard, terms, observe=self.metrics.fence_lowered)
        loop = SchedulingLoop(
            self.driven,
            clock=self.clock,
            ready=pod_ready,
            turn=self.turn,
            may_decide=lambda: not fence.is_up(),
            shard=shard,
        )
        delayed = self._options.loaded.configuration.delay_cache_until_active
        return Leadership(campaign, loop, fence, self._prepare, delayed=delayed)

    def _new_live_page(self, recent: RecentAttempts) -> Collector:
        scheduler = self.scheduler
        return Collector(
            cache=scheduler.cache,
            snapshot=scheduler.snapshot,
            queue=scheduler.queue,
            attempts=self.attempts,
            recent=recent,
            history=History(scheduler.queue.sizes, recent, self.clock),
            nodes=NodeMap(scheduler.snapshot),
            plugins=self.upkeep.lines,
            leads=self.leaderships.leads_any,
            turn=self.turn,
        )

    def _new_port(self, control: ControlThread, reviews: Transport, identity: str) -> SecurePort:
        return SecurePort(
            self._options.serving,
            pages=self._new_pages(control.turns, self._explain_access(reviews, identity)),
            review=DelegatedAccess(Api(reviews)),
            api=Api(reviews),
            control=control,
            synced=self.first_sync.synced,
        )

    def _explain_access(self, reviews: Transport, identity: str) -> ExplainAccess:
        election = self._options.loaded.configuration.leader_election
        own = frozenset(lease_name(election.resource_name, shard.name) for shard in self._shards)
        pod = OwnPod.from_environment(os.environ)
        return ExplainAccess(
            requests=reviews,
            election=election,
            identity=identity,
            own_leases=own,
            token_file=self._options.replica_token_file,
            pod_namespace="" if pod is None else pod.namespace,
        )

    def _new_pages(self, turns: LoopTurns, explain_access: ExplainAccess) -> StatusPages:
        return StatusPages(
            options=self._options,
            identity=self.identity,
            scheduler=self.scheduler,
            metrics=self.metrics,
            attempts=self.attempts,
            plugins=self.upkeep,
            turn=self.turn,
            leaderships=self.leaderships,
            shards=self._shards,
            explain_access=explain_access,
            debugger=self.debugger,
            turns=turns,
            synced=self.first_sync.check,
            ending=lambda: "the process is ending" if self._stopping else "",
            live=self.live,
        )

    def _show_in_metrics(self, tracing: Tracing, transports: Transports) -> None:
        """Let the gauges mirror the parts."""
        metrics, scheduler = self.metrics, self.scheduler
        metrics.requests.watch(transports.requests.host, [each.counts for each in transports], BOUNDS)
        metrics.show_identity(self.identity._asdict())
        metrics.watch_tracing(tracing)
        metrics.watch_plugins(self.upkeep.conditions)
        metrics.watch_set_aside(partial(set_aside_total, self.mirrors), partial(set_aside_now, self.mirrors))
        metrics.watch_events(self.recorder.outcomes)
        metrics.watch_watches(self.first_sync.errors)
        if self._options.loaded.gates.rules.informer_metrics:
            metrics.informers.watch(self.first_sync.informers(), HANDLING_BOUNDS)
        metrics.watch_queue(scheduler.queue.pods_by_queue)
        if self._options.loaded.gates.rules.queues_groups:
            metrics.watch_entities(scheduler.queue.entities_by_queue)
        metrics.watch_cache(scheduler.cache)
        metrics.watch_equal_pods(scheduler.equivalence_cache.outcomes)
        metrics.watch_tasks(scheduler.at_work)
        if self.recording is not None:
            metrics.watch_recording(self.recording.span_counts)
        if scheduler.dispatcher is not None:
            metrics.watch_calls(scheduler.dispatcher.pending)
        election = self._options.loaded.configuration.leader_election
        if election.leader_elect:
            metrics.watch_leadership(partial(self.leaderships.leading, election.resource_name))
            metrics.watch_leases(partial(margins, election.resource_name, self.campaigns))
            metrics.watch_lease_failures(partial(lease_failures, election.resource_name, self.campaigns))
            metrics.watch_holders(partial(held, election.resource_name, self.campaigns))

    def _every_mirror(self) -> tuple[WatchedMirror, ...]:
        """All kinds that are watched now: plugins come and go, and the kinds that only they watch."""
        return (*self.mirrors, *self.plugins.mirrors)

    async def until(self, stop: asyncio.Event, dump: asyncio.Event) -> None:
        """Watch, campaign and schedule until `stop` is set."""
        self.tasks.spawn(self.port.serve(), "serving")
        self.tasks.spawn(self.recorder.run(), "events")
        hosted = self.plugins.hosted
        for name, work in hosted.work() if hosted else ():
            self.tasks.spawn(work, name)
        self.tasks.spawn(self.debugger.write_whenever(dump), "dump")
        self.tasks.spawn(give_back_regularly(), "free memory")
        if self.live is not None:
            self.tasks.spawn(self.live.history.follow(), "live page")
        self._show_lease()
        ends = [self.tasks.spawn(campaign, "leadership") for campaign in self.leaderships.campaigns()]
        ends.append(asyncio.create_task(stop.wait()))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)

    def _show_lease(self) -> None:
        """Show on our own pod, if we run in one, whether the leases are held."""
        pod = OwnPod.from_environment(os.environ)
        if pod is not None and self.campaigns:
            condition = LeaseCondition(self.campaigns, self.clock)
            shown = OwnPodConditions(condition.conditions, self._own_pods, pod)
            self.tasks.spawn(shown.follow(), "lease shown on our pod")

    async def _prepare(self) -> bool:
        """Watch, and wait until everything is known; whether this call began the lists, as the first does."""
        async with self._preparing:
            if self._prepared:
                return False
            await self.first_sync.run()
            self._prepared = True
            self.upkeep.start()
            self._on_ready(self.scheduler)
            self.tasks.spawn(follow(self.scheduler, self.turn), "snapshot")
            return True

    async def finish(self) -> None:
        """Let what was sent be answered, give the leases back, write the last events, and stop everything.

        What has sent no binding yet needs none: its pod is on no node, and the successor takes it up.
        """
        self._stopping = True
        self.guard.close()
        self.scheduler.queue.close()
        settled = await self.guard.settled(LAST_ANSWERS_SECONDS)
        await self.leaderships.release(settled=settled)
        self.upkeep.end_recordings()
        await self.background.settle(SETTLE_SECONDS)
        if self.recording is not None:
            self.recording.stop()
            await asyncio.to_thread(self.recording.close)
        await self.plugins.close()
        await self.recorder.drain(LAST_EVENTS_SECONDS)
        self.tasks.cancel()


def _core_metrics(shown: SchedulerMetrics) -> CoreMetrics:
    """What a core counts, as `/metrics` shows it."""
    return CoreMetrics(
        queue=shown.queue,
        preemption=shown.preemption,
        pod_groups=shown.pod_groups,
        calls=shown.calls,
        claims=shown.claims,
        event_handled=shown.event_handled,
        over_budget=shown.over_budget,
    )
