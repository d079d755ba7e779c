"""Running PreFilter and Filter plugins over all nodes of a snapshot.

Source: spec/core.md 4.4, 4.7; spec/plugins.md 1.2, 1.3.
"""

from collections.abc import Container, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable

import numpy as np

from berth.evaluation.kept import Kept
from berth.framework.attempt import Attempt
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis, Rejections
from berth.framework.interface import (
    FilterPlugin,
    MaybeAwaitable,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    ReasonCodes,
)
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed, unresolvable
from berth.snapshot.columns import Mask
from berth.snapshot.pod_info import PodInfo


@dataclass(slots=True)
class PreFilterOutcome:
    """The phase's status, the nodes it narrows the choice to, and the plugins that did so."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    narrowing: tuple[str, ...] = ()


async def run_pre_filters(
    plugins: Sequence[PreFilterPlugin], attempt: Attempt, kept: Kept | None = None
) -> PreFilterOutcome:
    """Run the phase; the skip set is in the state whatever comes of it."""
    phase = _PreFilterPhase()
    record, meter = attempt.record, attempt.meter
    point = record.begin("PreFilter")
    for plugin in plugins:
        mark = record.begin(plugin.name, point)
        before = len(attempt.state)
        result = await _pre_filter(plugin, attempt)
        if kept is not None:
            kept.note_values(plugin.name, attempt.state, before)
        record.end(mark, result.status)
        if meter.worked(plugin.name):
            await meter.breathe()
        if phase.ends_with(plugin.name, result):
            break
    attempt.state.skip_filter = frozenset(phase.skipped)
    record.end(point, phase.status)
    return PreFilterOutcome(phase.status, phase.node_names, tuple(sorted(phase.narrowing)))


async def _pre_filter(plugin: PreFilterPlugin, attempt: Attempt) -> PreFilterResult:
    try:
        answer = plugin.pre_filter(attempt.state, attempt.pod, attempt.nodes)
        return answer if isinstance(answer, PreFilterResult) else await answer
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this cycle, not the scheduler
        return PreFilterResult(failed(error))


class _PreFilterPhase:
    """The phase so far: its status, the nodes left, and who narrowed them."""

    def __init__(self) -> None:
        self.status = SUCCESS
        self.node_names: frozenset[str] | None = None
        self.narrowing: set[str] = set()
        self.skipped: set[str] = set()

    def ends_with(self, name: str, result: PreFilterResult) -> bool:
        """Take a plugin's answer in; whether no other plugin is to be asked."""
        match result.status.code:
            case Code.SUCCESS:
                return result.node_names is not None and self._narrow(name, result.node_names)
            case Code.SKIP:
                self.skipped.add(name)
                return False
            case Code.UNSCHEDULABLE:
                self.status = result.status.from_plugin(name)
                return False
            case Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                self.status = result.status.from_plugin(name)
                self.narrowing.clear()
            case _:
                text = f'running PreFilter plugin "{name}": {result.status.message}'
                self.status = failed(text).from_plugin(name)
        return True

    def _narrow(self, name: str, node_names: frozenset[str]) -> bool:
        self.narrowing.add(name)
        self.node_names = node_names if self.node_names is None else self.node_names & node_names
        if self.node_names:
            return False
        self.status = unresolvable(_nothing_left(sorted(self.narrowing)))
        return True


def _nothing_left(names: list[str]) -> str:
    if len(names) == 1:
        return f"node(s) didn't satisfy plugin {names[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously"


async def run_filters(
    plugins: Sequence[FilterPlugin],
    attempt: Attempt,
    candidates: Mask,
    diagnosis: Diagnosis,
    kept: Kept | None = None,
) -> Mask:
    """Where the pod fits, among the candidates; every rejection of a candidate goes into the diagnosis.

    The first plugin, in the profile's order, that turns a node down owns the rejection. Plugins in other
    processes work while this one does.

    Shapes: candidates and result bool (n,). Raises: PluginError with upstream's text where a plugin fails.
    """
    point = attempt.record.begin("Filter")
    alive = candidates.copy()
    try:
        await filter_within(plugins, attempt, alive, diagnosis, point=point, kept=kept)
    finally:
        attempt.record.end(point)
    return alive


async def filter_within(
    plugins: Sequence[FilterPlugin],
    attempt: Attempt,
    alive: Mask,
    diagnosis: Diagnosis,
    *,
    point: int,
    kept: Kept | None = None,
) -> None:
    """The same for a phase that has begun; what is turned down is taken out of `alive`."""
    record, state, meter = attempt.record, attempt.state, attempt.meter
    active = [plugin for plugin in plugins if plugin.name not in state.skip_filter]
    asked: dict[str, MaybeAwaitable[ReasonCodes]] = {}
    try:
        asked = {plugin.name: _ask(plugin, attempt) for plugin in active if not plugin.in_process}
        if asked:
            await LET_OTHERS_RUN
        for i, plugin in enumerate(active):
            mark = record.begin(plugin.name, point)
            if not plugin.in_process:
                asked |= _asked_here(active[i + 1 :], asked, attempt)
            answer = asked.pop(plugin.name, None)
            codes = await _codes(plugin, _ask(plugin, attempt) if answer is None else answer)
            rejected = _fold(plugin, state, codes, alive, diagnosis)
            if kept is not None:
                kept.codes[plugin.name] = codes
            record.end(mark, rejected=rejected)
            if meter.worked(plugin.name):
                await meter.breathe()
            if rejected and not alive.any():
                break
    finally:
        drop_unread(asked.values())


