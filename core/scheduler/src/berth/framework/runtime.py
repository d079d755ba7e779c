"""One profile's plugins, wired: who runs at which extension point, in which order, with which weight.

`filtering.py` and `scoring.py` run the points that look at nodes; the rest runs here.

Source: pkg/scheduler/framework/runtime/framework.go (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

import msgspec

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.decision_observer import DecisionObserver
from berth.framework.extender import Extender
from berth.framework.extender_binding import run_extender_bind
from berth.framework.interface import (
    BindPlugin,
    DirectBindPlugin,
    FilterPlugin,
    PermitPlugin,
    PermitResult,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFlightResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed
from berth.objects.pods.pod import Pod

log = logging.getLogger(__name__)

MAX_PERMIT_WAIT_SECONDS = 15 * 60


class ProfilePlugins(msgspec.Struct):
    """The plugins of one profile by extension point, in running order."""

    pre_enqueue: list[PreEnqueuePlugin] = msgspec.field(default_factory=list)
    queue_sort: list[QueueSortPlugin] = msgspec.field(default_factory=list)
    pre_filter: list[PreFilterPlugin] = msgspec.field(default_factory=list)
    filter: list[FilterPlugin] = msgspec.field(default_factory=list)
    post_filter: list[PostFilterPlugin] = msgspec.field(default_factory=list)
    pre_score: list[PreScorePlugin] = msgspec.field(default_factory=list)
    score: list[tuple[ScorePlugin, int]] = msgspec.field(default_factory=list)
    reserve: list[ReservePlugin] = msgspec.field(default_factory=list)
    permit: list[PermitPlugin] = msgspec.field(default_factory=list)
    pre_bind: list[PreBindPlugin] = msgspec.field(default_factory=list)
    bind: list[BindPlugin] = msgspec.field(default_factory=list)
    post_bind: list[PostBindPlugin] = msgspec.field(default_factory=list)
    placement_generate: list[PlacementGeneratePlugin] = msgspec.field(default_factory=list)
    placement_score: list[tuple[PlacementScorePlugin, int]] = msgspec.field(default_factory=list)
    by_name: dict[str, Plugin] = msgspec.field(default_factory=dict)


class PermitOutcome(msgspec.Struct, frozen=True):
    """The phase's status and, where it says WAIT, how long each plugin asked to wait, and what for."""

    status: Status = SUCCESS
    timeouts_seconds: Mapping[str, float] = msgspec.field(default_factory=dict)
    messages: Mapping[str, str] = msgspec.field(default_factory=dict)


