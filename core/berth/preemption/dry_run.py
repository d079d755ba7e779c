"""What would have to go on a node so that the pod fits: everything that may, then back whatever can stay.

The nodes of one call are tried side by side: first all potential victims of all of them are gone, then in
each round one a node comes back, and stays where the pod still fits beside it. Each node's answer is the one
that it would give alone.

Source: spec/core.md 6.4 "Victims on one node"; spec/plugins.md 5.18.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from berth.framework.attempt import Attempt
from berth.framework.diagnosis import Diagnosis
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, PluginError, Status, failed, unresolvable
from berth.preemption.candidates import Candidate
from berth.preemption.screening import Beneath
from berth.preemption.trial import Trial, following
from berth.preemption.victims import Budgets, by_importance, lower_priority
from berth.snapshot.columns import Mask, Rows
from berth.snapshot.pod_info import PodInfo

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")

Outcome: TypeAlias = Candidate | Status


@dataclass(slots=True)
class _Choice:
    """One node's potential victims in the order in which they may stay, and those that have to go."""

    order: list[PodInfo]
    violating: int
    """How many of them, the first ones, violate a budget if they go."""
    gone: list[PodInfo] = field(default_factory=list)
    violations: int = 0

    def lose(self, turn: int) -> None:
        """That pod of the order cannot stay."""
        self.gone.append(self.order[turn])
        self.violations += turn < self.violating

    def victims(self, now: float) -> list[PodInfo]:
        """Those that have to go, the most important first."""
        mixed = 0 < self.violating < len(self.order)
        return by_importance(self.gone, now) if mixed else self.gone


@dataclass(frozen=True, slots=True)
class DryRun:
    """Tries the pod on nodes without their less important pods.

    `beneath` are the pods of lower priority; `nominated` those of no lower one that were promised a node, by
    its row.
    """

    framework: Framework
    attempt: Attempt
    beneath: Beneath
    budgets: Budgets
    nominated: Mapping[int, Sequence[PodInfo]]
    now: float

    @property
    def side_by_side(self) -> bool:
        """Whether all nodes can be asked about at once: no plugin at work looks at more than one of them."""
        return not following(self.framework, self.attempt.state)

    async def without_victims(self, rows: Rows) -> tuple[Mask, Diagnosis]:
        """Where the pod fits once all potential victims are gone, and why not elsewhere.

        Shapes: result bool (k,) and a diagnosis of k rows, those asked about.
        Raises: PluginError where a plugin fails on any of the nodes.
        """
        trial = self._trial(rows)
        diagnosis = Diagnosis(trial.table.names)
        return await trial.fits(np.ones(len(rows), dtype=bool), diagnosis), diagnosis

    async def run(self, rows: Rows) -> list[Outcome]:
        """A candidate for each row, or the status that says why there is none."""
        if self.side_by_side:
            try:
                return await self._try(rows)
            except PluginError:
                # Which of the nodes it was that failed is for each of them to say.
                pass
        return [await self._alone(rows[i : i + 1]) for i in range(len(rows))]

    async def _alone(self, row: Rows) -> Outcome:
        try:
            (outcome,) = await self._try(row)
        except PluginError as error:
            return failed(error)
        return outcome

    async def _try(self, rows: Rows) -> list[Outcome]:
        """Raises: PluginError where a plugin fails on any of the nodes."""
        outcomes: dict[int, Outcome] = dict.fromkeys(rows.tolist(), NO_VICTIMS)
        tried = rows[self.beneath.count[rows] > 0]
        if tried.size:
            outcomes.update(zip(tried.tolist(), await self._reprieve(tried), strict=True))
        return [outcomes[row] for row in rows.tolist()]

    async def _reprieve(self, rows: Rows) -> list[Outcome]:
        pods, trial = self.attempt.nodes.pods, self._trial(rows)
        potential = [lower_priority(pods[row].values(), self.beneath.priority) for row in rows.tolist()]
        if not self.side_by_side:
            for victim in potential[0]:
                trial.tell_removed(victim)
        diagnosis = Diagnosis(trial.table.names)
        fits = await trial.fits(np.ones(len(rows), dtype=bool), diagnosis)
        choices = [self._choice(victims) for victims in potential]
        await self._bring_back(trial, choices, fits)
        statuses = diagnosis.statuses()
        return [
            self._outcome(trial.table.names[i], choice, SUCCESS if fits[i] else statuses[i])
            for i, choice in enumerate(choices)
        ]

    def _trial(self, rows: Rows) -> Trial:
        promised = [self.nominated.get(row, ()) for row in rows.tolist()]
        return Trial(self.framework, self.attempt, self.beneath.without(rows), promised)

    def _choice(self, victims: list[PodInfo]) -> _Choice:
        violating, others = self.budgets.split(by_importance(victims, self.now))
        return _Choice(violating + others, len(violating))

    async def _bring_back(self, trial: Trial, choices: list[_Choice], fits: Mask) -> None:
        """Let stay whoever can, one pod of each node in a round."""
        for turn in range(max(len(choice.order) for choice in choices)):
            among = fits & np.array([turn < len(choice.order) for choice in choices])
            if not among.any():
                return
            for i in np.flatnonzero(among):
                trial.add(int(i), choices[i].order[turn])
            stays = await _fits_or_not(trial, among)
            for i in np.flatnonzero(among & ~stays):
                trial.remove(int(i), choices[i].order[turn])
                choices[i].lose(turn)

    def _outcome(self, name: str, choice: _Choice, status: Status) -> Outcome:
        if not status.ok:
            return status
        if not choice.gone:
            return failed(f'expected at least one victim pod on node "{name}"')
        victims = tuple(info.pod for info in choice.victims(self.now))
        return Candidate(name, victims, choice.violations)


async def _fits_or_not(trial: Trial, among: Mask) -> Mask:
    """Where the pod still fits; on one node alone, a failing plugin means that it does not.

    Raises: PluginError where a plugin fails on any of several nodes.
    """
    try:
        return await trial.fits(among, Diagnosis(trial.table.names))
    except PluginError:
        if among.size > 1:
            raise
        return np.zeros(1, dtype=bool)
