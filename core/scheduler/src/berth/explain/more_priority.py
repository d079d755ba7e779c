"""The least priority with which a pod could have others evicted for it, and who would have to go."""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from berth.explain.trying import PodTrial, Trying
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.preempting import PreemptionRequest
from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.preemption.candidates import Candidate, best_candidates
from berth.preemption.evaluator import Evaluator
from berth.preemption.search import find_candidates
from berth.snapshot.snapshot import Snapshot

HIGHEST_PRIORITY = 1_000_000_000
"""Of what users may give. Source: pkg/apis/scheduling/types.go (Kubernetes v1.36)."""
PLUGIN = "DefaultPreemption"
NEVER = "Never"

replace = msgspec.structs.replace


class Preempting(NamedTuple):
    """A change of the pod's priority or preemption policy, and whom it costs their place."""

    sentence: str
    patch: tuple[Mapping[str, Any], ...]
    candidate: Candidate


class MorePriority:
    """Looks for that priority on the loop's own snapshot, which is up to date."""

    def __init__(
        self, trying: Trying, framework: Framework, evaluator: Evaluator, pod: Pod, nodes: Snapshot
    ) -> None:
        self._trying = trying
        self._framework = framework
        self._evaluator = evaluator
        self._pod = pod
        self._nodes = nodes

    def able(self) -> bool:
        """Whether the profile preempts at all, and the pod may do so alone."""
        enabled = any(plugin.name == PLUGIN for plugin in self._framework.plugins.post_filter)
        return enabled and self._pod.spec.scheduling_group is None

    def priorities(self) -> list[int]:
        """The priorities that could make a difference, in ascending order."""
        placed = {info.pod.priority for pods in self._nodes.pods for info in pods.values()}
        own = self._pod.priority
        return [own, *sorted(p + 1 for p in placed if own <= p < HIGHEST_PRIORITY)]

    async def victims(self, priority: int, meter: CycleMeter) -> Candidate | None:
        """The node and the victims that the pod would get with that priority, None where none could go.

        Raises: OverBudgetError.
        """
        pod = self._with(priority)
        tried: PodTrial = await self._trying.tried(self._framework, pod, self._nodes, meter, self._pod)
        if tried.broken or tried.fits.any():
            return None
        request = PreemptionRequest(PLUGIN, tried.attempt.pod, tried.attempt.state, tried.diagnosis)
        chance = random.Random(0)
        found = await find_candidates(
            self._evaluator.dry_run(request), tried.diagnosis, chance, percentage=10, absolute=10
        )
        best = best_candidates(found.found, self._evaluator.seniority())
        return best[0] if best else None

    def change(self, priority: int, candidate: Candidate) -> Preempting | None:
        """What has to be written for that; None where nothing has to be, as it preempts already."""
        patch: list[Mapping[str, Any]] = []
        parts = []
        if priority != self._pod.priority:
            patch.append({"op": "add", "path": "/spec/priority", "value": priority})
            parts.append(f"give it a PriorityClass of at least {priority} (now {self._pod.priority})")
        if self._pod.spec.preemption_policy == NEVER:
            patch.append({"op": "add", "path": "/spec/preemptionPolicy", "value": "PreemptLowerPriority"})
            parts.append("let it preempt (preemptionPolicy: PreemptLowerPriority)")
        if not patch:
            return None
        victims = candidate.victims
        names = ", ".join(pod.key for pod in victims[:3])
        more = f" and {len(victims) - 3} more" if len(victims) > 3 else ""  # noqa: PLR2004 - as many as are named
        sentence = f"{' and '.join(parts)}: {names}{more} on {candidate.node_name} would be evicted for it"
        return Preempting(sentence, tuple(patch), candidate)

    def _with(self, priority: int) -> Pod:
        spec = replace(self._pod.spec, priority=priority, preemption_policy=None)
        return self._pod.with_spec(spec)
