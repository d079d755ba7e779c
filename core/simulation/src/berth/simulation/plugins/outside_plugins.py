"""Sidecars and HTTP extenders of a simulation: started or attached, asked in real time.

    entry --command--> a process of its own --+--> connection (real_time_loop.py) --> enabled in its profiles
                 address ---------------------+

    virtual time:  scheduler --> plugin at its points --> call --+        +--> answer, at the same moment
    real time:                                                   +--> socket --+

A plugin's answer arrives at the virtual time of the question, however long it took. A plugin that uses
the clock is sent the virtual time, is woken at the times that it asks for, and is read before time passes.
Requeues of other plugins arrive in real time: the simulation gives them a moment while a pod waits.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from berth.config.catalogue import ExtensionPoint
from berth.config.loading import LoadedConfig
from berth.event_handlers.handler import ResourceHandler
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import FitError
from berth.framework.clock import SYSTEM_CLOCK, Clock
from berth.framework.extender import Extender
from berth.objects.pods.pod import Pod
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.extender import ExtenderContext, HttpExtenders
from berth.out_of_tree.host import rejectors
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import PluginFactory
from berth.queue.requeueing.hint_questions import HintQuestion, HintsAnswered
from berth.scheduler.plugin_source import SchedulerParts
from berth.scheduler.scheduler import Scheduler
from berth.simulation.cluster.state import ClusterState
from berth.simulation.cluster.virtual_time import Spawn
from berth.simulation.errors import PluginsError
from berth.simulation.plugins.outside_host import MICROS, Heard, OutsideExtender, OutsideHost
from berth.simulation.plugins.plugin_calls import CallCounts, PluginUse
from berth.simulation.plugins.plugin_settings import SimulatedSidecars
from berth.simulation.plugins.plugin_state import StateError, read_state
from berth.simulation.plugins.real_time_loop import RealTimeLoop
from berth.simulation.plugins.shown_objects import ShownObjects
from berth.simulation.plugins.started_plugins import START_SECONDS, StartedPlugins
from berth.simulation.queue_shares.samples import QueueState, ShownQueues
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.reading.kinds import SimulatedKind
from berth_plugin_proto import identity_pb2

if TYPE_CHECKING:
    from berth.config.out_of_tree.sidecars import SidecarSpec

READY_SECONDS: Final = 10.0
"""How long a plugin that should be there may take to be ready."""
BREATH_SECONDS: Final = 1.0
"""So often at least connections go on, in real time: a plugin that waits for longer hangs up."""
IN_STEP_SECONDS: Final = 1.0
"""How long it is waited for plugins to take in the newest state; calls bring it in any case."""
MAX_MOVES: Final = 100
"""So often plugins may move something at one virtual moment: one that never ends to must not hold up time."""
MAX_WAKES: Final = 10_000
"""So often plugins are woken without any progress: timers that bring nothing must not go on for ever."""
MAX_WAIT_SECONDS: Final = 7 * 24 * 3600.0
"""Nor is a timer waited for that is due so long after the last progress."""
MOMENT_SECONDS: Final = 0.005
"""How long what a plugin says by itself may be on its way."""


class OutsidePlugins:
    """Implements SimulationPlugins (running/plugins.py) and PluginSource; a context manager."""

    present = True

    def __init__(
        self,
        cluster: ClusterInput,
        loaded: LoadedConfig,
        plugins: SimulatedSidecars,
        *,
        shows_queues: bool = False,
    ) -> None:
        self._loaded = loaded
        self._plugins = plugins
        self._counts = CallCounts()
        self._objects = ShownObjects(cluster)
        self._outside = RealTimeLoop()
        self._started = StartedPlugins(plugins, with_pages=shows_queues)
        self._tasks: list[asyncio.Task[Any]] = []
        self._http: HttpExtenders | None = None
        self._host: OutsideHost | None = None
        self._parts: SchedulerParts | None = None
        self._clock: Clock = SYSTEM_CLOCK
        self._spawn: Spawn | None = None
        self._breathed = SYSTEM_CLOCK.monotonic()
        self._moves, self._moved_at = 0, 0.0
        """How often plugins were given their moment at this virtual time."""
        self._heard_out = False
        """Whether plugins had nothing to say at two moments since the last change or call."""
        self._heard: tuple[int, Heard] = (0, [])
        """What they had been asked and sent by the last moment."""
        self._alarm: asyncio.TimerHandle | None = None
        """What wakes plugins, at the virtual time `_alarm_micros`."""
        self._alarm_micros: int | None = None
        self._wakes, self._progress = 0, 0.0
        """How often plugins were woken since the last progress."""
        self._gave_up = False
        """Whether it is over though a plugin has a timer."""
        self._rejected: dict[str, list[str]] = {}
        """Pods whose last attempt sidecars turned down, by UID, with these."""
        self._by_filter: set[str] = set()
        """Those of them that were turned down at Filter."""
        self._extenders: list[Extender] = []

    def __enter__(self) -> Self:
        """Start the plugins that have a command. Raises: PluginsError."""
        try:
            self._sidecars: Sequence[SidecarSpec] = self._outside.run(self._started.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect, and end the started plugins."""
        with self._outside:
            self._outside.run(self._end())

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._http is not None:
            await self._http.close()
        await self._started.stop()

    # For the simulation.

    def source(self, state: ClusterState, clock: Clock) -> Self:
        """The source of the scheduler's plugins."""
        self._objects.state, self._clock = state, clock
        if self._loaded.extenders:
            self._http = self._outside.run(self._new_extenders())
            self._extenders = [OutsideExtender(each, self._outside, self._counts) for each in self._http]
        return self

    async def _new_extenders(self) -> HttpExtenders:
        around = ExtenderContext(self._objects.nodes, self._objects.pods)
        return HttpExtenders(self._loaded.extenders, around)

    def shown(self, kind: SimulatedKind, handler: ResourceHandler) -> ResourceHandler:
        """Wrap the handler of a kind so that plugins receive its objects, too."""
        return self._objects.shown(kind, handler)

    def show(self, pod: Pod) -> None:
        """Send a hypothetical pod, which was never created, to plugins."""
        self._objects.show(pod)

    def hide(self, pod: Pod) -> None:
        """Drop a hypothetical pod."""
        self._objects.hide(pod)

    def connect(self, core: Scheduler, spawn: Spawn) -> None:
        """Enable sidecars in their profiles, and wait until each is ready. Raises: PluginsError."""
        self._spawn = spawn
        if self._host is None:
            return
        core.cache.update_snapshot(core.snapshot)
        attaching = Attaching(self._host, core.profiles.frameworks, core.handles, _spawns_nothing)
        attaching.enable_listed(self._sidecars)
        self._outside.run(self._host.say_time())
        self._outside.run(self._connected(self._host))
        for name, connection in self._host.connections.items():
            self._check(name, connection)

    async def _connected(self, host: OutsideHost) -> None:
        """Connect all of them. Raises: PluginsError where one is refused, or not ready in time."""
        self._tasks += [asyncio.create_task(work, name=name) for name, work in host.work()]
        for spec in self._plugins.sidecars:
            connection = host.connections[spec.name]
            ended = asyncio.ensure_future(self._started.ended(spec.name))
            settled = asyncio.ensure_future(connection.settled.wait())
            seconds = START_SECONDS if spec.command else READY_SECONDS
            await asyncio.wait((ended, settled), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            settled.cancel()
            if connection.refusal:
                said = f"refuses: {connection.refusal}; correct the entry, or the plugin"
                raise PluginsError(f"{self._plugins.place(spec)} {said}")
            if not connection.ready:
                raise PluginsError(self._not_ready(spec, connection))

    def _not_ready(self, spec: "SidecarSpec", connection: PluginConnection) -> str:
        if spec.command:
            why = self._started.last_output(spec.name)
            remedy = "correct the command, which is to serve at $BERTH_PLUGIN_ADDRESS"
            place = self._plugins.place(spec, "command")
            return f"{place}: not ready within {START_SECONDS:g} s: {why}; {remedy}"
        why = connection.last_error or "no plugin answers"
        place = self._plugins.place(spec, "address")
        return f"{place}: {spec.address} not ready within {READY_SECONDS:g} s: {why}; start the plugin there"

    def _check(self, name: str, connection: PluginConnection) -> None:
        """Refuse a plugin that binds pods itself. Raises: PluginsError."""
        spec = next(each for each in self._plugins.sidecars if each.name == name)
        binds = ExtensionPoint.BIND in spec.extension_points
        if binds and connection.offers(identity_pb2.EXTENSION_POINT_BIND):
            place = self._plugins.place(spec, "extensionPoints")
            raise PluginsError(f"{place} binds pods itself, in a real cluster; list its points without bind")

    def ended(self, record: CycleRecord) -> None:
        """Tell sidecars that an attempt has ended."""
        if self._host is None or self._spawn is None:
            return
        for name, work in self._host.cycles_done(record):
            self._spawn(work, name)
        self._rejected.pop(record.pod.uid, None)
        if by := sorted(self._host.connections.keys() & set(rejectors(record))):
            error = None if record.status is None else record.status.error
            # Filter's answers change with the cluster; the pod itself may wait for a timer.
            by_filter = (
                isinstance(error, FitError)
                and not record.node_name
                and not error.diagnosis.pre_filter_message
            )
            self._rejected[record.pod.uid] = by
            (self._by_filter.add if by_filter else self._by_filter.discard)(record.pod.uid)
        self._let_plugins_run()

    def moves(self) -> bool:
        """Synchronize sidecars before virtual time passes; returns whether one of them requeued pods."""
        self._let_plugins_run()
        if self._host is None or not self._host.speaks or not self._anything_waits():
            self._set_alarm(None)
            return False
        now = self._clock.monotonic()
        self._moves, self._moved_at = (self._moves + 1 if now == self._moved_at else 0), now
        if self._moves > MAX_MOVES:
            return False
        nothing_new = not self._host.moved and self._heard == (self._outside.runs, self._host.heard())
        if nothing_new and self._heard_out and self._timers_ahead(self._host):
            return False
        self._outside.run(self._in_step(self._host))
        self._breathed = SYSTEM_CLOCK.monotonic()
        moved, self._host.moved = self._host.moved, False
        silent = nothing_new and not moved and not self._host.speaks_in_real_time
        self._heard_out = silent and (self._heard_out or self._moves == 0)
        self._heard = self._outside.runs, self._host.heard()
        return self._set_alarm(self._host.wake_at_micros) or moved

    def _timers_ahead(self, host: OutsideHost) -> bool:
        """Whether plugins' timers are due later, so that the time need not be sent yet."""
        wake = host.wake_at_micros
        return wake is None or (self._alarm_micros == wake and host.unix_micros() < wake)

    def _set_alarm(self, unix_micros: int | None) -> bool:
        """Set the one time at which plugins are woken; returns whether it changed."""
        if self._wakes >= MAX_WAKES:
            unix_micros = None
        if unix_micros == self._alarm_micros:
            return False
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_micros = unix_micros
        if unix_micros is not None:
            # The loop calls `moves` before time passes, which sends plugins the time.
            left = unix_micros / MICROS - self._clock.wall()
            self._alarm = asyncio.get_running_loop().call_later(left, self._woken)
        return True

    def _woken(self) -> None:
        self._alarm = self._alarm_micros = None
        self._wakes += 1

    def next_wake(self, progress: float) -> float:
        """The next timer of a plugin, in virtual seconds; infinite where waking it has no effect."""
        if progress != self._progress:
            self._progress, self._wakes = progress, 0
        wake = math.inf if self._alarm_micros is None else self._alarm_micros / MICROS
        too_late = self._alarm_micros is not None and wake > progress + MAX_WAIT_SECONDS
        self._gave_up = too_late or self._wakes >= MAX_WAKES
        return math.inf if too_late else wake

    def _anything_waits(self) -> bool:
        """Whether a sidecar's requeue may help a pod."""
        assert self._parts is not None, "the host was made with them"
        sizes = self._parts.queue.sizes()
        sorts = any(ExtensionPoint.QUEUE_SORT in spec.extension_points for spec in self._sidecars)
        held = sizes.gated or any(True for _ in self._parts.waiting_pods)
        return bool(self._rejected or held or (sorts and any(sizes)))

    def _let_plugins_run(self) -> None:
        if self._host is not None and SYSTEM_CLOCK.monotonic() - self._breathed > BREATH_SECONDS:
            self._outside.run(self._in_step(self._host))
            self._breathed = SYSTEM_CLOCK.monotonic()

    async def _in_step(self, host: OutsideHost) -> None:
        if self._heard_out:
            await host.say_time()  # Changes from now on are handled now, even after a long silence.
        await host.in_step(IN_STEP_SECONDS)
        await host.say_time()
        if host.speaks_in_real_time:
            await asyncio.sleep(MOMENT_SECONDS)

    def queues(self) -> dict[str, QueueState]:
        """The state of each queue, as started plugins show it. Raises: PluginsError where none shows any."""
        return {} if self._host is None else self._outside.run(self._shown_queues(self._host))

    async def _shown_queues(self, host: OutsideHost) -> dict[str, QueueState]:
        await self._in_step(host)
        found: list[dict[str, QueueState]] = []
        for spec in self._plugins.sidecars:
            port = self._started.ports.get(spec.name)
            if port is None:
                continue
            try:
                state = await asyncio.to_thread(read_state, port, ShownQueues)
            except StateError as error:
                place = self._plugins.place(spec, "command")
                said = (
                    f"its /state can't be read: {error}; have it serve $BERTH_METRICS_ADDRESS, as all SDKs do"
                )
                raise PluginsError(f"{place}: {said}") from None
            if state.queues is not None:
                found.append(state.queues)
        if not found:
            said = "no plugin that is started shows queues at its /state; add --plugin queues=berth-queues"
            raise PluginsError(f"--queues-every: {said}")
        return {name: state for queues in found for name, state in queues.items()}

    def may_let_go_on(self, uid: str, gating: str) -> str:
        """The sidecar that makes a pod wait and may let it go on by itself, later; "" if none.

        It does so by `gating` the pod, at PreFilter or at Permit. A plugin that uses the clock was read,
        unless it was woken in vain too often, or its next timer is too far away.
        """
        if self._host is None:
            return ""
        names = [gating] if gating else self._rejected.get(uid, [])
        by_filter = not gating and uid in self._by_filter
        found = ((name, self._host.connections.get(name)) for name in names)
        return next((name for name, one in found if one and self._is_cut_off(one, by_filter=by_filter)), "")

    def _is_cut_off(self, connection: PluginConnection, *, by_filter: bool) -> bool:
        """Whether the plugin might have requeued a pod after the end of virtual time."""
        if not connection.offers(identity_pb2.EXTENSION_POINT_REQUEUE):
            return False
        # Only a plugin with the clock is known to have a timer, which may be about Filter's answers.
        return self._gave_up if connection.capabilities.clock else not by_filter

    def shown_kinds(self) -> Counter[str]:
        """How many of the input's further objects a sidecar was shown, by kind."""
        return self._objects.shown_kinds()

    def uses(self) -> list[PluginUse]:
        """The outcomes of each plugin's calls, in the order of the files."""
        sidecars = [] if self._host is None else [self._use(self._host, s) for s in self._plugins.sidecars]
        return sidecars + [self._counts.use(each.name, each.name) for each in self._extenders]

    def _use(self, host: OutsideHost, spec: "SidecarSpec") -> PluginUse:
        connection, lacks = host.versions[spec.name].connection, host.lacking(spec.name)
        source, clock = " ".join(spec.command) or spec.address, connection.capabilities.clock
        return self._counts.use(
            spec.name, source, version=connection.version, clock=clock, not_in_input=lacks
        )

    # For the scheduler: implements PluginSource.

    @property
    def extenders(self) -> Sequence[Extender]:
        """The configuration's extenders, in calling order."""
        return self._extenders

    def ask_hints(self, questions: Sequence[HintQuestion], answered: HintsAnswered) -> None:
        """Ask sidecars whether events may help the pods that they rejected."""
        if self._host is None:
            answered(questions)
        else:
            self._host.ask_hints(questions)

    def ask_ahead(self) -> None:
        """Do nothing: no virtual time passes while a plugin is called in a pod's cycle."""

    def factories(self, parts: SchedulerParts) -> Mapping[str, PluginFactory]:
        """The factory of each plugin, by name."""
        self._parts = parts
        if not self._sidecars:
            return IN_TREE
        self._host = OutsideHost(
            self._outside,
            self._sidecars,
            self._loaded.profiles,
            cache=parts.cache,
            snapshot=parts.snapshot,
            answers=parts.answers,
            queue=parts.queue,
            waiting_pods=parts.waiting_pods,
            watch=self._objects.watch,
            rewire=parts.rewire,
            metrics=self._counts,
            kept=self._objects,
            wake=parts.wake,
            clock=self._clock,
        )
        return {**IN_TREE, **self._host.factories()}


def _spawns_nothing(work: Any, name: str) -> "asyncio.Task[Any]":
    """Nothing is attached while a simulation runs."""
    raise AssertionError(f"{name}: {work}")
