"""What would have to go on a node so that the pod fits: everything that may, then back whatever can stay.

The nodes of one call are tried side by side: first all potential victims of all of them are gone, then in
each round one a node comes back, and stays where the pod still fits beside it. Each node's answer is the one
that it would give alone.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go SelectVictimsOnNode
(Kubernetes v1.36).
"""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import TypeAlias

import msgspec
import numpy as np

from berth.evaluation.nominated_rows import NominatedRows
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import FilterPlugin, PreFilterExtensions
from berth.framework.runtime import Framework
from berth.framework.status import PluginError, Status, failed, unresolvable
from berth.preemption.candidates import Candidate
from berth.preemption.screening import LowerPriorityPods
from berth.preemption.trial import PreemptionTrial, ReprieveTurns, following
from berth.preemption.victims import CompiledBudgets, Seniority, by_importance
from berth.preemption.whole_groups import UnitDryRun, WholeGroups
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")

DryRunResult: TypeAlias = Candidate | Status
"""A candidate without victims is one for which an extender is to name them."""


class _Choices(msgspec.Struct, frozen=True):
    """Each node's potential victims in the order in which they may stay, and which of them have to go.

    Shapes: violating int64 (k,), how many of the first ones violate a budget if they go; gone bool (k, t).
    """

    turns: ReprieveTurns
    violating: Ints
    gone: Mask

    def victims(self, i: int, seniority: Seniority) -> list[PodInfo]:
        """Those that have to go from row i, the most important first."""
        order = self.turns.order[i]
        gone = list(compress(order, self.gone[i].tolist()))
        mixed = 0 < self.violating[i] < len(order)
        return by_importance(gone, seniority) if mixed else gone

    def violations(self) -> Ints:
        """How many of them violate a budget. Shapes: result int64 (k,)."""
        turns = np.arange(self.gone.shape[1])
        counts: Ints = np.count_nonzero(self.gone & (turns < self.violating[:, np.newaxis]), axis=1)
        return counts