def _asked_here(
    later: Sequence[FilterPlugin], asked: Container[str], attempt: Attempt
) -> dict[str, MaybeAwaitable[ReasonCodes]]:
    """What the plugins of this process say whose turn is later, found while another process is at work."""
    return {p.name: _ask(p, attempt) for p in later if p.in_process and p.name not in asked}


class _LetOthersRun:
    """Awaited, it gives the loop two turns, in which what other processes are asked is sent."""

    def __await__(self) -> Generator[None, None, None]:
        yield
        yield


LET_OTHERS_RUN = _LetOthersRun()


def drop_unread(answers: Iterable[object]) -> None:
    """Tell whoever still works on these answers that nobody waits for them any more."""
    for unread in answers:
        stop = getattr(unread, "cancel", None) or getattr(unread, "close", None)
        if stop is not None:
            stop()


def _ask(plugin: FilterPlugin, attempt: Attempt) -> MaybeAwaitable[ReasonCodes]:
    try:
        return plugin.filter(attempt.state, attempt.pod, attempt.nodes)
    except Exception as error:
        raise _filter_error(plugin, error) from error


async def codes_on(plugin: FilterPlugin, attempt: Attempt) -> ReasonCodes:
    """The plugin's codes for the attempt's nodes.

    Raises: PluginError with upstream's text where the plugin fails, or has no code for each node.
    """
    codes = await _codes(plugin, _ask(plugin, attempt))
    _check_shape(plugin, codes, len(attempt.nodes))
    return codes


async def _codes(plugin: FilterPlugin, answer: MaybeAwaitable[ReasonCodes]) -> ReasonCodes:
    # Vectors come first: asking whether something can be awaited takes longer than many a filter.
    if isinstance(answer, np.ndarray) or not isawaitable(answer):
        return answer
    try:
        return await answer
    except Exception as error:
        raise _filter_error(plugin, error) from error


def _filter_error(plugin: FilterPlugin, error: BaseException | str) -> PluginError:
    return PluginError(f'running "{plugin.name}" filter plugin: {error}')


def _fold(
    plugin: FilterPlugin, state: CycleState, codes: ReasonCodes, alive: Mask, diagnosis: Diagnosis
) -> int:
    """Take the plugin's rejections out of `alive`; how many there were.

    Raises: PluginError where the answer is no code for each node, or a code that rejects nothing.
    """
    _check_shape(plugin, codes, alive.size)
    try:
        if not np.count_nonzero(codes):  # three times as fast as any()
            return 0
        rows = np.flatnonzero((codes != 0) & alive)
        if rows.size:
            diagnosis.record(Rejections(rows, codes[rows], partial(_spelled, plugin, state)))
            alive[rows] = False
    except PluginError:
        raise
    except Exception as error:
        raise _filter_error(plugin, error) from error
    return int(rows.size)


def _check_shape(plugin: FilterPlugin, codes: ReasonCodes, n: int) -> None:
    if getattr(codes, "shape", None) != (n,):
        raise _filter_error(plugin, f"no verdict for each of {n} nodes")


def _spelled(plugin: FilterPlugin, state: CycleState, code: int) -> Status:
    status = plugin.filter_status(state, code)
    if not status.rejected:
        raise _filter_error(plugin, status.message)
    return status if status.plugin == plugin.name else status.from_plugin(plugin.name)


async def filter_with_nominated(
    plugins: Sequence[FilterPlugin],
    extensions: Sequence[PreFilterExtensions],
    attempt: Attempt,
    row: int,
    nominated: Sequence[PodInfo],
) -> Status:
    """One node's status with the nominated pods thought to be on it.

    Raises: PluginError where a plugin fails.
    """
    nodes, _pod = attempt.nodes, attempt.pod
    state = attempt.state.clone()
    table = nodes.what_if(nodes.names[row], add=nominated)
    simulated = attempt.on(table, state)
    following = [plugin for plugin in extensions if plugin.name not in state.skip_filter]
    follow_pods(following, simulated, [(0, other) for other in nominated], 1)
    return await filter_one(plugins, simulated)


def follow_pods(
    plugins: Iterable[PreFilterExtensions], attempt: Attempt, pods: Sequence[tuple[int, PodInfo]], sign: int
) -> None:
    """Let plugins know of pods that are thought to come (1) to rows of the attempt's table, or to go (-1).

    Where a plugin cannot follow several nodes side by side, the table has one row.
    Raises: PluginError where a plugin fails.
    """
    for plugin in plugins:
        text = f'running {"AddPod" if sign > 0 else "RemovePod"} on PreFilter plugin "{plugin.name}"'
        try:
            status = _follow(plugin, attempt, pods, sign)
        except Exception as error:
            raise PluginError(f"{text}: {error}") from error
        if not status.ok:
            raise PluginError(f"{text}: {status.message}")


def _follow(
    plugin: PreFilterExtensions, attempt: Attempt, pods: Sequence[tuple[int, PodInfo]], sign: int
) -> Status:
    state, pod, table = attempt.state, attempt.pod, attempt.nodes
    if plugin.follows_side_by_side:
        plugin.follow_pods(state, pod, pods, table, sign)
        return SUCCESS
    follow = plugin.add_pod if sign > 0 else plugin.remove_pod
    statuses = (follow(state, pod, info, table) for _, info in pods)
    return next((status for status in statuses if not status.ok), SUCCESS)


async def filter_one(plugins: Sequence[FilterPlugin], attempt: Attempt) -> Status:
    """The status of a table of one row: the first rejection, or success.

    Raises: PluginError where a plugin fails.
    """
    diagnosis = Diagnosis(attempt.nodes.names)
    fits = await run_filters(plugins, attempt, np.ones(1, dtype=bool), diagnosis)
    return SUCCESS if fits[0] else diagnosis.node_status(0)
