"""The parts of a scheduler process, each made of those before it.

    events, lease -> writers -> plugins elsewhere -> core -> plugin upkeep -> loop, watches, debugger

Nothing runs yet: process.py starts them.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

from berth.client.api import Api
from berth.client.events import EventRecorder
from berth.client.write_guard import WriteGuard
from berth.framework.clock import SystemClock
from berth.scheduler.attempt_log import AttemptLog
from berth.scheduler.background import AsyncioBackground
from berth.scheduler.cache_debugger import CacheDebugger
from berth.scheduler.campaign import Campaign
from berth.scheduler.control_thread import ControlThread
from berth.scheduler.core_assembly import ASYNC_API_CALLS, GENERIC_WORKLOAD, SchedulerCore
from berth.scheduler.delegated_access import DelegatedAccess
from berth.scheduler.election import LeaseEvents, new_elector
from berth.scheduler.fence import Fence
from berth.scheduler.first_sync import FirstSync
from berth.scheduler.leadership import Leadership
from berth.scheduler.needed_kinds import needed_groups
from berth.scheduler.plugin_upkeep import PluginUpkeep
from berth.scheduler.plugins_elsewhere import PluginsElsewhere
from berth.scheduler.process_core import CoreMeans
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.running_tasks import RunningTasks
from berth.scheduler.scheduling_loop import SchedulingLoop
from berth.scheduler.set_aside_events import SetAsideEvents, set_aside_now, set_aside_total
from berth.scheduler.shown_parts import ShownParts
from berth.scheduler.transports import ControlTransports, Transports
from berth.scheduler.watches import watch
from berth.scheduler.writers import Writers
from berth.telemetry.metrics import SchedulerMetrics


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a process starts and ends."""

    settings: ProcessSettings
    tasks: RunningTasks
    background: AsyncioBackground
    recorder: EventRecorder
    control: ControlThread
    elector: Campaign | None
    review: DelegatedAccess
    metrics: SchedulerMetrics
    attempts: AttemptLog
    plugins: PluginsElsewhere
    core: SchedulerCore
    upkeep: PluginUpkeep
    guard: WriteGuard
    fence: Fence
    loop: SchedulingLoop
    first_sync: FirstSync
    debugger: CacheDebugger

    def shown(self, leadership: Leadership) -> ShownParts:
        """Those of which something is shown."""
        return ShownParts(
            self.settings,
            self.core,
            self.metrics,
            self.attempts,
            self.upkeep,
            self.loop,
            leadership,
            self.debugger,
            self.control.turns,
        )


@dataclass(frozen=True, slots=True)
class Control:
    """The control thread, and its connections."""

    thread: ControlThread
    transports: ControlTransports


def make_parts(
    settings: ProcessSettings, transports: Transports, control: Control, group: asyncio.TaskGroup
) -> Parts:
    """All parts, whose tasks are to run in the group.

    Raises: BuildError, EventRegistrationError.
    """
    recorder = EventRecorder(Api(transports.events))
    told = LeaseEvents(recorder, settings.loaded)
    elector = _elector(settings, control, told)
    tasks, background, clock = RunningTasks(group), AsyncioBackground(group), SystemClock()
    metrics, attempts = _metrics(settings), AttemptLog()
    guard = _guard(elector)
    writers = Writers.over(transports.main, guard)
    plugins = PluginsElsewhere(
        settings, writers, metrics.plugins, told.plugin_condition, (transports.main, tasks)
    )
    core = CoreMeans(settings, writers, recorder, background, clock, metrics, attempts, plugins).assemble()
    upkeep = PluginUpkeep(settings, plugins, core, transports, tasks)
    events = SetAsideEvents(recorder, settings.loaded.profiles[0].scheduler_name, clock)
    groups = _watched_groups(settings)
    mirrors = watch(transports.main, core, plugins, groups=groups, report=events.report)
    metrics.watch_set_aside(partial(set_aside_total, mirrors), partial(set_aside_now, mirrors))
    renew_deadline = settings.loaded.configuration.leader_election.renew_deadline.seconds
    fence = Fence(lambda: (*mirrors, *plugins.mirrors), guard, renew_deadline, observe=metrics.fence_lowered)
    loop = SchedulingLoop(core, clock, may_decide=lambda: not fence.is_up())
    nodes, pods = mirrors[:2]
    return Parts(
        settings,
        tasks,
        background,
        recorder,
        control.thread,
        elector,
        DelegatedAccess(Api(control.transports.reviews)),
        metrics,
        attempts,
        plugins,
        core,
        upkeep,
        guard,
        fence,
        loop,
        FirstSync(mirrors, core, plugins.settle, tasks),
        CacheDebugger(core, nodes, pods, loop.turn),
    )


def _elector(settings: ProcessSettings, control: Control, told: LeaseEvents) -> Campaign | None:
    """The candidate, run by the control thread; its events are recorded by the scheduling loop."""
    loop = asyncio.get_running_loop()

    def announce(note: str) -> None:
        loop.call_soon_threadsafe(told.announce, note)

    def may_hold() -> bool:
        return not control.thread.turns.hangs()

    election, api = settings.loaded.configuration.leader_election, Api(control.transports.leases)
    elector = new_elector(api, election, announce, may_hold)
    return None if elector is None else Campaign(elector, control.thread)


def _guard(elector: Campaign | None) -> WriteGuard:
    """The right to write: what is sent while the lease is fresh lands before the lease has run out."""
    if elector is None:
        return WriteGuard()
    lease = elector.settings
    return WriteGuard(elector.is_fresh, landing_seconds=lease.duration - lease.renew_deadline)


def _metrics(settings: ProcessSettings) -> SchedulerMetrics:
    enabled = settings.loaded.gates.enabled
    return SchedulerMetrics(pod_groups=enabled(GENERIC_WORKLOAD), asynchronous_calls=enabled(ASYNC_API_CALLS))


def _watched_groups(settings: ProcessSettings) -> frozenset[str]:
    elsewhere = bool(settings.sidecars or settings.directory)
    return needed_groups(settings.loaded.profiles, out_of_tree=elsewhere)