class Framework:
    """A profile that can run its plugins."""

    def __init__(
        self,
        profile_name: str,
        plugins: ProfilePlugins,
        *,
        percentage_of_nodes_to_score: int | None = None,
        extenders: Sequence[Extender] = (),
    ) -> None:
        self.profile_name = profile_name
        self.extenders = extenders
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.decision_observers: list[DecisionObserver] = []
        """Who is shown every choice of a node, if anybody."""
        self.take(plugins)

    def take(self, plugins: ProfilePlugins) -> None:
        """Run these plugins from now on; what runs meanwhile goes on with the lists that it has."""
        self.plugins = plugins
        self.extensions: Sequence[PreFilterExtensions] = [
            p for p in plugins.pre_filter if isinstance(p, PreFilterExtensions)
        ]
        self.placement_feasible: Sequence[PlacementFeasiblePlugin] = [
            p for p in plugins.by_name.values() if isinstance(p, PlacementFeasiblePlugin)
        ]
        """The plugins that say when enough pods of a group have a node; they have no point of their own."""
        holders = {p.name: p for p in (*plugins.reserve, *plugins.permit) if not p.in_process}
        self._outside = list(holders.values())
        first = next(iter(plugins.bind), None)
        others = any(extender.binds for extender in self.extenders)
        self.direct_binder = first if isinstance(first, DirectBindPlugin) and not others else None
        """The plugin that binds every pod without a task; None where there may be more to do for one."""

    @property
    def reserves_remotely(self) -> bool:
        """Whether Reserve or Permit asks another process, so that waiting for it holds no other pod up."""
        return any(plugin.reserves_remotely() for plugin in self._outside)

    async def run_reserve(self, state: CycleState, pod: Pod, node_name: str, record: CycleRecord) -> Status:
        """Let every Reserve plugin hold what the pod needs; the first that does not ends the phase."""
        point = record.begin("Reserve")
        status = SUCCESS
        for plugin in self.plugins.reserve:
            mark = record.begin(plugin.name, point)
            status = await guarded(plugin, "Reserve", lambda p=plugin: p.reserve(state, pod, node_name))
            if status.ok:
                status = state.meter.verdict(plugin.name)
            record.end(mark, status)
            if not status.ok:
                break
        record.end(point, status)
        return status

    async def run_unreserve(self, state: CycleState, pod: Pod, node_name: str, record: CycleRecord) -> None:
        """Let every Reserve plugin let go, in reverse order, whatever became of the others."""
        point = record.begin("Unreserve")
        for plugin in reversed(self.plugins.reserve):
            status = await guarded(plugin, "Unreserve", lambda p=plugin: p.unreserve(state, pod, node_name))
            if not status.ok:
                record.intervals[point].status = status
                # The pod is bound: no condition or event of it says what a plugin missed.
                log.warning("pod is bound, but not all was done pod=%s err=%s", pod.key, status.message)
        record.end(point, record.intervals[point].status)

    async def run_permit(
        self, state: CycleState, pod: Pod, node_name: str, record: CycleRecord
    ) -> PermitOutcome:
        """Ask every Permit plugin; one rejection beats any wish to wait."""
        point = record.begin("Permit")
        timeouts: dict[str, float] = {}
        messages: dict[str, str] = {}
        status = SUCCESS
        for plugin in self.plugins.permit:
            mark = record.begin(plugin.name, point)
            answer, seconds = await _permit_one(plugin, state, pod, node_name)
            if answer.ok:
                answer = state.meter.verdict(plugin.name)
            record.end(mark, answer)
            if answer.code is Code.WAIT:
                timeouts[plugin.name] = min(seconds, MAX_PERMIT_WAIT_SECONDS)
                messages[plugin.name] = answer.message
                status = answer
            elif not answer.ok:
                record.end(point, answer)
                return PermitOutcome(answer)
        if timeouts:
            reasons = (*status.reasons, "one or more plugins asked to wait and no plugin rejected pod")
            status = Status(Code.WAIT, reasons, next(reversed(timeouts)))
        record.end(point, status)
        return PermitOutcome(status, timeouts, messages)

    def run_pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Find out which PreBind plugins have work: SKIP where none has."""
        skipped, parallel = set(), set()
        overall = SKIP
        for plugin in self.plugins.pre_bind:
            result = _pre_flight(plugin, state, pod, node_name)
            if result.allow_parallel:
                parallel.add(plugin.name)
            if result.status.skip:
                skipped.add(plugin.name)
            elif result.status.ok:
                overall = SUCCESS
            elif result.status.code is Code.ERROR:
                return failed(f'running PreBindPreFlight "{plugin.name}": {result.status.message}')
            else:
                return failed(
                    f'PreBindPreFlight {plugin.name} returned "{result.status.code}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                )
        state.skip_pre_bind, state.parallel_pre_bind = frozenset(skipped), frozenset(parallel)
        return overall

    def pre_bind_groups(self, state: CycleState) -> list[list[PreBindPlugin]]:
        """The PreBind plugins with work, those that may run side by side in one group."""
        groups: list[list[PreBindPlugin]] = [[]]
        for plugin in self.plugins.pre_bind:
            serial = plugin.name not in state.parallel_pre_bind
            if serial:
                groups.append([])
            if plugin.name not in state.skip_pre_bind:
                groups[-1].append(plugin)
            if serial:
                groups.append([])
        return [group for group in groups if group]

    async def run_pre_bind_one(
        self, plugin: PreBindPlugin, state: CycleState, pod: Pod, node_name: str
    ) -> Status:
        """Run one PreBind plugin."""
        return await guarded(plugin, "PreBind", lambda: plugin.pre_bind(state, pod, node_name))

    async def run_bind(self, state: CycleState, pod: Pod, node_name: str, record: CycleRecord) -> Status:
        """Bind with an extender that cares for the pod, else with the first plugin that does not pass."""
        point = record.begin("Bind")
        bound = await run_extender_bind(self.extenders, state, pod, node_name) if self.extenders else None
        status = SKIP if bound is None else bound
        for plugin in self.plugins.bind if bound is None else ():
            mark = record.begin(plugin.name, point)
            status = await guarded(plugin, "Bind", lambda p=plugin: p.bind(state, pod, node_name))
            record.end(mark, status)
            if not status.skip:
                break
        record.end(point, status)
        return status

    def begin_bind(
        self,
        binder: DirectBindPlugin,
        state: CycleState,
        pod: Pod,
        record: CycleRecord,
        done: Callable[[Status], None],
    ) -> None:
        """Bind the assumed pod with the one plugin that binds all; `done` is called with what came of it."""
        point = record.begin("Bind")
        mark = record.begin(binder.name, point)

        def bound(status: Status) -> None:
            verdict = _verdict(binder, "Bind", status)
            record.end(mark, verdict)
            record.end(point, verdict)
            done(verdict)

        try:
            binder.begin_bind(state, pod, pod.node_name, bound)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this attempt, not the scheduler
            bound(failed(error))

    def wants_post_bind(self, state: CycleState) -> bool:
        """Whether some PostBind plugin is to be notified of the binding."""
        return any(plugin.wants_post_bind(state) for plugin in self.plugins.post_bind)

    async def run_post_bind(self, state: CycleState, pod: Pod, node_name: str, record: CycleRecord) -> None:
        """Tell every PostBind plugin."""
        point = record.begin("PostBind")
        for plugin in self.plugins.post_bind:
            status = await guarded(plugin, "PostBind", lambda p=plugin: p.post_bind(state, pod, node_name))
            if not status.ok:
                record.intervals[point].status = status
                # The pod is bound: no condition or event of it says what a plugin missed.
                log.warning("pod is bound, but not all was done pod=%s err=%s", pod.key, status.message)
        record.end(point, record.intervals[point].status)


def _pre_flight(plugin: PreBindPlugin, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
    try:
        return plugin.pre_bind_pre_flight(state, pod, node_name)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this attempt, not the scheduler
        return PreFlightResult(failed(error))


async def _permit_one(
    plugin: PermitPlugin, state: CycleState, pod: Pod, node_name: str
) -> tuple[Status, float]:
    try:
        answer = plugin.permit(state, pod, node_name)
        result = await answer if not isinstance(answer, PermitResult) and isawaitable(answer) else answer
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this attempt, not the scheduler
        return _failure(plugin, "Permit", error), 0.0
    if result.status.code is Code.WAIT:
        return result.status, result.timeout_seconds
    return _verdict(plugin, "Permit", result.status), 0.0


async def guarded(plugin: Plugin, point: str, call: Any) -> Status:
    """Call a plugin; whatever it raises becomes an error that names it and the extension point."""
    try:
        answer = call()
        # Most answer with a status; asking whether that can be awaited takes longer than many a plugin.
        result = answer if isinstance(answer, Status) or not isawaitable(answer) else await answer
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this attempt, not the scheduler
        return _failure(plugin, point, error)
    return _verdict(plugin, point, result or SUCCESS)


def _verdict(plugin: Plugin, point: str, status: Status) -> Status:
    if status.ok or (status.skip and point == "Bind"):
        return status
    if status.rejected:
        return status.from_plugin(plugin.name)
    return _failure(plugin, point, status.error or status.message)


def _failure(plugin: Plugin, point: str, error: BaseException | str) -> Status:
    return failed(f'running {point} plugin "{plugin.name}": {error}').from_plugin(plugin.name)
