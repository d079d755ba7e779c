"""What would have to go on a node so that the pod fits: everything that may, then back whatever can stay.

The nodes of one call are tried side by side: first all victims of all of them are thought away, then in each
round one victim a node comes back and stays where the pod still fits beside it. Each node's answer is the one
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

    `nominated` are the pods of no lower priority that were promised a node, by its row.
    """

    framework: Framework
    attempt: Attempt
    budgets: Budgets
    nominated: Mapping[int, Sequence[PodInfo]]
    now: float

    async def run(self, rows: Rows) -> list[Outcome]:
        """A candidate for each row, or the status that says why there is none."""
        if not following(self.framework, self.attempt.state):
            try:
                return await self._side_by_side(rows)
            except PluginError:
                # Which of the nodes it was that failed is for each of them to say.
                pass
        return [await self._alone(rows[i : i + 1]) for i in range(len(rows))]

    async def _alone(self, row: Rows) -> Outcome:
        try:
            (outcome,) = await self._side_by_side(row)
        except PluginError as error:
            return failed(error)
        return outcome

    async def _side_by_side(self, rows: Rows) -> list[Outcome]:
        """Raises: PluginError where a plugin fails on any of the nodes."""
        pods, priority = self.attempt.nodes.pods, self.attempt.pod.priority
        potential = {int(row): lower_priority(pods[row].values(), priority) for row in rows}
        outcomes: dict[int, Outcome] = dict.fromkeys(potential, NO_VICTIMS)
        tried = [row for row, victims in potential.items() if victims]
        if tried:
            answers = await self._reprieve(tried, [potential[row] for row in tried])
            outcomes.update(zip(tried, answers, strict=True))
        return [outcomes[int(row)] for row in rows]

    async def _reprieve(self, rows: list[int], potential: list[list[PodInfo]]) -> list[Outcome]:
        promised = [self.nominated.get(row, ()) for row in rows]
        trial = Trial(self.framework, self.attempt, np.array(rows, dtype=np.intp), promised)
        for i, victims in enumerate(potential):
            for victim in victims:
                trial.remove(i, victim)
        diagnosis = Diagnosis(trial.table.names)
        fits = await trial.fits(np.ones(len(rows), dtype=bool), diagnosis)
        choices = [self._choice(victims) for victims in potential]
        await self._bring_back(trial, choices, fits)
        statuses = diagnosis.statuses()
        return [
            self._outcome(trial.table.names[i], choice, SUCCESS if fits[i] else statuses[i])
            for i, choice in enumerate(choices)
        ]

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