class DryRun(msgspec.Struct, frozen=True):
    """Tries the pod on nodes without their less important pods.

    `beneath` are the pods of lower priority; `nominated` those of no lower one that were promised a node.
    """

    framework: Framework
    attempt: Attempt
    beneath: LowerPriorityPods
    budgets: CompiledBudgets
    nominated: NominatedRows
    seniority: Seniority
    whole: WholeGroups | None = None
    """The groups that are evicted as a whole, where the release has it so for single pods."""
    without_evictions: Callable[[str], DryRunResult] = lambda name: failed(
        f'expected at least one victim pod on node "{name}"'
    )
    """What comes of a node, by its name, that would do with all of its pods: no plugin turned it down."""

    @property
    def side_by_side(self) -> bool:
        """Whether all nodes can be asked about at once: no plugin at work follows one node alone."""
        return all(plugin.follows_side_by_side for plugin in self._following)

    @property
    def _following(self) -> list[PreFilterExtensions]:
        return following(self.framework, self.attempt.state)

    @property
    def screens(self) -> bool:
        """Whether all nodes can be asked about before anybody looks at their pods."""
        return not self._following

    @property
    def here(self) -> list[FilterPlugin]:
        """The Filter plugins that answer from this process: others would have to be sent every node."""
        return [plugin for plugin in self.framework.plugins.filter if plugin.in_process]

    async def without_victims(self, among: Mask) -> tuple[Mask, Diagnosis]:
        """Where among the nodes the pod fits once all potential victims are gone, and why not on the others.

        Only plugins of this process are asked.
        Shapes: among and result bool (n,). Raises: PluginError where a plugin fails on any of the nodes.
        """
        rows = np.arange(among.size)
        table = self.beneath.everywhere()
        trial = PreemptionTrial(self.framework, self.attempt, table, rows, self.nominated, plugins=self.here)
        diagnosis = Diagnosis(trial.table.names)
        return await trial.fits(among, diagnosis), diagnosis

    async def run(self, rows: Rows) -> list[DryRunResult]:
        """A candidate for each row, or the status that says why there is none."""
        if self.whole is not None:
            apart = [row for row in rows.tolist() if self.whole.meet(self._potential(row))]
            if apart:
                return await self._run_apart(self.whole, rows, apart)
        return await self._run(rows)

    async def _run_apart(self, whole: WholeGroups, rows: Rows, apart: Sequence[int]) -> list[DryRunResult]:
        """The same, each of the rows apart by itself, as its pods are in units."""
        alike = rows[~np.isin(rows, apart)]
        found = dict(zip(alike.tolist(), await self._run(alike) if alike.size else [], strict=True))
        units = UnitDryRun(whole, self.beneath, self.budgets, self.seniority)
        for row in apart:
            found[row] = await self._unit_by_unit(units, np.array([row]))
        return [found[row] for row in rows.tolist()]

    async def _unit_by_unit(self, units: UnitDryRun, row: Rows) -> DryRunResult:
        trial = self._trial(self.beneath.without(row), row)
        try:
            outcome = await units.run(trial, self.attempt)
        except PluginError as error:
            return failed(error)
        if outcome is None:
            return NO_VICTIMS
        if isinstance(outcome, Candidate) and not outcome.victims:
            return self.without_evictions(outcome.node_name)
        return outcome

    def _potential(self, row: int) -> Sequence[PodInfo]:
        return self.beneath.potential(row, self.seniority).infos if self.beneath.count[row] else ()

    async def _run(self, rows: Rows) -> list[DryRunResult]:
        if self.side_by_side:
            try:
                return await self._try(rows)
            except PluginError:
                # Which of the nodes it was that failed is for each of them to say.
                pass
        return [await self._alone(rows[i : i + 1]) for i in range(len(rows))]

    async def _alone(self, row: Rows) -> DryRunResult:
        try:
            (outcome,) = await self._try(row)
        except PluginError as error:
            return failed(error)
        return outcome

    async def _try(self, rows: Rows) -> list[DryRunResult]:
        """Raises: PluginError where a plugin fails on any of the nodes."""
        outcomes: dict[int, DryRunResult] = dict.fromkeys(rows.tolist(), NO_VICTIMS)
        tried = rows[self.beneath.count[rows] > 0]
        if tried.size:
            outcomes.update(zip(tried.tolist(), await self._reprieve(tried), strict=True))
        return [outcomes[row] for row in rows.tolist()]

    async def _reprieve(self, rows: Rows) -> list[DryRunResult]:
        trial = self._trial(self.beneath.without(rows), rows)
        choices = self._choices(rows)
        trial.begin(choices.turns)
        diagnosis = Diagnosis(trial.table.names)
        fits = await trial.fits(np.ones(len(rows), dtype=bool), diagnosis)
        await self._bring_back(trial, choices, fits)
        statuses, violations = diagnosis.statuses(), choices.violations().tolist()
        return [
            self._outcome(name, choices.victims(i, self.seniority), violations[i]) if fits[i] else statuses[i]
            for i, name in enumerate(trial.table.names)
        ]

    def _trial(self, table: Snapshot, rows: Rows) -> PreemptionTrial:
        return PreemptionTrial(self.framework, self.attempt, table, rows, self.nominated)

    def _choices(self, rows: Rows) -> _Choices:
        order: list[Sequence[PodInfo]] = []
        amounts: list[Ints] = []
        violating = np.zeros(len(rows), dtype=np.int64)
        for i, row in enumerate(rows.tolist()):
            potential = self.beneath.potential(row, self.seniority)
            protected, others = self.budgets.split(potential.infos)
            violating[i] = len(protected)
            order.append((*protected, *others))
            amounts.append(potential.amounts_of(order[-1]) if protected and others else potential.amounts)
        turns = ReprieveTurns.of(order, amounts)
        return _Choices(turns, violating, np.zeros(turns.there.shape, dtype=bool))

    async def _bring_back(self, trial: PreemptionTrial, choices: _Choices, fits: Mask) -> None:
        """Reprieve the victims that can stay, one pod of each node in a turn."""
        there = choices.turns.there
        for turn in range(there.shape[1]):
            among = fits & there[:, turn]
            if not among.any():
                return
            trial.bring_back(turn, among)
            stays = await _fits_or_not(trial, among)
            choices.gone[:, turn] = among & ~stays
            trial.take_again(turn, choices.gone[:, turn])

    def _outcome(self, name: str, victims: Sequence[PodInfo], violations: int) -> DryRunResult:
        if not victims:
            return self.without_evictions(name)
        grouped = sum(info.pod.spec.scheduling_group is not None for info in victims)
        return Candidate(name, tuple(info.pod for info in victims), violations, grouped)


async def _fits_or_not(trial: PreemptionTrial, among: Mask) -> Mask:
    """Where the pod still fits; on one node alone, a failing plugin means that it does not.

    Raises: PluginError where a plugin fails on any of several nodes.
    """
    try:
        return await trial.fits(among, Diagnosis(trial.table.names))
    except PluginError:
        if among.size > 1:
            raise
        return np.zeros(1, dtype=bool)
