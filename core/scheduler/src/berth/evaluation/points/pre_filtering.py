"""Runs PreFilter plugins.

Source: pkg/scheduler/framework/runtime/framework.go RunPreFilterPlugins (Kubernetes v1.36).
"""

from collections.abc import Sequence

import msgspec

from berth.evaluation.points.state_writes import StateWrites, record_writes
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import OverBudgetError
from berth.framework.interface import PreFilterPlugin, PreFilterResult
from berth.framework.status import SUCCESS, Code, Status, failed, unresolvable


class PreFilterOutcome(msgspec.Struct):
    """The phase's status, the nodes it narrows the choice to, and the plugins that did so.

    `ended_by` is the plugin after which no other was asked, empty if all were.
    """

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    narrowing: tuple[str, ...] = ()
    ended_by: str = ""


ALL_WELL = PreFilterOutcome()
"""Success with all nodes left; shared, so it must not be written to."""


async def run_pre_filters(
    plugins: Sequence[PreFilterPlugin], attempt: Attempt, state_writes: StateWrites | None = None
) -> PreFilterOutcome:
    """Run PreFilter; the plugins that return Skip are in the state's `skip_filter` in every case.

    What each plugin writes into the state is recorded in `state_writes`.
    """
    phase = _PreFilterPhase()
    record, meter, state = attempt.record, attempt.meter, attempt.state
    point = record.begin("PreFilter")
    for plugin in plugins:
        name, before = plugin.name, len(state)
        mark = record.begin(name, point)
        try:
            answer = plugin.pre_filter(state, attempt.pod, attempt.nodes)
            result = answer if isinstance(answer, PreFilterResult) else await answer
        except OverBudgetError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises fails this cycle, not the scheduler
            result = PreFilterResult(failed(error))
        if state_writes is not None:
            record_writes(state_writes, name, state, before)
        record.end(mark, result.status)
        if meter.worked(name):
            await meter.breathe()
        if phase.ends_with(name, result):
            phase.ended_by = name
            break
    state.skip_filter = frozenset(phase.skipped)
    record.end(point, phase.status)
    return PreFilterOutcome(phase.status, phase.node_names, tuple(sorted(phase.narrowing)), phase.ended_by)


class _PreFilterPhase:
    """The phase so far: its status, the nodes left, and who narrowed them."""

    def __init__(self) -> None:
        self.status = SUCCESS
        self.node_names: frozenset[str] | None = None
        self.narrowing: set[str] = set()
        self.skipped: set[str] = set()
        self.ended_by = ""

    def ends_with(self, name: str, result: PreFilterResult) -> bool:
        """Merge a plugin's result; True where no further plugin is to run."""
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
