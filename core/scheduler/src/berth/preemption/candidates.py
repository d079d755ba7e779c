"""Nodes that become free for the pod, how many of them are looked for, and which one is taken.

Source: pkg/scheduler/framework/preemption/preemption.go DryRunPreemption, pickOneNodeForPreemption
(Kubernetes v1.36).
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from berth.objects.pods.pod import Pod
from berth.preemption.victims import Seniority

ABOVE_ALL_NEGATIVE = 2**31
"""Makes every priority positive, so that one victim more always makes a sum larger."""


class Candidate(msgspec.Struct, frozen=True):
    """A node and the pods that have to go there, the most important first."""

    node_name: str
    victims: tuple[Pod, ...]
    pdb_violations: int = 0
    group_disruptions: int = 0
    """Of the units that go, groups or pods, how many are of pod groups."""


def candidates_wanted(potential: int, percentage: int, absolute: int) -> int:
    """How many candidates end the search among that many nodes."""
    return min(potential, max(potential * percentage // 100, absolute))


class FoundCandidates(msgspec.Struct):
    """The candidates so far, those that violate no budget apart, never more than `wanted` of a kind."""

    wanted: int
    harmless: list[Candidate] = msgspec.field(default_factory=list)
    violating: list[Candidate] = msgspec.field(default_factory=list)

    @property
    def enough(self) -> bool:
        """Whether the search may end: enough of them, one without a violation included."""
        return bool(self.harmless) and len(self.harmless) + len(self.violating) >= self.wanted

    def add(self, candidate: Candidate) -> None:
        """Keep the candidate, unless there are enough of its kind."""
        kind = self.violating if candidate.pdb_violations else self.harmless
        if len(kind) < self.wanted:
            kind.append(candidate)

    def all(self) -> list[Candidate]:
        """Every candidate, those without a violation first."""
        return self.harmless + self.violating


def best_candidates(candidates: Sequence[Candidate], seniority: Seniority) -> list[Candidate]:
    """The candidates that are equally good in the end; none only where there are none."""
    left = list(candidates)
    for cost in _criteria(seniority):
        if len(left) <= 1:
            break
        costs = [cost(candidate) for candidate in left]
        lowest = min(costs)
        left = [candidate for candidate, its in zip(left, costs, strict=True) if its == lowest]
    return left


def _criteria(seniority: Seniority) -> Iterator[Callable[[Candidate], float]]:
    """What makes a candidate worse, the most important criterion first."""
    yield lambda candidate: candidate.pdb_violations
    yield lambda candidate: candidate.victims[0].priority
    yield lambda candidate: sum(pod.priority + ABOVE_ALL_NEGATIVE for pod in candidate.victims)
    yield lambda candidate: len(candidate.victims)
    yield lambda candidate: -_earliest_start(candidate.victims, seniority)


def _earliest_start(victims: Sequence[Pod], seniority: Seniority) -> float:
    """When the oldest of the victims of highest priority started."""
    highest = max(pod.priority for pod in victims)
    return min(seniority.start(pod) for pod in victims if pod.priority == highest)
